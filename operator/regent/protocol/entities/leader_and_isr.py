"""LeaderAndIsr, API key 4: says which partitions a broker leads and follows.

Versions: 1 adds the new-replica flag, 2 the broker epoch and grouping by topic (KIP-380), 3 the
replicas of a running reassignment (KIP-455), 4 is flexible (KIP-482), 5 adds topic ids (KIP-516), 6
the recovery state of the leader (KIP-704), 7 whether the controller is a KRaft one (KIP-866).
"""

from __future__ import annotations

from typing import Final

from kio.static.constants import EntityType

from regent.protocol.entities.declaration import Field, Message, Structure

_PARTITION_STATE: Final = Structure(
    "LeaderAndIsrPartitionState",
    (
        Field("topic_name", "string", until=1),
        Field("partition_index", "int32"),
        Field("controller_epoch", "int32"),
        Field("leader", "int32"),
        Field("leader_epoch", "int32"),
        Field("isr", "int32", array=True),
        Field("partition_epoch", "int32"),
        Field("replicas", "int32", array=True),
        Field("adding_replicas", "int32", array=True, since=3, default=()),
        Field("removing_replicas", "int32", array=True, since=3, default=()),
        Field("is_new", "bool", since=1, default=False),
        Field("leader_recovery_state", "int8", since=6, default=0),
    ),
)

_TOPIC_STATE: Final = Structure(
    "LeaderAndIsrTopicState",
    (
        Field("topic_name", "string"),
        Field("topic_id", "uuid", since=5),
        Field("partition_states", _PARTITION_STATE, array=True),
    ),
)

_LIVE_LEADER: Final = Structure(
    "LeaderAndIsrLiveLeader",
    (
        Field("broker_id", "int32"),
        Field("host_name", "string"),
        Field("port", "int32"),
    ),
)

LEADER_AND_ISR_REQUEST: Final = Message(
    "LeaderAndIsrRequest",
    EntityType.request,
    api_key=4,
    versions=range(8),
    flexible_since=4,
    fields=(
        Field("controller_id", "int32"),
        Field("is_k_raft_controller", "bool", since=7, default=False),
        Field("controller_epoch", "int32"),
        Field("broker_epoch", "int64", since=2, default=-1),
        Field("type_", "int8", since=5),
        Field("ungrouped_partition_states", _PARTITION_STATE, array=True, until=1),
        Field("topic_states", _TOPIC_STATE, array=True, since=2),
        Field("live_leaders", _LIVE_LEADER, array=True),
    ),
)

_PARTITION_ERROR: Final = Structure(
    "LeaderAndIsrPartitionError",
    (
        Field("topic_name", "string", until=4),
        Field("partition_index", "int32"),
        Field("error_code", "error_code"),
    ),
)

_TOPIC_ERROR: Final = Structure(
    "LeaderAndIsrTopicError",
    (
        Field("topic_id", "uuid"),
        Field("partition_errors", _PARTITION_ERROR, array=True),
    ),
)

LEADER_AND_ISR_RESPONSE: Final = Message(
    "LeaderAndIsrResponse",
    EntityType.response,
    api_key=4,
    versions=range(8),
    flexible_since=4,
    fields=(
        Field("error_code", "error_code"),
        Field("partition_errors", _PARTITION_ERROR, array=True, until=4),
        Field("topics", _TOPIC_ERROR, array=True, since=5),
    ),
)
