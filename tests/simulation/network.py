"""Channels from controllers to brokers: ordered, one request in flight, repeated until answered."""

from __future__ import annotations

import enum
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from regent.protocol.control_requests import ControlRequests, ControlResponse
from tests.simulation.broker import SimulatedBroker

if TYPE_CHECKING:
    from tests.simulation.world import World


class Kind(enum.Enum):
    """A request of a batch to one broker. They are sent in this order."""

    LEADER_AND_ISR = "LeaderAndIsr"
    UPDATE_METADATA = "UpdateMetadata"
    STOP_REPLICA = "StopReplica"


class Request(NamedTuple):
    """What one broker gets of a batch."""

    kind: Kind
    receiver: int
    requests: ControlRequests

    def describe(self) -> str:
        sealed, receiver, about = self.requests, self.receiver, ""
        match self.kind:
            case Kind.LEADER_AND_ISR:
                about = ", ".join(
                    f"{tp} {s.leader}/{s.leader_epoch}{list(s.isr)}{' new' if is_new else ''}"
                    for tp, is_new in sealed.leader_and_isr[receiver].items()
                    for s in (sealed.partitions[tp].leader_and_isr,)
                )
            case Kind.UPDATE_METADATA:
                about = f"live={list(sealed.brokers)} " + ", ".join(
                    f"{tp} gone"
                    if tp in sealed.deleted_partitions
                    else f"{tp} {s.leader}/{s.leader_epoch}{list(s.isr)}"
                    for tp in sealed.update_metadata
                    for s in (sealed.partitions[tp].leader_and_isr,)
                )
            case Kind.STOP_REPLICA:
                about = ", ".join(
                    f"{tp}{' delete' if stop.delete else ''}"
                    for tp, stop in sealed.stop_replica[receiver].items()
                )
        return f"e{sealed.controller_epoch} {about}"


def requests_of(batch: ControlRequests) -> list[Request]:
    """A batch as requests, in the order of sending."""
    return [
        *(Request(Kind.LEADER_AND_ISR, b, batch) for b, named in batch.leader_and_isr.items()),
        *(Request(Kind.UPDATE_METADATA, b, batch) for b in batch.update_metadata_receivers),
        *(Request(Kind.STOP_REPLICA, b, batch) for b, named in batch.stop_replica.items()),
    ]


class Sender(Protocol):
    """A controller, Regent or a broker's own."""

    name: str

    @property
    def can_send(self) -> bool:
        """False while the process is paused."""
        ...

    def receive(self, response: ControlResponse) -> None: ...


class Channel:
    """From one controller to one life of one broker."""

    def __init__(self, sender: Sender, broker_id: int) -> None:
        self.sender = sender
        self.broker_id = broker_id
        self.queue: deque[Request] = deque()
        self.response: ControlResponse | None = None


class Network:
    """All channels, cut links, and requests whose sender is gone but which may still arrive."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._channels: list[Channel] = []
        self._cut: dict[tuple[str, int], None] = {}
        self._strays: list[Request] = []

    def open(self, sender: Sender, broker_id: int) -> Channel:
        channel = Channel(sender, broker_id)
        self._channels.append(channel)
        return channel

    def close(self, channel: Channel) -> None:
        """Drop the queue. What had left the sender may still reach the broker."""
        self._channels.remove(channel)
        may_stray = self._world.swarm.strays and self._world.is_turbulent
        if channel.queue and channel.response is None and may_stray:
            self._strays.append(channel.queue[0])
        channel.queue.clear()

    def cut(self, sender: str, broker_id: int, duration_ms: int) -> None:
        """Nothing passes between the two for some time."""
        self._cut[sender, broker_id] = None
        self._world.clock.after(duration_ms, lambda: self._cut.pop((sender, broker_id), None))

    def heal(self) -> None:
        """All links work again; strays arrive now or never."""
        self._cut.clear()

    @property
    def is_idle(self) -> bool:
        return not self._strays and not any(c.queue for c in self._channels)

    def describe(self) -> str:
        """What is still on its way."""
        return "; ".join(
            f"{c.sender.name} to {c.broker_id}: {c.queue[0].kind.value} and {len(c.queue) - 1} more"
            for c in self._channels
            if c.queue
        )

    def act(self) -> bool:
        """Deliver one request or one response. Whether there was anything to deliver."""
        rng = self._world.rng
        if self._strays and rng.random() < 0.2:
            self._deliver_stray(self._strays.pop(rng.randrange(len(self._strays))))
            return True
        ready = [c for c in self._channels if c.queue and self._can_pass(c)]
        if not ready:
            if self._strays:
                self._deliver_stray(self._strays.pop())
                return True
            return False
        channel = rng.choice(ready)
        if channel.response is not None:
            response, channel.response = channel.response, None
            channel.queue.popleft()
            channel.sender.receive(response)
            return True
        response = self._deliver(channel.sender.name, channel.queue[0])
        if self._world.is_turbulent and rng.random() < self._world.swarm.lost_answers:
            self._world.trace.line("network", "loses answer", f"of broker-{channel.broker_id}")
        else:
            channel.response = response
        return True

    def _can_pass(self, channel: Channel) -> bool:
        return (
            channel.sender.can_send
            and self._world.brokers[channel.broker_id].is_running
            and (channel.sender.name, channel.broker_id) not in self._cut
        )

    def _deliver_stray(self, request: Request) -> None:
        if self._world.brokers[request.receiver].is_running:
            self._deliver("stray", request)

    def _deliver(self, sender: str, request: Request) -> ControlResponse:
        broker = self._world.brokers[request.receiver]
        self._world.trace.line(
            broker.name, f"< {request.kind.value}", f"{sender} {request.describe()}"
        )
        response = handle(broker, request)
        if response.error_code or getattr(response, "partition_errors", None):
            errors = {str(tp): c for tp, c in getattr(response, "partition_errors", {}).items()}
            self._world.trace.line(broker.name, "> refuses", f"{response.error_code} {errors}")
        return response


def handle(broker: SimulatedBroker, request: Request) -> ControlResponse:
    """The broker's answer."""
    match request.kind:
        case Kind.LEADER_AND_ISR:
            return broker.leader_and_isr(request.requests)
        case Kind.UPDATE_METADATA:
            return broker.update_metadata(request.requests)
        case Kind.STOP_REPLICA:
            return broker.stop_replica(request.requests)
