"""Processes the controller's events: one owner, one event at a time, first in, first out.

Source: ``ControllerEventManager``. Which events jump the queue, and which become one while they
wait, is said in :mod:`regent.controller.event_merging`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from typing import Final, Protocol

from regent.controller.active_controller import ActiveController
from regent.controller.controller_state import ControllerState
from regent.controller.event_merging import EventQueue
from regent.controller.events import (
    AnsweredEvent,
    ControllerEvent,
    LeaderAndIsrResponseReceived,
    Shutdown,
)
from regent.controller.kafka_controller import KafkaController
from regent.runtime.collector import Collector
from regent.runtime.command_reply import refuse_if_given_up
from regent.runtime.interpreter import Interpreter

logger = logging.getLogger(__name__)

FORMER_KEPT_S: Final = 10.0
"""How long what a former term knew is kept. To free a million partitions takes some tenths of a
second, in one step: not while brokers wait for the term that may have begun in the same event."""

NO_MEMORY_PAUSE_S: Final = 1.0
"""Until an event is put again for which there was no memory."""


class EventObserver(Protocol):
    """Counts every processed event, for metrics."""

    def processed(self, state: ControllerState, *, queued_ms: float, took_ms: float) -> None:
        """``queued_ms`` is that of the oldest of the events that became this one."""
        ...


class ControllerEventManager:
    """Processes events until it is stopped. Methods belong to the controller's loop, except
    :attr:`queue_size`, :attr:`state` and :attr:`busy_since`, which anybody may read.

    Attributes:
        state: What is being done now.
        busy_since: Monotonic time at which the event in progress began, None when idle.
    """

    def __init__(
        self, controller: KafkaController, *, observer: EventObserver, collector: Collector
    ) -> None:
        self._controller = controller
        self._observer = observer
        self._collector = collector
        self._queue = EventQueue()
        self._kept: deque[ControllerEvent] = deque()
        self._next_attempt: asyncio.TimerHandle | None = None
        self._wake = asyncio.Event()
        self.state = ControllerState.IDLE
        self.busy_since: float | None = None
        self._former: asyncio.TimerHandle | None = None

    @property
    def queue_size(self) -> int:
        return len(self._queue) + len(self._kept)

    @property
    def is_idle(self) -> bool:
        """Whether no event is in progress, and none waits."""
        return self.busy_since is None and not self.queue_size

    def put(self, event: ControllerEvent) -> None:
        """Append an event, or merge it with one that waits.

        Most events are said once: nobody repeats that this replica is elected, or that a timer has
        fired. So one for which there is no memory is kept, with those that come after it, and put
        again in their order. A request fails instead: somebody waits for its answer.

        Raises:
            MemoryError: There is none for a request, which is answered.
        """
        if isinstance(event, AnsweredEvent) and not isinstance(event, Shutdown):
            self._append(event)
        else:
            self._kept.append(event)
            self._put_kept()

    def _append(self, event: ControllerEvent) -> None:
        self._queue.put(event, now=time.monotonic())
        self._wake.set()

    def _put_kept(self) -> None:
        """Put what is kept, the oldest first, as far as there is memory. A defect costs the event
        that has it, and no other."""
        while self._kept:
            try:
                self._append(self._kept[0])
            except MemoryError:
                self._put_later()
                logger.error(
                    "No memory for an event of the controller; it is put again",
                    extra={"event": type(self._kept[0]).__name__},
                )
                return
            except Exception:
                self._kept.popleft()
                if self._kept:
                    self._put_later()
                raise
            self._kept.popleft()

    def _put_later(self) -> None:
        if self._next_attempt is None:
            loop = asyncio.get_running_loop()
            self._next_attempt = loop.call_later(NO_MEMORY_PAUSE_S, self._put_again)

    def _put_again(self) -> None:
        self._next_attempt = None
        self._put_kept()

    def unread(self) -> frozenset[int]:
        """Brokers of which an answer about leadership waits."""
        waiting = self._queue.members(LeaderAndIsrResponseReceived)
        return frozenset(response.broker_id for response in waiting)

    async def run(self, interpreter: Interpreter) -> None:
        """Process events until cancelled, between two effects."""
        while True:
            while not len(self._queue):
                self._wake.clear()
                await self._wake.wait()
            event, queued_at = self._queue.take()
            if refuse_if_given_up(event):
                continue
            began = self.busy_since = time.monotonic()
            self.state = event.state
            was_active = self._controller.active
            with self._collector.paused():
                await interpreter.drive(self._controller.process(event))
                await asyncio.sleep(0)  # answers leave before the gauges are read
                if self._controller.active is not was_active:
                    self._collector.population_changed(
                        is_active=self._controller.active is not None
                    )
                    if was_active is not None:
                        self._keep_for_a_while(was_active)
                was_active = None
            self.state, self.busy_since = ControllerState.IDLE, None
            self._observer.processed(
                event.state,
                queued_ms=(began - queued_at) * 1000,
                took_ms=(time.monotonic() - began) * 1000,
            )

    def _keep_for_a_while(self, former: ActiveController) -> None:
        """One at a time: terms may follow each other fast, and each knows the whole cluster."""
        if self._former is not None:
            self._former.cancel()
        loop = asyncio.get_running_loop()
        self._former = loop.call_later(FORMER_KEPT_S, self._let_go, former)

    def _let_go(self, former: ActiveController) -> None:
        """The last reference to it ends with this call."""
        self._former = None
