"""AlterPartition, API key 56 (AlterIsr before Kafka 3.2): a leader asks to change ISRs.

Versions: 1 adds the leader recovery state (KIP-704), 2 names topics by their ids, 3 gives the
broker epoch of each member of the ISR (KIP-903). All of them are flexible.
"""

from __future__ import annotations

from typing import Final

from kio.static.constants import EntityType

from regent.protocol.entities.declaration import Field, Message, Structure

_BROKER_STATE: Final = Structure(
    "BrokerState",
    (
        Field("broker_id", "int32"),
        Field("broker_epoch", "int64", default=-1),
    ),
)

_PARTITION: Final = Structure(
    "PartitionData",
    (
        Field("partition_index", "int32"),
        Field("leader_epoch", "int32"),
        Field("new_isr", "int32", array=True, until=2),
        Field("new_isr_with_epochs", _BROKER_STATE, array=True, since=3),
        Field("leader_recovery_state", "int8", since=1, default=0),
        Field("partition_epoch", "int32"),
    ),
)

_TOPIC: Final = Structure(
    "TopicData",
    (
        Field("topic_name", "string", until=1),
        Field("topic_id", "uuid", since=2),
        Field("partitions", _PARTITION, array=True),
    ),
)

ALTER_PARTITION_REQUEST: Final = Message(
    "AlterPartitionRequest",
    EntityType.request,
    api_key=56,
    versions=range(4),
    flexible_since=0,
    fields=(
        Field("broker_id", "int32"),
        Field("broker_epoch", "int64", default=-1),
        Field("topics", _TOPIC, array=True),
    ),
)

_PARTITION_RESULT: Final = Structure(
    "PartitionData",
    (
        Field("partition_index", "int32"),
        Field("error_code", "error_code"),
        Field("leader_id", "int32"),
        Field("leader_epoch", "int32"),
        Field("isr", "int32", array=True),
        Field("leader_recovery_state", "int8", since=1, default=0),
        Field("partition_epoch", "int32"),
    ),
)

_TOPIC_RESULT: Final = Structure(
    "TopicData",
    (
        Field("topic_name", "string", until=1),
        Field("topic_id", "uuid", since=2),
        Field("partitions", _PARTITION_RESULT, array=True),
    ),
)

ALTER_PARTITION_RESPONSE: Final = Message(
    "AlterPartitionResponse",
    EntityType.response,
    api_key=56,
    versions=range(4),
    flexible_since=0,
    fields=(
        Field("throttle_time", "timedelta_i32"),
        Field("error_code", "error_code"),
        Field("topics", _TOPIC_RESULT, array=True),
    ),
)
