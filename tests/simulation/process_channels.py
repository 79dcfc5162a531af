"""The channels of a simulated Regent process to the brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regent.controller import effects as fx
from regent.protocol.control_requests import ControlRequests
from regent.protocol.metadata_updates import SharedMetadata
from regent.protocol.pending_requests import PendingRequests, receivers_of
from tests.simulation.network import Channel

if TYPE_CHECKING:
    from tests.simulation.driver import RegentProcess
    from tests.simulation.world import World


class ProcessChannels:
    """One to each broker; each holds what its broker has to be informed of."""

    def __init__(self, world: World, process: RegentProcess) -> None:
        self._world = world
        self._process = process
        self._channels: dict[int, Channel[PendingRequests]] = {}
        self._shared = SharedMetadata(max_partitions=world.swarm.max_partitions)

    def update(self, effect: fx.UpdateChannels) -> None:
        """Close some, open others: a broker in both gets a new one."""
        for broker_id in (*effect.closed, *(broker.broker_id for broker in effect.opened)):
            channel = self._channels.pop(broker_id, None)
            if channel is not None:
                self._world.network.close(channel)
        for broker in effect.opened:
            waiting = PendingRequests(broker.broker_id, shared=self._shared)
            channel = self._world.network.open(self._process, broker.broker_id, waiting)
            self._channels[broker.broker_id] = channel

    def send(self, requests: ControlRequests) -> None:
        """Add a batch to what its receivers have to be informed of."""
        self._world.safety.requests.sent(self._process.name, requests)
        metadata = self._shared.of(requests)
        for broker_id in receivers_of(requests):
            if broker_id in self._channels:
                self._channels[broker_id].waiting.add(requests, metadata)

    def close(self) -> None:
        """Close all of them."""
        for channel in self._channels.values():
            self._world.network.close(channel)
        self._channels.clear()
