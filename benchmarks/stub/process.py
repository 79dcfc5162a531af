"""The benchmark's handle on the stub brokers' process."""

import multiprocessing
import signal
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.stub.exchanges import Exchange, StubStatus
from benchmarks.stub.server import FORGET, STATUS, TAKE, serve

_ANSWER_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 5.0


class StubBrokers:
    """Stub brokers in a process of their own, for the length of a `with` block.

    The process ends by itself when this one does, however this one ends. `ports` are known once it
    has started. With a `zookeeper`, followers get in sync there as soon as they are informed.
    """

    def __init__(
        self,
        broker_ids: Sequence[int],
        *,
        config: Mapping[str, str],
        zookeeper: str | None = None,
    ) -> None:
        self.broker_ids = tuple(broker_ids)
        self.ports: dict[int, int] = {}
        context = multiprocessing.get_context("spawn")
        self._commands, theirs = context.Pipe()
        self._process = context.Process(
            target=_main,
            args=(theirs, self.broker_ids, dict(config), zookeeper),
            name="stub-brokers",
        )
        self._theirs: Connection | None = theirs

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process.pid is not None
        return self._process.pid

    def __enter__(self) -> "StubBrokers":
        self._process.start()
        assert self._theirs is not None
        self._theirs.close()  # so that the process sees the end of this one
        self._theirs = None
        try:
            self.ports = self._receive()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._commands.close()
        self._process.join(_END_TIMEOUT_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(_END_TIMEOUT_S)

    def status(self) -> StubStatus:
        """What they have seen since `forget` or `take`."""
        status = self._ask(STATUS)
        assert isinstance(status, StubStatus)
        return status

    def take(self) -> list[Exchange]:
        """All control requests since the last `forget` or `take`, in the order of their answers."""
        exchanges = self._ask(TAKE)
        assert isinstance(exchanges, list)
        return exchanges

    def forget(self) -> None:
        """Drop what they have seen."""
        self._ask(FORGET)

    def wait_until_quiet(self, *, quiet_s: float, timeout_s: float) -> None:
        """Wait until no request has been under way for a while.

        Raises:
            BenchmarkError: there was always one.
        """
        deadline = time.monotonic() + timeout_s
        while not self.is_quiet(self.status(), quiet_s=quiet_s):
            if time.monotonic() > deadline:
                raise BenchmarkError(f"after {timeout_s:g} s there still are requests")
            time.sleep(quiet_s / 10)

    @staticmethod
    def is_quiet(status: StubStatus, *, quiet_s: float) -> bool:
        """No request is under way, and none was for a while."""
        idle_ns = time.monotonic_ns() - status.last_activity_at
        return not status.busy and idle_ns >= quiet_s * 1e9

    def _ask(self, command: str) -> Any:
        self._commands.send(command)
        return self._receive()

    def _receive(self) -> Any:
        try:
            if self._commands.poll(_ANSWER_TIMEOUT_S):
                return self._commands.recv()
        except (EOFError, OSError) as error:
            raise BenchmarkError("the stub brokers' process has died") from error
        raise BenchmarkError("the stub brokers' process does not answer")


def _main(
    commands: Connection,
    broker_ids: Sequence[int],
    config: Mapping[str, str],
    zookeeper: str | None,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the benchmark's: it ends this one
    serve(commands, broker_ids, config, zookeeper)
