"""What a broker's own controller answers to brokers while it is the controller.

It shuts nobody down: brokers that ask for that stop in the end as they are.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrChange,
    IsrChangeResult,
)
from regent.model.cluster import Broker
from regent.model.errors import MalformedZNodeError
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.error_codes import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NONE,
    NOT_CONTROLLER,
    STALE_BROKER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from regent.zk_data import paths
from regent.zk_data.operations import Operation, SetData, WriteResult, Written
from regent.zk_data.producer_ids import BLOCK_SIZE
from regent.zk_data.topics import decode_partition_state, decode_topic, encode_partition_state
from tests.simulation.producer_ids import next_block

if TYPE_CHECKING:
    from tests.simulation.endpoint import BrokerRequest
    from tests.simulation.world import World


class RivalEndpoint:
    """Answers by what ZooKeeper has, and writes behind the fence."""

    def __init__(
        self,
        world: World,
        name: str,
        epoch: int,
        known: Mapping[int, Broker],
        write: Callable[[list[Operation]], list[WriteResult]],
    ) -> None:
        self._world = world
        self._name = name
        self._epoch = epoch
        self._known = known
        self._write = write

    def answer(self, request: BrokerRequest) -> Any:
        """What is answered; None: the connection is closed."""
        match request:
            case AlterPartitionRequest():
                known = self._known.get(request.broker_id)
                if known is None or known.epoch != request.broker_epoch:
                    return AlterPartitionResponse(STALE_BROKER_EPOCH)
                results = [self._alter(request.broker_id, each) for each in request.changes]
                return AlterPartitionResponse(NONE, tuple(results))
            case AllocateProducerIdsRequest():
                first_id = self._claim_block(request.broker_id)
                self._world.safety.broker_requests.gave_producer_ids(
                    self._name, first_id, BLOCK_SIZE
                )
                return AllocateProducerIdsResponse(NONE, first_id, BLOCK_SIZE)
        return None

    def _claim_block(self, broker_id: int) -> int:
        node = self._world.zookeeper.get(paths.PRODUCER_ID_BLOCK)
        first_id, operation = next_block(node, broker_id)
        (result,) = self._write([operation])
        assert isinstance(result, Written), "nobody else moves during a step"
        return first_id

    def _alter(self, sender: int, change: IsrChange) -> IsrChangeResult:
        """Decided by what ZooKeeper has, in upstream's order. (Upstream believes whoever asks that
        it is the leader. Here nobody is led astray by that.)"""

        def result(code: int, state: LeaderAndIsr | None = None) -> IsrChangeResult:
            return IsrChangeResult(change.topic, change.partition, code, state)

        topic = change.topic if isinstance(change.topic, str) else self._name_of(change.topic)
        if topic is None:
            return result(UNKNOWN_TOPIC_ID)
        path = paths.partition_state(TopicPartition(topic, change.partition))
        node = self._world.zookeeper.get(path)
        try:
            state = None if node is None else decode_partition_state(path, node)
        except MalformedZNodeError:
            state = None
        if state is None:
            return result(UNKNOWN_TOPIC_OR_PARTITION)
        refusal = self._refusal(sender, change, state)
        if refusal != NONE:
            return result(refusal)
        if (change.isr, change.leader_recovery_state) == (state.isr, state.leader_recovery_state):
            return result(NONE, state)
        wanted = LeaderAndIsr(
            sender, state.leader_epoch, change.isr, self._epoch, state.partition_epoch
        )
        write = SetData(path, encode_partition_state(wanted), state.partition_epoch)
        (made,) = self._write([write])
        assert isinstance(made, Written), "nobody else moves during a step"
        return result(NONE, msgspec.structs.replace(wanted, partition_epoch=made.version))

    def _refusal(self, sender: int, change: IsrChange, state: LeaderAndIsr) -> int:
        by_id = isinstance(change.topic, uuid.UUID)
        is_same = change.isr == state.isr
        rules = (
            (NOT_CONTROLLER, change.partition_epoch > state.partition_epoch),
            (NOT_CONTROLLER, change.leader_epoch > state.leader_epoch),
            (FENCED_LEADER_EPOCH, change.leader_epoch < state.leader_epoch),
            (INVALID_REQUEST, sender != state.leader),
            (
                INVALID_UPDATE_VERSION,
                not is_same and change.partition_epoch < state.partition_epoch,
            ),
            (
                # Controllers of the releases whose leaders name topics do not look at members.
                INELIGIBLE_REPLICA,
                by_id and any(member not in self._known for member in change.isr) and not is_same,
            ),
        )
        return next((code for code, applies in rules if applies), NONE)

    def _name_of(self, topic_id: uuid.UUID) -> str | None:
        for topic in self._world.zookeeper.children(paths.BROKER_TOPICS):
            node = self._world.zookeeper.get(paths.topic(topic))
            try:
                if node is not None and decode_topic(topic, node.data).topic_id == topic_id:
                    return topic
            except MalformedZNodeError:
                continue
        return None


def not_controller(request: BrokerRequest) -> Any:
    """What a broker answers that is not the controller; None: the connection is closed."""
    match request:
        case AlterPartitionRequest():
            return AlterPartitionResponse(NOT_CONTROLLER)
        case AllocateProducerIdsRequest():
            return AllocateProducerIdsResponse(NOT_CONTROLLER)
    return None
