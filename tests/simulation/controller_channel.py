"""A broker's channel to the controller: one request at a time, sent until it is answered.

Source: ``NodeToControllerChannelManager``. Who the controller is, UpdateMetadata says. A connection
that ends, and the answer of a process that is not the controller, have it looked up again; the same
request goes to whoever is found, as it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from regent.protocol.error_codes import NOT_CONTROLLER
from tests.simulation.isr_change_requests import IsrChangeRequests
from tests.simulation.producer_ids import ProducerIds

if TYPE_CHECKING:
    from tests.simulation.broker import SimulatedBroker
    from tests.simulation.endpoint import BrokerRequest, Controller
    from tests.simulation.world import World

LOOK_AGAIN_MS = 100
"""retry.backoff.ms of the channel."""


class _Waiting(NamedTuple):
    request: BrokerRequest
    answered: Callable[[Any], None]


class ControllerChannel:
    """What one life of a broker asks the controller."""

    def __init__(self, world: World, broker: SimulatedBroker) -> None:
        self._world = world
        self._broker = broker
        self._queue: deque[_Waiting] = deque()
        self._is_asking = False
        self._may_ask = True
        self._controller: Controller | None = None
        self.isr_changes = IsrChangeRequests(world, broker, self)
        self.producer_ids = ProducerIds(world, broker, self)

    @property
    def is_idle(self) -> bool:
        return not self._queue

    def send(self, request: BrokerRequest, answered: Callable[[Any], None]) -> None:
        """Append a request."""
        self._queue.append(_Waiting(request, answered))

    def act(self) -> bool:
        """Send the first request, if there is a controller to send it to."""
        if not self._queue or self._is_asking or not self._may_ask:
            return False
        if self._controller is None:
            self._controller = self._world.endpoint.controller_by_metadata(self._broker)
        if self._controller is None:
            return False
        self._is_asking = True
        self._world.endpoint.call(
            self._broker,
            self._controller,
            self._queue[0].request,
            answered=self._answered,
            closed=self._closed,
        )
        return True

    def _answered(self, answer: Any) -> None:
        results = getattr(answer, "results", ())
        if NOT_CONTROLLER in (answer.error_code, *(result.error_code for result in results)):
            self._closed()
            return
        self._is_asking = False
        self._queue.popleft().answered(answer)

    def _closed(self) -> None:
        self._is_asking = self._may_ask = False
        self._controller = None

        def look_again() -> None:
            self._may_ask = True

        self._world.clock.after(LOOK_AGAIN_MS, look_again)
