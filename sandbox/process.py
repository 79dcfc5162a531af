"""One server process: start, stop, kill, pause, resume, restart; a log; no orphans.

The process leads a session and process group of its own, so that Ctrl-C in a terminal reaches
the sandbox only, which then stops its servers in order. It is known to the guard before its
program runs a single instruction: a shell waits for one line on its standard input, which is
sent once the guard knows of it, and then becomes the program (same process id). Should the
owner die in between, the shell reads end-of-file and gives up.

`run_guarded` does the same for commands that are run to their end.

Signals go to process ids this module started, never to names.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sandbox.forks import ForkedProcess, ForkServer
from sandbox.guard import guard, kill_group, start_time_ticks
from sandbox.waiting import LOG_LINES, log_tail, wait_until

# `read` takes no more than the first line, so what follows is the program's to read
_LAUNCHER = 'read -r _ || exit 125; exec "$@"'
_POLL_S = 0.01
_STOPPED_STATES = {"T", "t"}
KILL_TIMEOUT_S = 30.0

_all: "weakref.WeakSet[ManagedProcess]" = weakref.WeakSet()


def spawn(
    command: Sequence[str | Path],
    *,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, known to the guard from its first instruction.

    Its standard input is a pipe, which is the caller's to close. Once the process is reaped,
    the caller tells the guard to forget it.
    """
    process = subprocess.Popen(
        ["/bin/sh", "-c", _LAUNCHER, "sh", *(str(part) for part in command)],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
        bufsize=0,
    )
    guard().add_process(process.pid)
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(b"\n")
    return process


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command that was run to its end has left."""

    stdout: str
    stderr: str
    exit_code: int


def run_guarded(
    command: Sequence[str | Path],
    *,
    timeout_s: float,
    stdin: str | None = None,
    name: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a command to its end. It does not outlive a killed owner either.

    Raises:
        TimeoutError: it did not end in time, and was killed; the message has what it printed.
    """
    process = spawn(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, environment=environment
    )
    started_ticks = start_time_ticks(process.pid)
    try:
        stdout, stderr = process.communicate((stdin or "").encode(), timeout=timeout_s)
    except BaseException as error:
        kill_group(process.pid, started_ticks)
        stdout, stderr = process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            said = (stdout + stderr).decode(errors="replace")
            what = name or Path(command[0]).name
            raise TimeoutError(f"{what} did not end within {timeout_s:g} s:\n{said}") from error
        raise
    finally:
        guard().forget_process(process.pid)
    return Outcome(
        stdout.decode(errors="replace"), stderr.decode(errors="replace"), process.returncode
    )


