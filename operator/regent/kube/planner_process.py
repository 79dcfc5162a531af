"""The planner as a child process: ``python -m regent_rebalance``.

It is a process of its own since planning takes all of a processor, and much memory, for a while: it
can be bounded and ended, and what it does wrong harms nobody here. The snapshot goes in by standard
input and the plan comes out by standard output, so nothing is left in a file system.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from regent.kube.plan_runner import PlanTask
from regent.kube.process_output import talk
from regent.planning.results import (
    HistoryUnusable,
    PlannerFailed,
    PlannerMissing,
    PlanResult,
    read_result,
)

logger = logging.getLogger(__name__)

_PACKAGE: Final = "regent_rebalance"
_STANDARD_INPUT: Final = "/dev/stdin"

_KEPT_ENVIRONMENT: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONPATH",
    "TMPDIR",
)
"""Of the environment of this process: a planner needs no settings and no secrets of Regent."""

_SPARKS_ENVIRONMENT: Final = ("JAVA_HOME", "SPARK_HOME", "SPARK_LOCAL_IP")
"""Besides, where a history is read."""

_NICENESS: Final = 10
"""The planner takes what the controller leaves of the processors."""

_KILLED_FIRST: Final = "1000"
"""Where a container runs out of memory the planner goes, never the controller beside it."""

_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Planning has one thread; numpy would reserve memory for as many as there are processors."""

_ARGUMENTS_MAX: Final = 1_000_000
"""Characters of a command line; Linux takes up to a quarter of the stack's limit, 2 MiB mostly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerProcess:
    """A :class:`~regent.kube.plan_runner.PlanRunner`.

    Attributes:
        timeout_s: Seconds after which a planner is killed.
        memory_bytes: How much memory it may take.
        plan_bytes: How large a plan may be, which is held in memory here. A partition that is
            changed takes about 150 bytes.
    """

    timeout_s: float
    memory_bytes: int
    plan_bytes: int = 128 * 1024**2

    async def run(self, task: PlanTask) -> PlanResult:
        """See :class:`~regent.kube.plan_runner.PlanRunner`."""
        if importlib.util.find_spec(_PACKAGE) is None:
            return PlannerMissing(
                f"the package {_PACKAGE} is not installed: pip install 'regent[planner]'"
            )
        arguments = task.goals.arguments()
        kept: tuple[str, ...] = _KEPT_ENVIRONMENT
        if task.history is not None:
            if task.history.is_url:
                return HistoryUnusable(
                    f"planner_history is {task.history.place}, which a process beside Regent does "
                    "not read: have the plan made on Spark (spec.rebalance.spark), or keep the "
                    "history in a folder"
                )
            arguments = (*arguments, *task.history.arguments())
            kept = (*kept, *_SPARKS_ENVIRONMENT)
        if sum(map(len, arguments)) > _ARGUMENTS_MAX:
            return PlannerFailed(
                f"{len(task.goals.pinned)} pinned topics do not fit into a command line"
            )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", _PACKAGE, "make", _STANDARD_INPUT, "--json", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_ONE_THREAD | {name: os.environ[name] for name in kept if name in os.environ},
        )
        try:
            self._bound(process.pid)
            async with asyncio.timeout(self.timeout_s):
                output, errors = await talk(process, task.snapshot, limit=self.plan_bytes)
        except TimeoutError:
            return PlannerFailed(
                f"it took longer than {self.timeout_s:g} s (setting planner_timeout_s)"
            )
        finally:
            await _end(process)
        if output is None:
            return PlannerFailed(
                f"it has written more than {self.plan_bytes:,} bytes (setting "
                "planner_exchange_max_bytes)"
            )
        status = process.returncode
        assert status is not None, "it has ended"
        result = await asyncio.to_thread(
            read_result, status, output, errors.decode(errors="replace")
        )
        if isinstance(result, PlannerFailed):
            logger.error("The planner has failed", extra={"problem": result.problem})
            return PlannerFailed(
                f"{result.problem} (it may take {self.memory_bytes:,} bytes of memory: setting "
                "planner_memory_bytes)"
            )
        return result

    def _bound(self, pid: int) -> None:
        """Limits that hold also if nobody is left to end it: those that Regent has itself, if they
        are tighter, which only root may widen.

        Processor time adds up over threads, which the planner has some of and the Spark that reads
        a history as many as there are processors: the limit is what they can take until the time
        is over, so that none is killed before."""
        seconds = (int(self.timeout_s) + 1) * (os.cpu_count() or 1)
        try:
            Path(f"/proc/{pid}/oom_score_adj").write_text(_KILLED_FIRST)
            niceness = os.getpriority(os.PRIO_PROCESS, pid)
            os.setpriority(os.PRIO_PROCESS, pid, max(niceness, _NICENESS))
            _limit(pid, resource.RLIMIT_DATA, self.memory_bytes)
            _limit(pid, resource.RLIMIT_CPU, seconds)
        except (ProcessLookupError, FileNotFoundError):
            return  # it has ended already
        except OSError as error:
            logger.warning(
                "The planner's process runs without some of its limits", extra={"error": str(error)}
            )


def _limit(pid: int, what: int, wanted: int) -> None:
    _, hard = resource.prlimit(pid, what)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.prlimit(pid, what, (most, most))


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill it unless it has ended, and wait for its end, whatever else is asked for meanwhile."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await asyncio.shield(process.wait())
