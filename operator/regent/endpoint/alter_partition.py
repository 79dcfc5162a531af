"""AlterPartition (AlterIsr before Kafka 3.2), versions 0 to 3."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any, Final

from kio.schema.errors import ErrorCode

from regent.controller.broker_requests import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrChange,
    IsrChangeResult,
)
from regent.endpoint.handling import Handler
from regent.protocol.entities.alter_partition import ALTER_PARTITION_RESPONSE
from regent.protocol.served_apis import ALTER_PARTITION
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_RECOVERY_STATE_SINCE: Final = 1
_TOPIC_ID_SINCE: Final = 2
_BROKER_EPOCHS_SINCE: Final = 3


async def _answer(request: Request, controller: ControllerRequests) -> Any:
    return _encode(request, await controller.alter_partition(_decode(request)))


def _refusal(request: Request, error_code: int) -> Any:
    return _encode(request, AlterPartitionResponse(error_code))


def _decode(request: Request) -> AlterPartitionRequest:
    entity = request.entity
    changes = _changes(request.header.api_version, entity)
    return AlterPartitionRequest(entity.broker_id, entity.broker_epoch, tuple(changes))


def _changes(version: int, entity: Any) -> Iterator[IsrChange]:
    for topic in entity.topics:
        name = topic.topic_id if version >= _TOPIC_ID_SINCE else topic.topic_name
        for partition in topic.partitions:
            if version >= _BROKER_EPOCHS_SINCE:
                epochs = {m.broker_id: m.broker_epoch for m in partition.new_isr_with_epochs}
                isr = tuple(m.broker_id for m in partition.new_isr_with_epochs)
            else:
                epochs, isr = {}, tuple(partition.new_isr)
            yield IsrChange(
                topic=name,
                partition=partition.partition_index,
                leader_epoch=partition.leader_epoch,
                isr=isr,
                partition_epoch=partition.partition_epoch,
                leader_recovery_state=partition.leader_recovery_state
                if version >= _RECOVERY_STATE_SINCE
                else 0,
                broker_epochs=epochs,
            )


def _encode(request: Request, answer: AlterPartitionResponse) -> Any:
    version = request.header.api_version
    topic_type = ALTER_PARTITION_RESPONSE.nested("TopicData", version)
    topic_key = "topic_id" if version >= _TOPIC_ID_SINCE else "topic_name"
    by_topic: dict[Any, list[IsrChangeResult]] = {}
    for result in answer.results:
        by_topic.setdefault(result.topic, []).append(result)
    return ALTER_PARTITION_RESPONSE[version](
        throttle_time=datetime.timedelta(0),
        error_code=ErrorCode(answer.error_code),
        topics=tuple(
            topic_type(
                **{topic_key: topic},
                partitions=tuple(_partition(result, version) for result in results),
            )
            for topic, results in by_topic.items()
        ),
    )


def _partition(result: IsrChangeResult, version: int) -> Any:
    """As Kafka's controller: with an error, the other fields have the defaults of the protocol."""
    state = result.state
    fields: dict[str, Any] = {
        "partition_index": result.partition,
        "error_code": ErrorCode(result.error_code),
        "leader_id": 0 if state is None else state.leader,
        "leader_epoch": 0 if state is None else state.leader_epoch,
        "isr": () if state is None else state.isr,
        "partition_epoch": 0 if state is None else state.partition_epoch,
    }
    if version >= _RECOVERY_STATE_SINCE:
        fields["leader_recovery_state"] = 0 if state is None else state.leader_recovery_state
    return ALTER_PARTITION_RESPONSE.nested("PartitionData", version)(**fields)


HANDLER: Final = Handler(ALTER_PARTITION, _answer, _refusal)
