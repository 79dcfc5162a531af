"""What a command and all that it starts cost: processor seconds by part, the most memory at once.

Processes are looked at some times a second, so what a process does after the last look is missing:
a tenth of a second, where it has ended by itself.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Process:
    """A process at one moment.

    Attributes:
        parent: Process id of its parent.
        started: Ticks from the machine's start to its own: with the id it names one process.
        command: Its arguments, with blanks between them.
        cpu_s: Processor seconds of all its threads.
    """

    pid: int
    parent: int
    started: int
    command: str
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command has cost.

    Attributes:
        wall_s: From its start to its end.
        cpu_s: Processor seconds by part.
        peak_mib: The most memory of all parts at one moment. A page that several processes share
            counts once.
        peak_mib_of: The most memory of each part alone.
        status: Its exit status.
        output, errors: What it has written.
    """

    wall_s: float
    cpu_s: Mapping[str, float]
    peak_mib: float
    peak_mib_of: Mapping[str, float]
    status: int
    output: bytes
    errors: bytes


def descendants(root: int, processes: Mapping[int, Process]) -> list[Process]:
    """A process and all that descend from it by living parents."""
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    found = [processes[root]] if root in processes else []
    for process in found:
        found += children.get(process.pid, ())
    return found


@dataclass(slots=True)
class Costs:
    """Adds up looks at processes.

    Args:
        part_of: The part that a command line belongs to.
    """

    part_of: Callable[[str], str]
    peak_mib: float = 0.0
    peak_mib_of: dict[str, float] = field(default_factory=dict)
    _cpu_s: dict[tuple[int, int], tuple[str, float]] = field(default_factory=dict)

    def add(self, seen: Sequence[tuple[Process, float]]) -> None:
        """Take a look into account: each process with its memory in MiB."""
        together: dict[str, float] = {}
        for process, mib in seen:
            # A process that is another program now belongs to that one; one that has ended has no
            # command any more.
            key = (process.pid, process.started)
            former = self._cpu_s.get(key)
            if process.command.strip():
                part = self.part_of(process.command)
            elif former is not None:
                part = former[0]
            else:  # it has ended before the first look: nobody knows what it was
                continue
            together[part] = together.get(part, 0.0) + mib
            self._cpu_s[key] = (part, process.cpu_s)
        self.peak_mib = max(self.peak_mib, sum(together.values()))
        for part, mib in together.items():
            self.peak_mib_of[part] = max(self.peak_mib_of.get(part, 0.0), mib)

    def cpu_s(self) -> dict[str, float]:
        """Processor seconds by part."""
        parts: dict[str, float] = {}
        for part, seconds in self._cpu_s.values():
            parts[part] = parts.get(part, 0.0) + seconds
        return parts


def run_measured(
    command: Sequence[str | Path],
    part_of: Callable[[str], str],
    *,
    environment: Mapping[str, str],
    timeout_s: float,
    given: Path | None = None,
) -> Cost:
    """Run a command to its end, and measure it with all that it starts.

    Args:
        given: A file that becomes its standard input.

    Raises:
        BenchmarkError: It takes longer than ``timeout_s``.
        Exception: What ``part_of`` raises, once the command has ended.
    """
    costs, ended = Costs(part_of), threading.Event()
    before = time.monotonic()
    with (given or Path(os.devnull)).open("rb") as source:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [str(part) for part in command],
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
        )
    with ThreadPoolExecutor(max_workers=1) as pool:
        looking = pool.submit(_look, process.pid, costs, ended)
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            for each in reversed(descendants(process.pid, _processes())):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each.pid, signal.SIGKILL)
            process.communicate()
            raise BenchmarkError(f"{error}") from error
        finally:
            wall_s = time.monotonic() - before
            ended.set()
    looking.result()  # without the looks after an error the figures are wrong
    return Cost(
        wall_s,
        costs.cpu_s(),
        costs.peak_mib,
        costs.peak_mib_of,
        process.returncode,
        output,
        errors,
    )


def _look(root: int, costs: Costs, ended: threading.Event) -> None:
    while not ended.wait(_LOOK_EVERY_S):
        processes = _processes()
        costs.add([(each, _mib(each.pid)) for each in descendants(root, processes)])


def _processes() -> dict[int, Process]:
    found = (_process(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {process.pid: process for process in found if process is not None}


def _process(pid: int) -> Process | None:
    folder = Path("/proc") / str(pid)
    try:
        stat: Any = (folder / "stat").read_text().rpartition(")")[2].split()
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:  # it has ended
        return None
    cpu_s = (int(stat[11]) + int(stat[12])) / _TICKS
    return Process(pid, int(stat[1]), int(stat[19]), command, cpu_s)


def _mib(pid: int) -> float:
    """Memory of a process; of pages that it shares with others its share."""
    try:
        lines = (Path("/proc") / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
