"""A broker of the simulated cluster: it registers, obeys its controller, and lives or is dead.

It has no records. A replica of it is in sync from the moment on that the scenario says so; then its
leader asks the controller for the larger ISR (AlterPartition, KIP-497).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from regent.controller.broker_requests import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrChange,
)
from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.control_requests import (
    ControlRequest,
    ControlResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from regent.protocol.error_codes import NONE
from regent.protocol.partition_state import PartitionState
from regent.simulation.broker_znodes import encode_broker
from regent.simulation.zookeeper import InMemoryClient, InMemoryZooKeeper
from regent.zk_data import paths
from regent.zk_data.operations import Create

_ASKS_FOR_ISR_CHANGES: Final = 5
"""Version of the registration of brokers that do."""

_PORT: Final = 9092


class InMemoryBroker:
    """One broker.

    Attributes:
        epoch: czxid of its registration; -1 while it is dead.
        is_in_sync: Whether it has caught up since it was started. Only then leaders take it in.
    """

    def __init__(self, broker_id: int, rack: str | None) -> None:
        self.broker_id = broker_id
        self.rack = rack
        self.epoch = -1
        self.is_in_sync = False
        self._client: InMemoryClient | None = None
        self._followed: dict[TopicPartition, int] = {}
        self._incomplete: dict[TopicPartition, PartitionState] = {}

    @property
    def is_alive(self) -> bool:
        """Whether the process runs. ZooKeeper may hold a dead one to be registered still."""
        return self._client is not None

    def start(self, zookeeper: InMemoryZooKeeper) -> None:
        """Start the process, which registers. The registration of an earlier life must be gone."""
        assert not self.is_alive, f"broker {self.broker_id} runs"
        self._client = zookeeper.connect()
        path = paths.broker_id(self.broker_id)
        endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", f"broker-{self.broker_id}", _PORT)
        registration = encode_broker(
            Broker(
                self.broker_id,
                0,
                (endpoint,),
                rack=self.rack,
                registration_version=_ASKS_FOR_ISR_CHANGES,
            ),
            timestamp_ms=0,
        )
        self._client.multi([Create(path, registration, ephemeral=True)])
        (node,) = self._client.get_data([path])
        assert node is not None, f"broker {self.broker_id} is registered already"
        self.epoch = node.czxid

    def stop(self) -> None:
        """End the process in order: the registration is gone at once."""
        assert self._client is not None, f"broker {self.broker_id} is dead"
        self._client.close()
        self._forget()

    def kill(self) -> int:
        """End the process without order. Returns the session, which the servers have yet to end."""
        assert self._client is not None, f"broker {self.broker_id} is dead"
        session_id = self._client.session_id
        self._client.disconnect()
        self._forget()
        return session_id

    def _forget(self) -> None:
        self._client = None
        self.epoch = -1
        self.is_in_sync = False
        self._followed.clear()
        self._incomplete.clear()

    # What the controller sends

    def handle(self, request: ControlRequest) -> ControlResponse:
        """The answer to a request: a broker in memory refuses nothing."""
        header = request.header
        assert header.broker_epoch == self.epoch, f"a request to another life: {header}"
        epochs = header.controller_epoch, header.broker_epoch
        match request:
            case LeaderAndIsrRequest():
                self._take(request)
                return LeaderAndIsrResponse(self.broker_id, NONE, {}, request.partitions, *epochs)
            case StopReplicaRequest():
                for tp in request.partitions:
                    self._followed.pop(tp, None)
                return StopReplicaResponse(self.broker_id, NONE, {}, request.partitions, *epochs)
            case UpdateMetadataRequest():
                return UpdateMetadataResponse(self.broker_id, NONE, *epochs)
        raise AssertionError(f"nobody asks {self.broker_id} for its log directories")

    def _take(self, request: LeaderAndIsrRequest) -> None:
        """Lead and follow."""
        for tp in request.partitions:
            announced = request.states[tp]
            state = announced.leader_and_isr
            self._followed.pop(tp, None)
            self._incomplete.pop(tp, None)
            if state.leader != self.broker_id:
                self._followed[tp] = state.leader_epoch
            elif len(state.isr) < len(announced.assignment.replicas):
                self._incomplete[tp] = announced

    # What it asks the controller

    def follows(self, tp: TopicPartition, leader_epoch: int) -> bool:
        """Whether it fetches the partition from the leader of that epoch."""
        return self.is_in_sync and self._followed.get(tp) == leader_epoch

    def wanted_isrs(self, brokers: Mapping[int, InMemoryBroker]) -> AlterPartitionRequest | None:
        """All larger ISRs that followers which are in sync make possible; None without any."""
        changes = tuple(self._wanted(brokers))
        return AlterPartitionRequest(self.broker_id, self.epoch, changes) if changes else None

    def _wanted(self, brokers: Mapping[int, InMemoryBroker]) -> Iterator[IsrChange]:
        for tp, announced in self._incomplete.items():
            state = announced.leader_and_isr
            joining = tuple(
                replica
                for replica in announced.assignment.replicas
                if replica not in state.isr and brokers[replica].follows(tp, state.leader_epoch)
            )
            if joining:
                yield IsrChange(
                    tp.topic,
                    tp.partition,
                    state.leader_epoch,
                    state.isr + joining,
                    state.partition_epoch,
                    broker_epochs={member: brokers[member].epoch for member in joining},
                )

    def isr_changed(self, response: AlterPartitionResponse) -> None:
        """The controller has answered :meth:`wanted_isrs`."""
        assert response.error_code == NONE, response
        for result in response.results:
            assert isinstance(result.topic, str)
            tp = TopicPartition(result.topic, result.partition)
            assert result.state is not None, f"{tp}: ISR refused with {result.error_code}"
            self._committed(tp, result.state)

    def _committed(self, tp: TopicPartition, state: LeaderAndIsr) -> None:
        announced = self._incomplete.pop(tp, None)
        if announced is not None and len(state.isr) < len(announced.assignment.replicas):
            self._incomplete[tp] = PartitionState(tp.partition, state, announced.assignment)
