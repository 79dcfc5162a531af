"""What everything that can be started here has in common."""

import abc
import contextlib
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from sandbox.ports import lease_port
from sandbox.process import ManagedProcess
from sandbox.state import StateDirectory


class Startable(abc.ABC):
    """Started on entry of a `with` block and closed on exit."""

    @abc.abstractmethod
    def start(self) -> None:
        """Start what does not run and wait until all of it is ready."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop in an orderly way; data and ports are kept."""

    @abc.abstractmethod
    def close(self) -> None:
        """Kill what runs, remove the data, give the ports back; twice is harmless."""

    def restart(self) -> None:
        """Stop, start, and wait until all is ready."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Server(Startable):
    """One server process with a port and a state directory of its own.

    `stop`, `kill` and `start` keep the data and the port; `close` gives up both.
    """

    process: ManagedProcess

    def __init__(self, name: str, *, state: Path | None, keep_state: bool) -> None:
        self.name = name
        self._state = StateDirectory(name, path=state, keep=keep_state)
        self._lease = lease_port()
        self.port = self._lease.port

    @abc.abstractmethod
    def launch(self) -> None:
        """Start the process without waiting for it to be ready."""

    @abc.abstractmethod
    def wait_until_ready(self) -> None:
        """Wait until it serves clients."""

    @property
    def state_path(self) -> Path:
        """Where its data, configuration and log are."""
        return self._state.path

    @property
    def log_path(self) -> Path:
        """Everything it has printed, over all runs."""
        return self.process.log_path

    @property
    def is_running(self) -> bool:
        """The process exists; it may be paused, and it may not be ready."""
        return self.process.is_running

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self.launch()
        self.wait_until_ready()

    def stop(self) -> None:
        """Stop it in an orderly way (SIGTERM, and SIGKILL if that takes too long)."""
        self.process.stop()

    def kill(self) -> None:
        """SIGKILL it and wait until it is gone."""
        self.process.kill()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay open, nothing answers, sessions run out."""
        self.process.pause()

    def resume(self) -> None:
        """Let a paused server go on."""
        self.process.resume()

    def close(self) -> None:
        """Kill it, remove its data, give its port back."""
        self.process.kill()
        self._lease.release()
        self._state.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, port {self.port})"


def stop_all(servers: Iterable[Server]) -> None:
    """Stop several servers at the same time."""
    together = list(servers)
    for server in together:
        server.process.terminate()
    for server in together:
        server.stop()


def close_all(startables: Iterable[Startable]) -> None:
    """Close all of them, last one first, even when closing one fails."""
    with contextlib.ExitStack() as stack:
        for startable in startables:
            stack.callback(startable.close)
