"""StopReplica, API key 5: stop serving replicas, and delete their logs on demand.

Versions: 1 adds the broker epoch and grouping by topic (KIP-380), 2 is flexible (KIP-482), 3 adds
leader epoch and delete flag per partition (KIP-570), 4 whether the controller is a KRaft one
(KIP-866).
"""

from __future__ import annotations

from typing import Final

from kio.static.constants import EntityType

from regent.protocol.entities.declaration import Field, Message, Structure

_PARTITION_V0: Final = Structure(
    "StopReplicaPartitionV0",
    (
        Field("topic_name", "string"),
        Field("partition_index", "int32"),
    ),
)

_TOPIC_V1: Final = Structure(
    "StopReplicaTopicV1",
    (
        Field("name", "string"),
        Field("partition_indexes", "int32", array=True),
    ),
)

_PARTITION_STATE: Final = Structure(
    "StopReplicaPartitionState",
    (
        Field("partition_index", "int32"),
        Field("leader_epoch", "int32", default=-1),
        Field("delete_partition", "bool"),
    ),
)

_TOPIC_STATE: Final = Structure(
    "StopReplicaTopicState",
    (
        Field("topic_name", "string"),
        Field("partition_states", _PARTITION_STATE, array=True),
    ),
)

STOP_REPLICA_REQUEST: Final = Message(
    "StopReplicaRequest",
    EntityType.request,
    api_key=5,
    versions=range(5),
    flexible_since=2,
    fields=(
        Field("controller_id", "int32"),
        Field("is_k_raft_controller", "bool", since=4, default=False),
        Field("controller_epoch", "int32"),
        Field("broker_epoch", "int64", since=1, default=-1),
        Field("delete_partitions", "bool", until=2),
        Field("ungrouped_partitions", _PARTITION_V0, array=True, until=0),
        Field("topics", _TOPIC_V1, array=True, since=1, until=2),
        Field("topic_states", _TOPIC_STATE, array=True, since=3),
    ),
)

_PARTITION_ERROR: Final = Structure(
    "StopReplicaPartitionError",
    (
        Field("topic_name", "string"),
        Field("partition_index", "int32"),
        Field("error_code", "error_code"),
    ),
)

STOP_REPLICA_RESPONSE: Final = Message(
    "StopReplicaResponse",
    EntityType.response,
    api_key=5,
    versions=range(5),
    flexible_since=2,
    fields=(
        Field("error_code", "error_code"),
        Field("partition_errors", _PARTITION_ERROR, array=True),
    ),
)
