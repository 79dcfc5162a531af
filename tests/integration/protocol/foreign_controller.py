"""A controller that is no broker, as small as can be: it sends requests to brokers.

It uses the channels directly, so what real brokers do with these requests is seen without anything
of the controller core in between. Brokers obey it, whoever holds ``/controller``, since its epoch
is higher than that of their own controller.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from typing import Any

from regent.model.cluster import Broker
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.network.controller_channel_manager import ControllerChannelManager
from regent.network.settings import ChannelSettings
from regent.protocol.control_requests import ControlRequests, ControlResponse
from regent.protocol.partition_state import PartitionState
from regent.zk_data.brokers import decode_broker
from regent.zk_data.operations import ZNode
from sandbox.waiting import DEADLINE_S
from tests.support.unmerged_requests import requests_to
from tests.support.znodes import Znodes

CONTROLLER_ID = 1_000_000_123
EPOCH = 1_000_000


class ForeignController:
    """One channel per registered broker."""

    def __init__(self, brokers: dict[int, Broker], settings: ChannelSettings) -> None:
        self._responses: asyncio.Queue[ControlResponse] = asyncio.Queue()
        self._failures: list[BaseException] = []
        self.brokers = brokers
        self.topic_ids: dict[str, uuid.UUID] = {}
        self.channels = ControllerChannelManager(
            controller_id=CONTROLLER_ID,
            settings=settings,
            may_send=lambda: True,
            on_response=self._responses.put_nowait,
            on_failure=lambda _broker, _epoch, error: self._failures.append(error),
        )
        self.channels.update(opened=tuple(brokers.values()))

    async def close(self) -> None:
        self.channels.close_all()
        await self.channels.wait_closed()
        assert self._failures == []

    def batch(self, **changes: Any) -> ControlRequests:
        """A batch that carries nothing yet but the brokers."""
        values: dict[str, Any] = {
            "controller_id": CONTROLLER_ID,
            "controller_epoch": EPOCH,
            "brokers": self.brokers,
            "topic_ids": self.topic_ids,
            "partitions": {},
            "offline_replicas": {},
            "leader_and_isr": {},
            "update_metadata_receivers": (),
            "deleted_partitions": frozenset(),
            "stop_replica": {},
        }
        return ControlRequests(**(values | changes))

    def announcement(self) -> ControlRequests:
        """Only the broker list, to everybody."""
        return self.batch(update_metadata_receivers=tuple(self.brokers))

    def birth(
        self, topic: str, assignment: dict[int, tuple[int, ...]], *, leader_epoch: int = 0
    ) -> ControlRequests:
        """New replicas for their brokers, and the partitions for everybody."""
        states = {
            TopicPartition(topic, partition): PartitionState(
                partition,
                LeaderAndIsr(replicas[0], leader_epoch, replicas, EPOCH, 0),
                ReplicaAssignment(replicas),
            )
            for partition, replicas in assignment.items()
        }
        return self.batch(
            partitions=states,
            leader_and_isr={
                broker_id: {
                    tp: True
                    for tp, state in states.items()
                    if broker_id in state.assignment.replicas
                }
                for broker_id in self.brokers
            },
            update_metadata_receivers=tuple(self.brokers),
        )

    async def send(self, requests: ControlRequests) -> list[ControlResponse]:
        """Send a batch and collect every answer to it."""
        expected = sum(len(requests_to(requests, broker_id)) for broker_id in requests.brokers)
        self.channels.send(requests)
        async with asyncio.timeout(DEADLINE_S):
            return [await self._responses.get() for _ in range(expected)]


def _registered(zookeeper: str) -> dict[int, Broker]:
    with Znodes(zookeeper) as znodes:
        found = {child: znodes.get(f"/brokers/ids/{child}") for child in znodes.broker_ids()}
    return {
        broker_id: decode_broker(
            broker_id, ZNode(data, stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)
        )
        for broker_id, (data, stat) in ((k, v) for k, v in found.items() if v is not None)
    }


@contextlib.asynccontextmanager
async def foreign_controller(
    zookeeper: str, settings: ChannelSettings | None = None
) -> AsyncIterator[ForeignController]:
    """A foreign controller with channels to the registered brokers."""
    brokers = await asyncio.to_thread(_registered, zookeeper)
    controller = ForeignController(brokers, settings or ChannelSettings())
    try:
        yield controller
    finally:
        await controller.close()
