"""CreateTopics, API key 19, versions 0 and 1, which kio does not have; clients below Kafka 0.11.

Version 1 adds ``validate_only`` and messages of errors (KIP-4).
"""

from __future__ import annotations

from typing import Final

from kio.static.constants import EntityType

from regent.protocol.entities.declaration import Field, Message, Structure

_ASSIGNMENT: Final = Structure(
    "CreatableReplicaAssignment",
    (
        Field("partition_index", "int32"),
        Field("broker_ids", "int32", array=True),
    ),
)

_CONFIG: Final = Structure(
    "CreatableTopicConfig",
    (
        Field("name", "string"),
        Field("value", "string", nullable=True),
    ),
)

_TOPIC: Final = Structure(
    "CreatableTopic",
    (
        Field("name", "string"),
        Field("num_partitions", "int32"),
        Field("replication_factor", "int16"),
        Field("assignments", _ASSIGNMENT, array=True),
        Field("configs", _CONFIG, array=True),
    ),
)

CREATE_TOPICS_REQUEST: Final = Message(
    "CreateTopicsRequest",
    EntityType.request,
    api_key=19,
    versions=range(2),
    flexible_since=5,
    fields=(
        Field("topics", _TOPIC, array=True),
        Field("timeout", "timedelta_i32"),
        Field("validate_only", "bool", since=1, default=False),
    ),
)

_RESULT: Final = Structure(
    "CreatableTopicResult",
    (
        Field("name", "string"),
        Field("error_code", "error_code"),
        Field("error_message", "string", since=1, nullable=True, default=None),
    ),
)

CREATE_TOPICS_RESPONSE: Final = Message(
    "CreateTopicsResponse",
    EntityType.response,
    api_key=19,
    versions=range(2),
    flexible_since=5,
    fields=(Field("topics", _RESULT, array=True),),
)
