"""A process that has slept sends nothing before ZooKeeper has confirmed its term."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from regent.connections.sending_right import SendingRight, elapsed
from regent.model.errors import (
    SessionExpiredError,
    UnexpectedZooKeeperError,
    ZooKeeperUnavailableError,
)
from regent.simulation.zookeeper import InMemoryClient, InMemoryZooKeeper
from regent.zk_data import paths
from regent.zk_data.operations import Create, Delete, Operation, SetData, WriteResult
from tests.simulation.zookeeper_ports import InMemoryZooKeeperPort
from tests.support.event_loop import until_idle

PAUSE_S = 0.5
WAIT_S = 60.0


class Port(InMemoryZooKeeperPort):
    """Answers when the test lets it.

    Attributes:
        asked: How often it was asked.
        may_answer: Cleared: questions wait.
        failures: What the next questions end in.
    """

    def __init__(self, client: InMemoryClient) -> None:
        super().__init__(client)
        self.asked = 0
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.failures: list[Exception] = []

    async def multi(self, operations: Sequence[Operation]) -> Sequence[WriteResult]:
        self.asked += 1
        self.was_asked.set()
        if self.failures:
            raise self.failures.pop(0)
        results = await super().multi(operations)
        await self.may_answer.wait()
        return results


class Process:
    """A controller, and the clock that it looks at."""

    def __init__(self) -> None:
        self.now = 100.0
        self.is_fenced = False
        self.server = InMemoryZooKeeper()
        self.client = self.server.connect()
        self.other = self.server.connect()
        self.client.multi([Create("/brokers"), Create(paths.CONTROLLER_EPOCH, b"1")])
        self.client.multi([Create(paths.CONTROLLER, b"me", ephemeral=True)])
        self.port = Port(self.client)
        self.right = SendingRight(
            self.port,
            is_fenced=lambda: self.is_fenced,
            pause_s=PAUSE_S,
            clock=lambda: self.now,
        )

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def elect_another(self) -> None:
        self.other.multi(
            [
                SetData(paths.CONTROLLER_EPOCH, b"2"),
                Delete(paths.CONTROLLER),
                Create(paths.CONTROLLER, b"another", ephemeral=True),
            ]
        )

    async def wait_until_it_may(self) -> None:
        async with asyncio.timeout(WAIT_S):
            while not self.right.may_send():
                await self.right.wait(WAIT_S)


@asynccontextmanager
async def controller() -> AsyncIterator[Process]:
    process = Process()
    process.right.set_term(0)
    try:
        yield process
    finally:
        await process.right.close()


async def test_one_that_has_not_slept_sends_without_asking() -> None:
    async with controller() as process:
        for _ in range(10):
            process.pause(PAUSE_S)
            assert process.right.may_send()
        assert process.port.asked == 0


async def test_without_a_term_nothing_is_sent() -> None:
    async with controller() as process:
        process.right.set_term(None)
        assert not process.right.may_send()
        process.right.set_term(0)
        assert process.right.may_send()
        assert process.port.asked == 0


async def test_one_that_has_slept_asks_first() -> None:
    async with controller() as process:
        process.pause(2.0)
        assert not process.right.may_send()
        assert not process.right.may_send()
        await process.wait_until_it_may()
        assert process.port.asked == 1


def delete_node(process: Process) -> None:
    process.other.multi([Delete(paths.CONTROLLER)])


def end_session(process: Process) -> None:
    process.port.failures = [SessionExpiredError()]


@pytest.mark.parametrize("lose_term", [Process.elect_another, delete_node, end_session])
async def test_process_that_lost_its_term_sends_nothing(
    lose_term: Callable[[Process], None], caplog: pytest.LogCaptureFixture
) -> None:
    async with controller() as process:
        process.pause(2.0)
        lose_term(process)
        for _ in range(2):
            assert not process.right.may_send()
            await until_idle()
            assert not process.right.may_send()
            process.pause(20.0)
    assert process.port.asked == 1
    assert "Not the controller any more" in caplog.text


async def test_an_answer_from_before_another_pause_proves_nothing() -> None:
    async with controller() as process:
        process.port.may_answer.clear()
        process.pause(2.0)
        assert not process.right.may_send()
        await process.port.was_asked.wait()
        process.pause(2.0)  # the answer has come, and nobody has looked at it or at the clock
        process.elect_another()
        process.port.may_answer.set()
        await until_idle()
        assert not process.right.may_send()
        assert process.port.asked == 2


async def test_nothing_is_sent_until_there_is_an_answer() -> None:
    async with controller() as process:
        process.port.failures = [
            ZooKeeperUnavailableError("the connection was lost"),
            UnexpectedZooKeeperError("NO_AUTH", paths.CONTROLLER_EPOCH),
        ]
        process.pause(2.0)
        assert not process.right.may_send()
        await process.wait_until_it_may()
        assert process.port.asked == 3


async def test_another_term_is_asked_about_for_itself() -> None:
    async with controller() as process:
        process.pause(2.0)
        process.elect_another()
        assert not process.right.may_send()
        await until_idle()
        process.right.set_term(None)
        assert not process.right.may_send()
        process.right.set_term(1)  # as if it had been elected itself
        await process.wait_until_it_may()
        assert process.port.asked == 2


async def test_a_standby_that_has_slept_asks_when_it_is_elected() -> None:
    async with controller() as process:
        process.right.set_term(None)
        process.pause(2.0)
        assert not process.right.may_send()
        await until_idle()
        assert process.port.asked == 0
        process.right.set_term(0)
        await process.wait_until_it_may()


async def test_the_fence_of_the_session_counts_besides() -> None:
    async with controller() as process:
        process.is_fenced = True
        assert not process.right.may_send()
        await process.right.wait(0.001)
        process.is_fenced = False
        assert process.right.may_send()


async def test_the_clock_is_looked_at_without_anything_to_send() -> None:
    """Else an idle controller would be in doubt about its next request."""
    async with controller() as process:
        process.right.start()
        process.pause(2.0)
        await process.port.was_asked.wait()


async def test_look_goes_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each request after a while would wait for a proof, and the log speak of sleep."""
    async with controller() as process:
        look, errors, looked = process.right._look, [MemoryError()], asyncio.Event()

        def fail_once() -> None:
            if errors:
                raise errors.pop()
            look()
            looked.set()

        monkeypatch.setattr(process.right, "_look", fail_once)
        with pytest.raises(MemoryError):
            process.right.start()
        async with asyncio.timeout(WAIT_S):
            await looked.wait()


def test_real_clock_goes_on() -> None:
    before = elapsed()
    assert elapsed() >= before
