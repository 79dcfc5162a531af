"""LeaderAndIsr, StopReplica and UpdateMetadata, as a broker's controller may send them to us.

A broker that becomes the controller while our registration still exists takes us for a broker.
There is nothing here to lead, to stop or to know; what is asked counts as done, or that controller
would wait for it, and take us for a broker whose disks have failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kio.schema.errors import ErrorCode

from regent.endpoint.handling import Handler
from regent.protocol.entities.leader_and_isr import LEADER_AND_ISR_RESPONSE
from regent.protocol.entities.stop_replica import STOP_REPLICA_RESPONSE
from regent.protocol.entities.update_metadata import UPDATE_METADATA_RESPONSE
from regent.protocol.served_apis import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_BY_TOPIC_SINCE: Final = 2
_BY_TOPIC_ID_SINCE: Final = 5
_STOPPED_BY_TOPIC_SINCE: Final = 1
_STOPPED_WITH_STATES_SINCE: Final = 3


async def _leader_and_isr(request: Request, _: ControllerRequests) -> Any:
    version, entity = request.header.api_version, request.entity
    partition_kind = LEADER_AND_ISR_RESPONSE.nested("LeaderAndIsrPartitionError", version)
    none = {"error_code": ErrorCode.none}
    if version >= _BY_TOPIC_ID_SINCE:
        topic_kind = LEADER_AND_ISR_RESPONSE.nested("LeaderAndIsrTopicError", version)
        topics = tuple(
            topic_kind(
                topic_id=topic.topic_id,
                partition_errors=tuple(
                    partition_kind(partition_index=each.partition_index, **none)
                    for each in topic.partition_states
                ),
            )
            for topic in entity.topic_states
        )
        return LEADER_AND_ISR_RESPONSE[version](**none, topics=topics)
    if version >= _BY_TOPIC_SINCE:
        named = [(t.topic_name, each) for t in entity.topic_states for each in t.partition_states]
    else:
        named = [(each.topic_name, each) for each in entity.ungrouped_partition_states]
    return LEADER_AND_ISR_RESPONSE[version](
        **none,
        partition_errors=tuple(
            partition_kind(topic_name=name, partition_index=each.partition_index, **none)
            for name, each in named
        ),
    )


async def _stop_replica(request: Request, _: ControllerRequests) -> Any:
    version = request.header.api_version
    partition_kind = STOP_REPLICA_RESPONSE.nested("StopReplicaPartitionError", version)
    return STOP_REPLICA_RESPONSE[version](
        error_code=ErrorCode.none,
        partition_errors=tuple(
            partition_kind(topic_name=name, partition_index=index, error_code=ErrorCode.none)
            for name, index in _stopped(version, request.entity)
        ),
    )


def _stopped(version: int, entity: Any) -> Iterator[tuple[str, int]]:
    if version >= _STOPPED_WITH_STATES_SINCE:
        for topic in entity.topic_states:
            for state in topic.partition_states:
                yield topic.topic_name, state.partition_index
    elif version >= _STOPPED_BY_TOPIC_SINCE:
        for topic in entity.topics:
            for index in topic.partition_indexes:
                yield topic.name, index
    else:
        for partition in entity.ungrouped_partitions:
            yield partition.topic_name, partition.partition_index


async def _update_metadata(request: Request, _: ControllerRequests) -> Any:
    return _update_metadata_refusal(request, ErrorCode.none)


def _leader_and_isr_refusal(request: Request, error_code: int) -> Any:
    version = request.header.api_version
    field = "topics" if version >= _BY_TOPIC_ID_SINCE else "partition_errors"
    return LEADER_AND_ISR_RESPONSE[version](error_code=ErrorCode(error_code), **{field: ()})


def _stop_replica_refusal(request: Request, error_code: int) -> Any:
    kind = STOP_REPLICA_RESPONSE[request.header.api_version]
    return kind(error_code=ErrorCode(error_code), partition_errors=())


def _update_metadata_refusal(request: Request, error_code: int) -> Any:
    return UPDATE_METADATA_RESPONSE[request.header.api_version](error_code=ErrorCode(error_code))


LEADER_AND_ISR_HANDLER: Final = Handler(LEADER_AND_ISR, _leader_and_isr, _leader_and_isr_refusal)
STOP_REPLICA_HANDLER: Final = Handler(STOP_REPLICA, _stop_replica, _stop_replica_refusal)
UPDATE_METADATA_HANDLER: Final = Handler(
    UPDATE_METADATA, _update_metadata, _update_metadata_refusal
)
