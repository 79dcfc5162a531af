"""The controller's event queue: one owner, one event at a time, first in, first out.

Source: ``ControllerEventManager``. The expiry of the session jumps the queue: what waits there was
meant for a controller that no longer exists, finds that out, and whoever asked is answered.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Protocol

from regent.controller.events import ControllerEvent, ControllerState, Expire
from regent.controller.kafka_controller import KafkaController
from regent.runtime.collector import Collector
from regent.runtime.interpreter import Interpreter


class EventObserver(Protocol):
    """Is told of every processed event, for metrics."""

    def processed(self, state: ControllerState, *, queued_ms: float, took_ms: float) -> None: ...


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
        self._queue: deque[tuple[float, ControllerEvent]] = deque()
        self._wake = asyncio.Event()
        self.state = ControllerState.IDLE
        self.busy_since: float | None = None

    @property
    def queue_size(self) -> int:
        return len(self._queue)

    def put(self, event: ControllerEvent) -> None:
        """Append an event; an :class:`Expire` goes to the front."""
        entry = (time.monotonic(), event)
        if isinstance(event, Expire):
            self._queue.appendleft(entry)
        else:
            self._queue.append(entry)
        self._wake.set()

    async def run(self, interpreter: Interpreter) -> None:
        """Process events for ever; ends by cancellation, between two effects."""
        while True:
            while not self._queue:
                self._wake.clear()
                await self._wake.wait()
            queued_at, event = self._queue.popleft()
            began = self.busy_since = time.monotonic()
            self.state = event.state
            was_active = self._controller.active
            with self._collector.paused():
                await interpreter.drive(self._controller.process(event))
                if self._controller.active is not was_active:
                    self._collector.population_changed(
                        is_active=self._controller.active is not None
                    )
            self.state, self.busy_since = ControllerState.IDLE, None
            self._observer.processed(
                event.state,
                queued_ms=(began - queued_at) * 1000,
                took_ms=(time.monotonic() - began) * 1000,
            )
