"""Channels from controllers to brokers: one request in flight, repeated until answered.

Regent's channels hold what waits in the very class that the real ones use. Those of a broker's own
controller queue every request.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from regent.protocol.control_requests import (
    ControlRequest,
    ControlRequests,
    ControlResponse,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from tests.support.unmerged_requests import requests_to

if TYPE_CHECKING:
    from tests.simulation.world import World

LATE_ANSWERS = 20
"""How many answers of a channel may arrive once more after its end."""


def describe(request: ControlRequest) -> str:
    """What a request says."""
    match request:
        case LeaderAndIsrRequest():
            about = ", ".join(
                f"{tp} {s.leader}/{s.leader_epoch}{list(s.isr)}{' new' if is_new else ''}"
                for tp, is_new in request.partitions.items()
                for s in (request.states[tp].leader_and_isr,)
            )
        case UpdateMetadataRequest():
            updates = request.updates
            about = f"live={list(request.brokers.brokers)} " + ", ".join(
                f"{tp} gone"
                if tp in updates.deleted
                else f"{tp} {s.leader}/{s.leader_epoch}{list(s.isr)}"
                for tp, state in updates.partitions.items()
                for s in (state.leader_and_isr,)
            )
        case StopReplicaRequest():
            about = ", ".join(
                f"{tp}{' delete' if stop.delete else ''}" for tp, stop in request.partitions.items()
            )
        case _:
            about = ""
    return f"e{request.header.controller_epoch} {about}"


def name_of(request: ControlRequest) -> str:
    """Kafka's name of the kind of request."""
    return type(request).__name__.removesuffix("Request")


class Waiting(Protocol):
    """What waits for a broker."""

    def __bool__(self) -> bool: ...

    def take(self) -> ControlRequest:
        """The next request."""
        ...


class RequestQueue:
    """Every request of every batch to one broker, as Kafka's own controller has it."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._requests: deque[ControlRequest] = deque()

    def __bool__(self) -> bool:
        return bool(self._requests)

    def add(self, batch: ControlRequests) -> None:
        """Append what a batch has for the broker."""
        self._requests += requests_to(batch, self._broker_id)

    def take(self) -> ControlRequest:
        return self._requests.popleft()


class Sender(Protocol):
    """A controller, Regent or a broker's own."""

    name: str

    @property
    def can_send(self) -> bool:
        """False while the process is paused, or does not know whether it is the controller."""
        ...

    def receive(self, response: ControlResponse) -> None: ...


WaitingT = TypeVar("WaitingT", bound=Waiting)


class Channel(Generic[WaitingT]):
    """From one controller to one life of one broker."""

    def __init__(self, sender: Sender, broker_id: int, waiting: WaitingT) -> None:
        self.sender = sender
        self.broker_id = broker_id
        self.waiting = waiting
        self.in_flight: ControlRequest | None = None
        self.response: ControlResponse | None = None
        self.answers: deque[ControlResponse] = deque(maxlen=LATE_ANSWERS)

    @property
    def is_busy(self) -> bool:
        return self.in_flight is not None or bool(self.waiting)

    def request(self) -> ControlRequest:
        """The request in flight; the next one, if there is none."""
        if self.in_flight is None:
            self.in_flight = self.waiting.take()
        return self.in_flight


