"""The guard: nothing a sandbox starts may outlive the Python process that started it.

A `finally` or `atexit` does not run when Python is SIGKILLed, and the kernel's
"parent death signal" fires when the *thread* that forked ends, which executor threads do
all the time. So each owner process keeps one small guard process of its own and tells it,
through a pipe, which process groups and temporary directories it has. Only the owner holds
the writing end; when the owner ends, however it ends, the guard reads end-of-file, kills
the process groups, removes the directories and exits.

A process is named by its id *and* its start time, so that an id which the kernel has given
to somebody else meanwhile is never killed.

This file is both sides: `Guard` is used by the owner, `main` is what the guard runs (by
path, with an isolated interpreter: it imports the standard library only).
"""

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

# sent to a whole service or terminal they are meant for the owner; the guard has to outlive it
_SIGNALS_FOR_THE_OWNER = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Message = dict[str, str | int | None]


def start_time_ticks(pid: int) -> int | None:
    """The kernel's start time of a process: with the id it names a process for good."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # the second field is the command in parentheses and may itself contain ") "
    return int(stat.rpartition(")")[2].split()[19])


def kill_group(pid: int, started: int | None) -> None:
    """SIGKILL the process group led by `pid`, unless the id belongs to somebody else by now.

    A leader that is gone is fine: a group id is not reused while the group has members.
    """
    now = start_time_ticks(pid)
    if now is not None and now != started:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


class Guard:
    """The owner's end. Use `guard()` to get the one of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: int | None = None
        self._known: dict[str, Message] = {}

    @property
    def pid(self) -> int | None:
        """The guard process, None when there is none yet."""
        return None if self._process is None else self._process.pid

    def add_process(self, pid: int) -> None:
        """Promise that the process group led by `pid` ends with this process."""
        self._tell(f"process {pid}", {"process": pid, "started": start_time_ticks(pid)})

    def forget_process(self, pid: int) -> None:
        """The process has been reaped: its id may be reused from here on."""
        self._tell(f"process {pid}", None)

    def add_directory(self, path: Path) -> None:
        """Promise that the directory is removed when this process ends."""
        self._tell(f"directory {path}", {"directory": str(path)})

    def forget_directory(self, path: Path) -> None:
        """The directory is gone, or is to be kept."""
        self._tell(f"directory {path}", None)

    def close(self) -> None:
        """End the guard as if the owner had ended: everything that is left gets cleaned up."""
        with self._lock:
            pipe, self._pipe = self._pipe, None
            process, self._process = self._process, None
            self._known.clear()
        if pipe is not None:
            os.close(pipe)
        if process is not None:
            process.wait()

    def disown(self) -> None:
        """In a forked child: give up the inherited pipe, which must have one holder only."""
        if self._pipe is not None:
            os.close(self._pipe)

    def _tell(self, key: str, message: Message | None) -> None:
        with self._lock:
            if message is None:
                if self._known.pop(key, None) is None:
                    return
            else:
                self._known[key] = message
            line: dict[str, object] = {"key": key, "message": message}
            if self._process is None or self._process.poll() is not None:
                self._start()
                return
            try:
                self._write(line)
            except BrokenPipeError:
                self._start()

    def _start(self) -> None:
        """Start a guard (again: somebody may have killed it) and tell it everything."""
        if self._pipe is not None:
            os.close(self._pipe)
        reading, self._pipe = os.pipe()
        # the guard inherits these as blocked, and is deaf to them from its first instruction
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS_FOR_THE_OWNER)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
            os.close(reading)
        for key, message in self._known.items():
            self._write({"key": key, "message": message})

    def _write(self, line: dict[str, object]) -> None:
        assert self._pipe is not None
        data = json.dumps(line).encode() + b"\n"
        while data:
            data = data[os.write(self._pipe, data) :]


_guard = Guard()


def guard() -> Guard:
    """The guard of this process."""
    return _guard


def _forked() -> None:
    """A forked child gets a guard of its own: the inherited lock may be held forever."""
    global _guard
    _guard.disown()
    _guard = Guard()


os.register_at_fork(after_in_child=_forked)
atexit.register(lambda: _guard.close())


def clean_up(known: dict[str, Message]) -> None:
    """Kill every process group, then remove every directory."""
    for message in known.values():
        pid, started = message.get("process"), message.get("started")
        if isinstance(pid, int):
            kill_group(pid, started if isinstance(started, int) else None)
    for message in known.values():
        directory = message.get("directory")
        if not isinstance(directory, str):
            continue
        for _ in range(20):  # a process being killed may still be creating files
            shutil.rmtree(directory, ignore_errors=True)
            if not Path(directory).exists():
                break
            time.sleep(0.05)


def main() -> None:
    """Remember what the owner says until it is gone, then clean up."""
    known: dict[str, Message] = {}
    for line in sys.stdin:
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # the owner was killed while it wrote
        if entry["message"] is None:
            known.pop(entry["key"], None)
        else:
            known[entry["key"]] = entry["message"]
    clean_up(known)


if __name__ == "__main__":
    main()
