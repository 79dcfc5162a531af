"""Requests as kio entities, built the plain way: the reference for the encoders."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import msgspec

from regent.model.partition import TopicPartition
from regent.protocol.control_requests import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from regent.protocol.entities.leader_and_isr import LEADER_AND_ISR_REQUEST
from regent.protocol.entities.stop_replica import STOP_REPLICA_REQUEST
from regent.protocol.entities.update_metadata import UPDATE_METADATA_REQUEST

SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


def construct(entity: type[Any], **values: Any) -> Any:
    """An entity from the values of those fields that its version has."""
    fields = entity.__dataclass_fields__
    return entity(**{name: value for name, value in values.items() if name in fields})


def leader_and_isr(
    request: LeaderAndIsrRequest, *, version: int, listener: str | None = None
) -> Any:
    """The entity of a LeaderAndIsr."""
    message = LEADER_AND_ISR_REQUEST
    wanted = request.partitions
    states = {}
    for tp, is_new in wanted.items():
        state, assignment = request.states[tp].leader_and_isr, request.states[tp].assignment
        states[tp] = construct(
            message.nested("LeaderAndIsrPartitionState", version),
            topic_name=tp.topic,
            partition_index=tp.partition,
            controller_epoch=state.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            partition_epoch=state.partition_epoch,
            replicas=assignment.replicas,
            adding_replicas=assignment.adding_replicas,
            removing_replicas=assignment.removing_replicas,
            is_new=is_new,
            leader_recovery_state=state.leader_recovery_state,
        )
    leaders = {request.states[tp].leader_and_isr.leader for tp in wanted}
    live_leaders = []
    for leader in sorted(leaders & request.brokers.keys()):
        broker = request.brokers[leader]
        endpoint = (listener and broker.endpoint(listener)) or broker.endpoints[0]
        live_leaders.append(
            construct(
                message.nested("LeaderAndIsrLiveLeader", version),
                broker_id=leader,
                host_name=endpoint.host,
                port=endpoint.port,
            )
        )
    return construct(
        message[version],
        controller_id=request.header.controller_id,
        is_k_raft_controller=False,
        controller_epoch=request.header.controller_epoch,
        broker_epoch=request.header.broker_epoch,
        type_=0,
        ungrouped_partition_states=tuple(states.values()),
        topic_states=_topics(states, request.topic_ids, message, "LeaderAndIsrTopicState", version),
        live_leaders=tuple(live_leaders),
    )


def update_metadata(request: UpdateMetadataRequest, *, version: int) -> Any:
    """The entity of an UpdateMetadata."""
    message = UPDATE_METADATA_REQUEST
    states = {}
    updates = request.updates
    for tp, partition in updates.partitions.items():
        state, assignment = partition.leader_and_isr, partition.assignment
        if tp in updates.deleted:
            state = msgspec.structs.replace(state, leader=-2, leader_epoch=0, partition_epoch=0)
        states[tp] = construct(
            message.nested("UpdateMetadataPartitionState", version),
            topic_name=tp.topic,
            partition_index=tp.partition,
            controller_epoch=state.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            zk_version=state.partition_epoch,
            replicas=assignment.replicas,
            offline_replicas=updates.offline_replicas.get(tp, ()),
        )
    endpoint_type = message.nested("UpdateMetadataEndpoint", version)
    live_brokers = [
        message.nested("UpdateMetadataBroker", version)(
            id_=broker.broker_id,
            endpoints=tuple(
                endpoint_type(
                    port=endpoint.port,
                    host=endpoint.host,
                    listener=endpoint.listener,
                    security_protocol=SECURITY_PROTOCOLS[endpoint.security_protocol],
                )
                for endpoint in broker.endpoints
            ),
            rack=broker.rack,
        )
        for broker in (*request.brokers.brokers.values(), request.brokers.announced)
        if broker is not None
    ]
    return construct(
        message[version],
        controller_id=request.header.controller_id,
        is_k_raft_controller=False,
        controller_epoch=request.header.controller_epoch,
        broker_epoch=request.header.broker_epoch,
        ungrouped_partition_states=tuple(states.values()),
        topic_states=_topics(
            states, updates.topic_ids, message, "UpdateMetadataTopicState", version
        ),
        live_brokers=tuple(live_brokers),
    )


def stop_replica(request: StopReplicaRequest, *, version: int) -> Any:
    """The entity of a StopReplica."""
    message = STOP_REPLICA_REQUEST
    partitions = request.partitions
    topics: Any = ()
    states: dict[TopicPartition, Any] = {}
    if version == 0:
        kind = message.nested("StopReplicaPartitionV0", 0)
        states = {tp: kind(topic_name=tp.topic, partition_index=tp.partition) for tp in partitions}
    elif version < 3:
        kind = message.nested("StopReplicaTopicV1", version)
        topics = tuple(
            kind(name=topic, partition_indexes=tuple(tp.partition for tp in group))
            for topic, group in groupby(partitions, lambda tp: tp.topic)
        )
    else:
        kind = message.nested("StopReplicaPartitionState", version)
        states = {
            tp: kind(
                partition_index=tp.partition,
                leader_epoch=stop.leader_epoch,
                delete_partition=stop.delete,
            )
            for tp, stop in partitions.items()
        }
    return construct(
        message[version],
        controller_id=request.header.controller_id,
        is_k_raft_controller=False,
        controller_epoch=request.header.controller_epoch,
        broker_epoch=request.header.broker_epoch,
        delete_partitions=any(stop.delete for stop in partitions.values()),
        ungrouped_partitions=tuple(states.values()),
        topics=topics,
        topic_states=_topics(states, {}, message, "StopReplicaTopicState", version)
        if version >= 3
        else (),
    )


def _topics(
    states: Mapping[TopicPartition, Any],
    topic_ids: Mapping[str, uuid.UUID],
    message: Any,
    name: str,
    version: int,
) -> tuple[Any, ...]:
    try:
        kind = message.nested(name, version)
    except KeyError:
        return ()

    def items(group: Iterable[TopicPartition]) -> tuple[Any, ...]:
        return tuple(states[tp] for tp in group)

    return tuple(
        construct(
            kind,
            topic_name=topic,
            topic_id=topic_ids.get(topic),
            partition_states=items(group),
        )
        for topic, group in groupby(states, lambda tp: tp.topic)
    )