class Network:
    """All channels, cut links, and requests whose sender is gone but which may still arrive."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._channels: list[Channel[Any]] = []
        self._cut: dict[tuple[str, int], None] = {}
        self._strays: list[ControlRequest] = []
        self._late: deque[tuple[Sender, ControlResponse]] = deque(maxlen=LATE_ANSWERS)

    def open(self, sender: Sender, broker_id: int, waiting: WaitingT) -> Channel[WaitingT]:
        channel = Channel(sender, broker_id, waiting)
        self._channels.append(channel)
        return channel

    def close(self, channel: Channel[Any]) -> None:
        """Drop what waits. What had left the sender may still reach the broker."""
        self._channels.remove(channel)
        may_stray = self._world.swarm.strays and self._world.is_turbulent
        if channel.is_busy and channel.response is None and may_stray:
            self._strays.append(channel.request())
        self._late.extend((channel.sender, answer) for answer in channel.answers)
        channel.answers.clear()

    def cut(self, sender: str, broker_id: int, duration_ms: int) -> None:
        """Nothing passes between the two for some time."""
        self._cut[sender, broker_id] = None
        self._world.clock.after(duration_ms, lambda: self._cut.pop((sender, broker_id), None))

    def is_cut(self, sender: str, broker_id: int) -> bool:
        return (sender, broker_id) in self._cut

    def heal(self) -> None:
        """All links work again; strays arrive now or never."""
        self._cut.clear()

    def is_busy(self, sender: Sender) -> bool:
        """Whether a controller has something to send, or waits for an answer."""
        return any(c.is_busy and c.sender is sender for c in self._channels)

    @property
    def is_idle(self) -> bool:
        return not self._strays and not any(c.is_busy for c in self._channels)

    def describe(self) -> str:
        """What is still on its way."""
        return "; ".join(
            f"{c.sender.name} to {c.broker_id}: {name_of(c.request())}"
            for c in self._channels
            if c.is_busy
        )

    def act(self) -> bool:
        """Deliver one request or one response. Whether there was anything to deliver."""
        rng = self._world.rng
        if self._strays and rng.random() < 0.2:
            self._deliver_stray(self._strays.pop(rng.randrange(len(self._strays))))
            return True
        ready = [c for c in self._channels if c.is_busy and self._can_pass(c)]
        if not ready:
            if self._strays:
                self._deliver_stray(self._strays.pop())
                return True
            return False
        channel = rng.choice(ready)
        if channel.response is not None:
            response, channel.response, channel.in_flight = channel.response, None, None
            channel.answers.append(response)
            channel.sender.receive(response)
            if self._world.is_turbulent and rng.random() < self._world.swarm.repeated_answers:
                self._world.faults.counts["repeat_answer"] += 1
                channel.sender.receive(response)
            return True
        self._world.safety.requests.leaves(channel.sender, channel.request())
        response = self._deliver(channel.sender.name, channel.request())
        if self._world.is_turbulent and rng.random() < self._world.swarm.lost_answers:
            self._world.trace.line("network", "loses answer", f"of broker-{channel.broker_id}")
            self._world.faults.counts["lose_answer"] += 1
        else:
            channel.response = response
        return True

    def _can_pass(self, channel: Channel[Any]) -> bool:
        return (
            channel.sender.can_send
            and self._world.brokers[channel.broker_id].is_responsive
            and not self.is_cut(channel.sender.name, channel.broker_id)
        )

    def deliver_late_answer(self) -> bool:
        """A sender gets an answer to a channel that it has closed since. Whether there is one.

        It may be the second time: the first was dropped or not, as the sender had it then.
        """
        if not self._late:
            return False
        sender, response = self._late.popleft()
        self._world.trace.line(
            "network", "answers late", f"{sender.name} broker-{response.broker_id} {response}"
        )
        sender.receive(response)
        return True

    def _deliver_stray(self, request: ControlRequest) -> None:
        if self._world.brokers[request.header.broker_id].is_responsive:
            self._world.faults.counts["late_request"] += 1
            self._deliver("stray", request)

    def _deliver(self, sender: str, request: ControlRequest) -> ControlResponse:
        broker = self._world.brokers[request.header.broker_id]
        self._world.trace.line(
            broker.name, f"< {name_of(request)}", f"{sender} {describe(request)}"
        )
        response = broker.handle(request)
        if response.error_code or getattr(response, "partition_errors", None):
            errors = {str(tp): c for tp, c in getattr(response, "partition_errors", {}).items()}
            self._world.trace.line(broker.name, "> refuses", f"{response.error_code} {errors}")
        return response