def run_forked(
    server: ForkServer,
    arguments: Sequence[str | Path],
    *,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a fork to its end. It does not outlive a killed owner either.

    Raises:
        WaitTimeoutError: it did not end in time, and was killed.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = server.start(
            [str(argument) for argument in arguments],
            stdout=stdout.fileno(),
            stderr=stderr.fileno(),
            environment={**os.environ, **(environment or {})},
            directory=Path.cwd(),
        )
        try:
            exit_code: int = wait_until(
                process.poll,
                until=lambda code: code is not None,
                timeout_s=timeout_s,
                interval_s=_POLL_S,
                describe=f"the fork with {list(arguments)} to end",
            )
        finally:
            process.send_signal(signal.SIGKILL)
            guard().forget_process(process.pid)
        for file in (stdout, stderr):
            file.seek(0)
        said, complained = (file.read().decode(errors="replace") for file in (stdout, stderr))
    return Outcome(said, complained, exit_code)


def running_processes() -> "list[ManagedProcess]":
    """What this process has started and what still runs, by name."""
    return sorted((p for p in _all if p.is_running), key=lambda process: process.name)


class ManagedProcess:
    """A program that can be started, stopped and restarted any number of times.

    All runs append to one log file. `stop_timeout_s` is how long a stop may take before the
    process is killed. With a `fork_server` the program is a fork; `command` must then be
    `python -m MODULE` with the server's module.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log_path: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        stop_timeout_s: float = 20.0,
        fork_server: ForkServer | None = None,
    ) -> None:
        self.name = name
        self._fork_server = fork_server
        self.command = [str(part) for part in command]
        self.log_path = log_path
        self.environment = dict(environment or {})
        self.stop_timeout_s = stop_timeout_s
        self._directory = directory
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._owner_pid = os.getpid()
        self._log_start = 0
        self._started_ticks: int | None = None
        self._exit_handled = False
        self._paused = False
        _all.add(self)

    @property
    def pid(self) -> int:
        """The id of the process that runs, or ran last.

        Raises:
            RuntimeError: it was never started.
        """
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """The process exists (a paused one does too)."""
        return self.exit_code is None and self._process is not None

    @property
    def is_paused(self) -> bool:
        """`pause` was called and `resume` was not."""
        return self._paused and self.is_running

    @property
    def exit_code(self) -> int | None:
        """What the last run ended with; negative for a signal; None while running or unstarted."""
        if self._process is None:
            return None
        code = self._process.poll()
        if code is not None:
            self._after_exit()
        return code

    def start(self) -> None:
        """Start the program; it is *not* ready when this returns.

        Raises:
            RuntimeError: it is running already.
        """
        if self.is_running:
            raise RuntimeError(f"{self.name} is running already (process {self.pid})")
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._log_start = log.tell()
            process = self._spawn(log)
        self._paused = False
        self._exit_handled = False
        self._started_ticks = start_time_ticks(process.pid)
        self._process = process

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes] | ForkedProcess:
        if self._fork_server is not None:
            _python, _option, _module, *arguments = self.command
            return self._fork_server.start(
                arguments,
                stdout=log.fileno(),
                stderr=log.fileno(),
                environment={**os.environ, **self.environment},
                directory=self._directory or Path.cwd(),
            )
        process = spawn(
            self.command,
            stdout=log,
            stderr=subprocess.STDOUT,
            environment=self.environment,
            directory=self._directory,
        )
        assert process.stdin is not None
        process.stdin.close()
        return process

    def terminate(self) -> None:
        """Ask it to stop (SIGTERM) and return at once; a paused process is resumed for that."""
        self._signal(signal.SIGTERM)
        self.resume()

    def stop(self, *, timeout_s: float | None = None) -> None:
        """Stop it in an orderly way, killing it when it takes too long; fine when not running."""
        if self.is_running:
            self.terminate()
            if not self._wait_for_exit(self.stop_timeout_s if timeout_s is None else timeout_s):
                self.kill()

    def kill(self) -> None:
        """SIGKILL it and everything it started, and wait until it is gone."""
        if not self.is_running:
            return
        kill_group(self.pid, self._started_ticks)
        if not self._wait_for_exit(KILL_TIMEOUT_S):
            raise RuntimeError(f"{self.name} (process {self.pid}) does not die")

    def pause(self) -> None:
        """Freeze it (SIGSTOP): its connections stay open and nothing answers.

        Returns once the kernel has stopped every thread of it.
        """
        self._signal(signal.SIGSTOP)
        self._paused = True
        wait_until(
            self._thread_states,
            until=lambda states: states <= _STOPPED_STATES,
            timeout_s=KILL_TIMEOUT_S,
            interval_s=_POLL_S,
            describe=f"{self.name} to be stopped by the kernel",
            watch=[self],
        )

    def resume(self) -> None:
        """Let a paused process go on; fine when it is not paused."""
        self._signal(signal.SIGCONT)
        self._paused = False

    def restart(self) -> None:
        """Stop it if it runs, and start it again."""
        self.stop()
        self.start()

    def log_tail(self, *, lines: int = LOG_LINES) -> str:
        """The last lines of the log."""
        return log_tail(self.log_path, lines=lines)

    def log_of_this_run(self) -> str:
        """What the current (or last) run has logged."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(self._log_start)
                return log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _thread_states(self) -> set[str]:
        """The state letters of all threads in /proc."""
        stats = [path.read_text() for path in Path(f"/proc/{self.pid}/task").glob("*/stat")]
        return {stat.rpartition(")")[2].split()[0] for stat in stats}

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)  # does nothing once it has been reaped

    def _wait_for_exit(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while self.is_running:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def _after_exit(self) -> None:
        """Once per run, when it has been reaped: end what it left behind, tell the guard.

        In a forked copy of the owner the processes are somebody else's children, which looks
        like an exit here: leave them alone.
        """
        if self._process is not None and not self._exit_handled and os.getpid() == self._owner_pid:
            self._exit_handled = True
            kill_group(self._process.pid, self._started_ticks)
            guard().forget_process(self._process.pid)

    def __repr__(self) -> str:
        state = "paused" if self.is_paused else "running" if self.is_running else "stopped"
        return f"ManagedProcess({self.name!r}, {state})"
