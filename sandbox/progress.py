"""Progress of long steps, on standard error: one plain line every few seconds.

Plain lines read well on a terminal, in a continuous-integration log and in a captured test
alike, so there is one form for all of them. Output of the command goes to a file; the last
line of it stands at the end of each progress line.
"""

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.errors import StepError
from sandbox.guard import guard, kill_group, start_time_ticks
from sandbox.process import spawn
from sandbox.waiting import log_tail

LINE_EVERY_S = 5.0
_POLL_S = 0.05
_SHOWN_CHARACTERS = 90


def note(text: str) -> None:
    """One line about what is happening, if anybody reads it: a terminal may be closed."""
    with contextlib.suppress(OSError):
        print(f"[sandbox] {text}", file=sys.stderr, flush=True)


def run_step(
    what: str,
    command: Sequence[str | Path],
    *,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    typically: str = "",
) -> str:
    """Run a command that takes long, telling what it does; returns its output.

    `what` is a phrase such as "building kube-apiserver"; `typically` says how long to expect.

    Raises:
        StepError: the command ended with an error.
    """
    started = time.monotonic()
    note(f"{what}{f' (typically {typically})' if typically else ''}")
    with tempfile.NamedTemporaryFile(prefix="regent-sandbox-step-", suffix=".log") as log:
        process = spawn(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            environment=environment,
            directory=directory,
        )
        assert process.stdin is not None
        process.stdin.close()
        started_ticks = start_time_ticks(process.pid)
        try:
            _report_until_exit(what, process, Path(log.name), started=started)
        except BaseException:
            kill_group(process.pid, started_ticks)
            process.wait()
            raise
        finally:
            guard().forget_process(process.pid)
        output = Path(log.name).read_text(errors="replace")
        if process.returncode != 0:
            raise StepError(
                f"{what} failed (exit status {process.returncode}): "
                f"{' '.join(str(part) for part in command)}\n{log_tail(Path(log.name))}"
            )
    note(f"{what}: done in {time.monotonic() - started:.0f} s")
    return output


def _report_until_exit(
    what: str, process: subprocess.Popen[bytes], log: Path, *, started: float
) -> None:
    """Wait for the command, with a line every `LINE_EVERY_S` seconds."""
    next_line = started + LINE_EVERY_S
    while process.poll() is None:
        time.sleep(_POLL_S)
        if time.monotonic() >= next_line:
            next_line += LINE_EVERY_S
            last = log_tail(log, lines=1)[:_SHOWN_CHARACTERS]
            suffix = "" if last == "(empty)" else f": {last}"
            note(f"{what}, {time.monotonic() - started:.0f} s{suffix}")
