"""A controller that is no broker, as small as can be: it takes over /controller and sends requests.

It uses kazoo and the channels directly, so what real brokers do with these requests is seen without
anything of the controller core in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

from kazoo.client import KazooClient
from kio.schema.metadata.v5.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v5.response import MetadataResponse
from kio.schema.types import TopicName
from kio.serial import entity_reader, entity_writer

from regent.model.cluster import Broker
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.model.topic import topic_id_to_text
from regent.network.connection import BrokerConnection
from regent.network.controller_channel_manager import ControllerChannelManager
from regent.network.settings import ChannelSettings
from regent.protocol.control_requests import (
    ControlRequests,
    ControlResponse,
    StopReplicaPartition,
)
from regent.protocol.partition_state import PartitionState
from regent.zk_data.brokers import decode_broker
from regent.zk_data.operations import ZNode
from sandbox import wait_until_async
from sandbox.waiting import DEADLINE_S
from tests.support.unmerged_requests import requests_to

CONTROLLER_ID = 1_000_000_123
METADATA_KEY = 3
SESSION_TIMEOUT_S = 60.0


class ForeignController:
    """Holds ``/controller`` and one channel per registered broker."""

    def __init__(
        self, zookeeper: str, settings: ChannelSettings, *, client_settings: ChannelSettings
    ) -> None:
        self._zookeeper: Any = KazooClient(
            zookeeper, timeout=SESSION_TIMEOUT_S
        )  # the project's stubs lack most of it
        self._settings = settings
        self._client_settings = client_settings
        self._responses: asyncio.Queue[ControlResponse] = asyncio.Queue()
        self.failures: list[BaseException] = []
        self.epoch = 0
        self.brokers: dict[int, Broker] = {}
        self.topic_ids: dict[str, uuid.UUID] = {}

    async def take_over(self) -> None:
        """Become the controller, whoever is it now, and learn which brokers there are."""
        zookeeper = self._zookeeper
        zookeeper.start(timeout=DEADLINE_S)
        for child in zookeeper.get_children("/brokers/ids"):
            data, stat = zookeeper.get(f"/brokers/ids/{child}")
            node = ZNode(data, stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)
            self.brokers[int(child)] = decode_broker(int(child), node)
        # Before 2.2 a broker raises the epoch some time after it has created /controller
        # (KAFKA-6082). Taking over in between would leave it with the higher epoch.
        await wait_until_async(
            self._predecessor_is_settled,
            describe="a broker to be the controller",
        )
        await wait_until_async(self._take_over_once, describe="the election to be won")

    async def _predecessor_is_settled(self) -> bool:
        """A broker is the controller and has announced itself to all brokers."""
        if not self._zookeeper.exists("/controller"):
            return False
        controller_id = json.loads(self._zookeeper.get("/controller")[0])["brokerid"]
        answers = [await self.metadata(broker_id, "none") for broker_id in self.brokers]
        return all(answer.controller_id == controller_id for answer in answers)

    def _take_over_once(self) -> bool:
        """Raise the epoch and replace ``/controller`` in one transaction."""
        epoch, stat = self._zookeeper.get("/controller_epoch")
        transaction = self._zookeeper.transaction()
        self.epoch = int(epoch) + 1
        transaction.set_data("/controller_epoch", str(self.epoch).encode(), version=stat.version)
        if self._zookeeper.exists("/controller"):
            transaction.delete("/controller")
        transaction.create(
            "/controller",
            json.dumps({"version": 1, "brokerid": CONTROLLER_ID, "timestamp": "1"}).encode(),
            ephemeral=True,
        )
        return not any(isinstance(result, Exception) for result in transaction.commit())

    def open(self) -> None:
        """Open a channel to every broker."""
        self.channels = ControllerChannelManager(
            controller_id=CONTROLLER_ID,
            settings=self._settings,
            may_send=lambda: True,
            on_response=self._responses.put_nowait,
            on_failure=lambda _broker, _epoch, error: self.failures.append(error),
        )
        self.channels.update(opened=tuple(self.brokers.values()))

    async def close(self) -> None:
        self.channels.close_all()
        await self.channels.wait_closed()
        self._zookeeper.stop()
        self._zookeeper.close()
        assert self.failures == []

    def write_topic(self, topic: str, assignment: dict[int, tuple[int, ...]]) -> None:
        """The znodes that a topic has once its partitions are born."""
        zookeeper = self._zookeeper
        value: dict[str, Any] = {
            "version": 1,
            "partitions": {str(p): list(replicas) for p, replicas in assignment.items()},
        }
        if topic in self.topic_ids:
            value |= {"version": 3, "adding_replicas": {}, "removing_replicas": {}}
            value["topic_id"] = topic_id_to_text(self.topic_ids[topic])
        zookeeper.create(f"/brokers/topics/{topic}", json.dumps(value).encode())
        for partition, replicas in assignment.items():
            state = {
                "version": 1,
                "leader": replicas[0],
                "leader_epoch": 0,
                "controller_epoch": self.epoch,
                "isr": list(replicas),
            }
            path = f"/brokers/topics/{topic}/partitions/{partition}/state"
            zookeeper.ensure_path(path)
            zookeeper.set(path, json.dumps(state).encode())

    def batch(self, **changes: Any) -> ControlRequests:
        """A batch that carries nothing yet but the brokers."""
        values: dict[str, Any] = {
            "controller_id": CONTROLLER_ID,
            "controller_epoch": self.epoch,
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
                LeaderAndIsr(replicas[0], leader_epoch, replicas, self.epoch, 0),
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

    def death(self, born: ControlRequests) -> ControlRequests:
        """The partitions of a birth are announced as deleted, and their replicas deleted."""
        stop = StopReplicaPartition(leader_epoch=-2, delete=True)
        return self.batch(
            partitions=born.partitions,
            update_metadata_receivers=born.update_metadata_receivers,
            deleted_partitions=frozenset(born.partitions),
            stop_replica={
                broker_id: dict.fromkeys(partitions, stop)
                for broker_id, partitions in born.leader_and_isr.items()
            },
        )

    async def send(self, requests: ControlRequests) -> list[ControlResponse]:
        """Send a batch and collect every answer to it."""
        expected = sum(len(requests_to(requests, broker_id)) for broker_id in requests.brokers)
        self.channels.send(requests)
        async with asyncio.timeout(DEADLINE_S):
            return [await self._responses.get() for _ in range(expected)]

    async def metadata(self, broker_id: int, topic: str) -> MetadataResponse:
        """What a client is told by this broker."""
        settings = self._client_settings
        (endpoint, *_) = settings.candidates(self.brokers[broker_id])
        connection = await BrokerConnection.open(endpoint, client_id="test", settings=settings)
        try:
            request = MetadataRequest(
                topics=(MetadataRequestTopic(name=TopicName(topic)),),
                allow_auto_topic_creation=False,
            )
            buffer = io.BytesIO()
            entity_writer(MetadataRequest)(buffer, request)
            body = await connection.round_trip(
                METADATA_KEY, 5, (buffer.getvalue(),), flexible=False
            )
            response, _ = entity_reader(MetadataResponse)(body, 0)
            return response
        finally:
            connection.close()


@contextlib.asynccontextmanager
async def foreign_controller(
    zookeeper: str,
    settings: ChannelSettings | None = None,
    *,
    client_settings: ChannelSettings | None = None,
) -> AsyncIterator[ForeignController]:
    """An active foreign controller; its metadata requests take `client_settings`, if given."""
    settings = settings or ChannelSettings()
    controller = ForeignController(zookeeper, settings, client_settings=client_settings or settings)
    await controller.take_over()
    controller.open()
    try:
        yield controller
    finally:
        await controller.close()
