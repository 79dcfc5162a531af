"""The event queue: one event at a time, in order, answered in any case."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from regent.admin.commands import CreateTopic, Reason
from regent.controller import events as e
from regent.controller.controller_state import ControllerState
from regent.controller.event_merging import EventQueue
from regent.runtime import controller_event_manager
from regent.runtime.collector import Collector
from regent.runtime.command_reply import CommandReply
from regent.runtime.controller_event_manager import ControllerEventManager
from sandbox.waiting import DEADLINE_S
from tests.unit.runtime.worlds import Process


class Counts:
    """What was processed, in order."""

    def __init__(self) -> None:
        self.states: list[ControllerState] = []
        self.changed = asyncio.Event()

    def processed(self, state: ControllerState, *, queued_ms: float, took_ms: float) -> None:
        assert queued_ms >= 0
        assert took_ms >= 0
        self.states.append(state)
        self.changed.set()

    async def until(self, number: int) -> None:
        """Wait until so many events have been processed."""
        async with asyncio.timeout(DEADLINE_S):
            while len(self.states) < number:
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def running(process: Process) -> AsyncIterator[tuple[ControllerEventManager, Counts]]:
    """A manager whose loop runs once the body awaits."""
    counts = Counts()
    manager = ControllerEventManager(process.controller, observer=counts, collector=Collector())
    task = asyncio.create_task(manager.run(process.interpreter))
    try:
        yield manager, counts
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_events_are_processed_in_order() -> None:
    async with running(Process()) as (manager, counts):
        for event in (e.Startup(), e.BrokerChange(), e.TopicChange()):
            manager.put(event)
        assert manager.queue_size == 3
        await counts.until(3)
        assert counts.states == [
            ControllerState.CONTROLLER_CHANGE,
            ControllerState.BROKER_CHANGE,
            ControllerState.TOPIC_CHANGE,
        ]
        assert manager.queue_size == 0
        assert manager.state is ControllerState.IDLE
        assert manager.busy_since is None


class MemoryShortage:
    """A queue that has no room for the next few events."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, failures: int) -> None:
        self.failures = failures
        self._put = EventQueue.put
        monkeypatch.setattr(EventQueue, "put", lambda *args, **kwargs: self.put(*args, **kwargs))
        monkeypatch.setattr(controller_event_manager, "NO_MEMORY_PAUSE_S", 0.01)

    def put(self, queue: EventQueue, event: e.ControllerEvent, *, now: float) -> None:
        if self.failures:
            self.failures -= 1
            raise MemoryError("no room")
        self._put(queue, event, now=now)


async def test_replica_leads_after_a_memory_shortage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else says that it is elected."""
    MemoryShortage(monkeypatch, failures=3)
    process = Process()
    async with running(process) as (manager, counts):
        manager.put(e.Eligible())
        assert manager.queue_size == 1
        assert not manager.is_idle
        await counts.until(1)
        assert process.controller.active is not None
        assert manager.queue_size == 0


async def test_request_without_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    MemoryShortage(monkeypatch, failures=1)
    async with running(Process()) as (manager, _):
        with pytest.raises(MemoryError):
            manager.put(e.CommandsReceived((CreateTopic("t", 1),), reply_to=list[Any]().append))
        assert manager.queue_size == 0


async def test_a_stop_waits_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    MemoryShortage(monkeypatch, failures=2)
    process = Process()
    async with running(process) as (manager, counts):
        manager.put(e.Shutdown(reply_to=list[Any]().append))
        await counts.until(1)
        assert counts.states == [ControllerState.CONTROLLER_SHUTDOWN]


async def test_commands_that_nobody_waits_for_any_more_are_not_carried_out() -> None:
    """Their caller has given up, and may have said that the topic stays."""
    process = Process()
    async with running(process) as (manager, counts):
        manager.put(e.Eligible())
        await counts.until(1)
        replies = [CommandReply(concurrent.futures.Future()) for _ in range(2)]
        for name, reply in zip(("given-up", "awaited"), replies, strict=True):
            manager.put(e.CommandsReceived((CreateTopic(name, 1),), reply_to=reply))
        replies[0].is_given_up = True
        await counts.until(2)
    assert all(reply.future.done() for reply in replies)
    ((refused,), (answered,)) = (reply.future.result() for reply in replies)
    assert refused.reason is Reason.NOT_CONTROLLER
    assert answered.reason is not Reason.NOT_CONTROLLER, "there are no brokers"
    assert counts.states[1:] == [ControllerState.COMMAND]


async def test_failover_hides_the_state_from_the_collector_until_the_state_is_dropped() -> None:
    process = Process()
    before = gc.get_freeze_count()
    async with running(process) as (manager, counts):
        manager.put(e.Eligible())
        await counts.until(1)
        assert gc.get_freeze_count() > before
        assert gc.isenabled()
        done = asyncio.Event()
        manager.put(e.Shutdown(reply_to=partial(_set, done)))
        await counts.until(2)
        assert done.is_set()
        assert gc.get_freeze_count() == 0


def _set(event: asyncio.Event, _: object) -> None:
    event.set()


async def test_no_more_than_one_former_term_is_kept() -> None:
    process = Process()
    async with running(process) as (manager, counts):
        manager.put(e.Eligible())
        await counts.until(1)
        first = asyncio.Event()
        weakref.finalize(process.controller.active, first.set)
        for event in (e.Expire(), e.Eligible(), e.Expire()):
            assert not first.is_set()
            manager.put(event)
            await counts.until(len(counts.states) + 1)
        assert first.is_set()


async def test_events_keep_order_without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    shortage = MemoryShortage(monkeypatch, failures=1)
    process = Process()
    async with running(process) as (manager, counts):
        manager.put(e.Eligible())
        assert not shortage.failures
        manager.put(e.NotEligible())
        await counts.until(2)
        assert not process.controller.life.is_eligible
        assert process.controller.active is None


async def test_queue_loses_one_event_when_an_error_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shortage = MemoryShortage(monkeypatch, failures=1)
    process = Process()
    async with running(process) as (manager, counts):
        manager.put(e.TopicChange())
        assert not shortage.failures
        with monkeypatch.context() as defect:

            def fail(*_: object, **__: object) -> None:
                raise ValueError("unexpected")

            defect.setattr(EventQueue, "put", fail)
            with pytest.raises(ValueError, match="unexpected"):
                manager.put(e.Eligible())
        await counts.until(1)
        assert process.controller.active is not None
