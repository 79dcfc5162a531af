"""Requests of brokers on their way to a controller, and its answers on their way back.

Each request is a call on a connection of its own life: whoever ends the connection, the broker
learns of that and asks again. What it had sent before may still arrive, and is then answered to
nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regent.controller import events as e
from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    Asked,
)
from regent.controller.commands import ControlledShutdown
from regent.model.errors import MalformedZNodeError
from regent.zk_data import paths
from regent.zk_data.controller import decode_controller
from tests.simulation.driver import FIRST_CONTROLLER_ID, RegentProcess
from tests.simulation.rival import RivalController
from tests.simulation.trace import require

if TYPE_CHECKING:
    from tests.simulation.broker import SimulatedBroker
    from tests.simulation.world import World

BrokerRequest = AlterPartitionRequest | AllocateProducerIdsRequest | ControlledShutdown
Controller = RegentProcess | RivalController


@dataclass(eq=False, slots=True)
class Call:
    """One request on one connection.

    Attributes:
        life: What of the broker ends with its process: an answer to a former life has no receiver.
        is_abandoned: Whether the broker does not wait any more.
    """

    number: int
    broker: SimulatedBroker
    life: object
    controller: Controller
    request: BrokerRequest
    answered: Callable[[Any], None]
    closed: Callable[[], None]
    has_arrived: bool = False
    answer: Any = None
    is_abandoned: bool = False

    def __str__(self) -> str:
        return f"#{self.number} of {self.broker} to {self.controller.name}"


class Endpoint:
    """All calls. Those that a process has and has not answered are owed by it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._calls: list[Call] = []
        self._number = 0
        self._is_held_back = False

    # Brokers

    def controller_by_metadata(self, broker: SimulatedBroker) -> Controller | None:
        """Whom a broker takes for the controller by UpdateMetadata; None: nobody who is alive."""
        found = broker.announced_controller_id
        if found not in broker.known_brokers and found != broker.announced_id:
            return None
        return self._controller(found)

    def controller_by_zookeeper(self) -> Controller | None:
        """Whom ``/controller`` names, for brokers before 3.0 that stop."""
        node = self._world.zookeeper.get(paths.CONTROLLER)
        try:
            return None if node is None else self._controller(decode_controller(node.data))
        except MalformedZNodeError:
            return None

    def _controller(self, controller_id: int) -> Controller | None:
        slot = controller_id - FIRST_CONTROLLER_ID
        for process in self._world.regents:
            if process.slot == slot:
                return process if process.is_alive else None
        if not self._world.swarm.rivals or controller_id not in self._world.brokers:
            return None
        is_up = self._world.brokers[controller_id].is_running
        rivals = (r for r in self._world.rivals if r.broker_id == controller_id)
        return next(rivals) if is_up else None

    def call(
        self,
        broker: SimulatedBroker,
        controller: Controller,
        request: BrokerRequest,
        *,
        answered: Callable[[Any], None],
        closed: Callable[[], None],
    ) -> Call:
        """A broker sends a request."""
        self._number += 1
        call = Call(self._number, broker, broker.requests, controller, request, answered, closed)
        self._calls.append(call)
        self._world.trace.line(broker.name, "asks", f"{call} {request}")
        return call

    # On the way

    def act(self) -> bool:
        """A request or an answer arrives, or is lost. Whether there was anything on its way."""
        ready = [call for call in self._calls if self._can_move(call)]
        if not ready:
            return False
        call = self._world.rng.choice(ready)
        if not call.has_arrived:
            self._deliver(call)
        else:
            self._deliver_answer(call)
        return True

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """What is on its way does not move meanwhile."""
        self._is_held_back = True
        try:
            yield
        finally:
            self._is_held_back = False

    def deliver_all(self) -> None:
        """What is on its way to a controller is there."""
        for call in [call for call in self._calls if not call.has_arrived]:
            self._deliver(call)

    def _can_move(self, call: Call) -> bool:
        if self._is_held_back or (call.has_arrived and call.answer is None):
            return False
        if not call.controller.is_awake and call.answer is None:
            return False
        if self._world.network.is_cut(call.controller.name, call.broker.broker_id):
            return False
        return call.is_abandoned or not self._is_awaited(call) or call.broker.is_responsive

    def _is_awaited(self, call: Call) -> bool:
        return call.broker.is_running and call.broker.requests is call.life

    def _deliver(self, call: Call) -> None:
        controller = call.controller
        if isinstance(controller, RivalController):
            answer = controller.answer(call.request)
            if answer is None:
                self._close(call)
            else:
                call.has_arrived, call.answer = True, answer
            return
        if not controller.is_alive:
            self._close(call)
            return
        call.has_arrived = True
        self._world.trace.line(controller.name, "is asked", call)
        controller.put(_event(call))

    def _deliver_answer(self, call: Call) -> None:
        self._calls.remove(call)
        if call.is_abandoned or not self._is_awaited(call):
            return
        if self._happens(self._world.swarm.lost_answers, "lose_endpoint_answer"):
            self._world.trace.line("network", "loses answer", call)
            call.closed()
        else:
            self._world.trace.line(call.broker.name, "is answered", f"{call} {call.answer}")
            call.answered(call.answer)

    def _happens(self, probability: float, fault: str) -> bool:
        if not self._world.is_turbulent or self._world.rng.random() >= probability:
            return False
        self._world.faults.counts[fault] += 1
        return True

    def _close(self, call: Call) -> None:
        self._calls.remove(call)
        if not call.is_abandoned and self._is_awaited(call):
            self._world.trace.line(call.broker.name, "is disconnected", call)
            call.closed()

    def break_connection(self) -> bool:
        """A broker's connection breaks; what it has sent is lost, or arrives all the same."""
        waiting = [c for c in self._calls if not c.is_abandoned and self._is_awaited(c)]
        if not waiting:
            return False
        call = self._world.rng.choice(waiting)
        self._world.trace.line("network", "breaks connection", call)
        call.is_abandoned = True
        if not call.has_arrived and not self._world.swarm.strays:
            self._calls.remove(call)
        call.closed()
        return True

    # Regent

    def respond(self, process: RegentProcess, call: Call, answer: Any) -> None:
        """A process answers a request: one that it has, and only once."""
        require(
            call in self._calls and call.controller is process and call.answer is None,
            f"{process} answers {call}, which it does not owe: {answer}",
        )
        self._world.safety.broker_requests.answered(process, call.request, answer)
        call.answer = answer

    def event_ended(self, process: RegentProcess) -> None:
        """Who has nothing left to do owes no answer."""
        owed = [str(call) for call in self._calls if call.controller is process and _is_owed(call)]
        require(not owed or not process.is_idle, f"{process} owes answers for ever: {owed}")

    def process_ended(self, process: RegentProcess) -> None:
        """A dead process has no connections. An answer that it has sent may still arrive."""
        for call in [c for c in self._calls if c.controller is process and c.answer is None]:
            self._close(call)

    @property
    def is_idle(self) -> bool:
        return not self._calls

    def describe(self) -> str:
        """What is on its way, or owed."""
        return "; ".join(str(call) for call in self._calls)


def _is_owed(call: Call) -> bool:
    return call.has_arrived and call.answer is None


def _event(call: Call) -> e.ControllerEvent:
    match call.request:
        case AlterPartitionRequest():
            return e.AlterPartitionReceived((Asked(call.request, call),))
        case AllocateProducerIdsRequest():
            return e.AllocateProducerIdsReceived((Asked(call.request, call),))
    return e.commands_received((call.request,), reply_to=call)
