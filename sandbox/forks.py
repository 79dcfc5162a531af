"""Python programs that start at once, as forks of a process that has imported their modules.

Regent needs some seconds of a processor to import what it needs, and tests start it hundreds of
times. A fork server imports the modules once; each program is a fork of it, with arguments,
environment, directory and log of its own, that then runs as ``python -m MODULE`` does. Tests of the
start itself run the real command.

The server is single-threaded and runs `serve`; `ForkServer` is the side of the owner. For each
program the owner sends one message with four descriptors: standard output, standard error, a pipe
that the program reads before it begins, and a pipe on which the server writes how the program has
ended.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sandbox.guard import guard
from sandbox.stalls import install_from_environment

_ROOT = Path(__file__).resolve().parent.parent
_SERVER = "from sandbox.forks import main; main()"
_MESSAGE_BYTES = 1 << 20


class ForkedProcess:
    """A fork, with the part of ``subprocess.Popen`` that `ManagedProcess` needs."""

    def __init__(self, pid: int, exit_pipe: int) -> None:
        self.pid = pid
        self._exit_pipe = exit_pipe
        self._exit_code: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        if self._exit_code is None and select.select([self._exit_pipe], [], [], 0)[0]:
            text = os.read(self._exit_pipe, 16)
            os.close(self._exit_pipe)
            # The pipe ends without a code if the server was killed.
            self._exit_code = int(text) if text else -signal.SIGKILL
        return self._exit_code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class ForkServer:
    """Starts forks. The server itself starts with the first of them, and ends with its owner.

    Args:
        module: The module that each fork runs, as ``python -m`` does.
        preload: Modules to import before the first fork.
    """

    def __init__(self, module: str, preload: Sequence[str]) -> None:
        self._configuration = json.dumps({"module": module, "preload": list(preload)})
        self._owner: int | None = None
        self._connection: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        arguments: Sequence[str],
        *,
        stdout: int,
        stderr: int,
        environment: Mapping[str, str],
        directory: Path,
    ) -> ForkedProcess:
        """Start a program. The guard knows it before the program runs its first instruction.

        Args:
            arguments: The words after the name of the module on the command line.
            stdout: The descriptor of a file.
            stderr: The descriptor of a file, or the same one.
            environment: The whole environment.
        """
        connection = self._connected(environment)
        go_read, go_write = os.pipe()
        exit_read, exit_write = os.pipe()
        message = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "directory": str(directory),
        }
        try:
            descriptors = [stdout, stderr, go_read, exit_write]
            socket.send_fds(connection, [json.dumps(message).encode()], descriptors)
            pid = int(connection.recv(_MESSAGE_BYTES))
            guard().add_process(pid)
            os.write(go_write, b"\n")
        finally:
            for descriptor in (go_read, go_write, exit_write):
                os.close(descriptor)
        return ForkedProcess(pid, exit_read)

    def close(self) -> None:
        """End the server. Its forks run on."""
        atexit.unregister(self.close)
        if self._connection is None or self._process is None:
            return
        if self._owner == os.getpid():
            self._connection.close()
            self._process.wait()
            guard().forget_process(self._process.pid)
        self._connection = self._process = None

    def _connected(self, environment: Mapping[str, str]) -> socket.socket:
        running = self._process is not None and self._process.poll() is None
        if self._connection is not None and running and self._owner == os.getpid():
            return self._connection
        mine, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(others.fileno()), self._configuration],
            pass_fds=[others.fileno()],
            stdin=subprocess.DEVNULL,
            env=environment,
            cwd=_ROOT,
            start_new_session=True,
        )
        guard().add_process(self._process.pid)
        atexit.register(self.close)
        others.close()
        self._connection, self._owner = mine, os.getpid()
        return mine


class _Request(NamedTuple):
    """Arguments, environment and descriptors of one program."""

    arguments: list[str]
    environment: dict[str, str]
    directory: str
    stdout: int
    stderr: int
    go: int


def serve(connection: socket.socket) -> _Request | None:
    """Fork for each message, until the owner ends.

    Returns:
        In each fork its message, None in the server.
    """
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    exit_pipes: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([connection.fileno(), wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            _report_ended(exit_pipes)
        if connection.fileno() not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, 4)
        if not data:
            return None
        stdout, stderr, go, exit_pipe = descriptors
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (wake_read, wake_write, exit_pipe, *exit_pipes.values()):
                os.close(descriptor)
            connection.close()
            return _Request(**json.loads(data), stdout=stdout, stderr=stderr, go=go)
        for descriptor in (stdout, stderr, go):
            os.close(descriptor)
        exit_pipes[pid] = exit_pipe
        connection.send(str(pid).encode())


def _report_ended(exit_pipes: dict[int, int]) -> None:
    for pid in list(exit_pipes):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            pipe = exit_pipes.pop(pid)
            with contextlib.suppress(BrokenPipeError):
                os.write(pipe, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(pipe)


def _become(request: _Request, module: str) -> None:
    """Run the program in this fork, as a process of its own session would."""
    os.setsid()
    if not os.read(request.go, 1):
        sys.exit(125)  # the owner ended before the guard knew this process
    os.dup2(request.stdout, sys.stdout.fileno())
    os.dup2(request.stderr, sys.stderr.fileno())
    for descriptor in (request.stdout, request.stderr, request.go):
        os.close(descriptor)
    os.chdir(request.directory)
    os.environ.clear()
    os.environ.update(request.environment)
    install_from_environment()
    sys.argv[1:] = request.arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main() -> None:
    """Run the server, and in each fork the program."""
    descriptor, configuration = int(sys.argv[1]), json.loads(sys.argv[2])
    for name in configuration["preload"]:
        importlib.import_module(name)
    gc.freeze()  # collections in a fork do not copy the pages of these modules
    request = serve(socket.socket(fileno=descriptor))
    if request is not None:
        _become(request, configuration["module"])
