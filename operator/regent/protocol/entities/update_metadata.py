"""UpdateMetadata, API key 6: what a broker answers its clients' metadata requests from.

Versions: 1 has several endpoints for each broker instead of one address, 2 adds the rack, 3 names
of listeners, 4 offline replicas (KIP-112), 5 the broker epoch and grouping by topic (KIP-380), 6 is
flexible (KIP-482), 7 adds topic ids (KIP-516), 8 whether the controller is a KRaft one (KIP-866).
"""

from __future__ import annotations

from typing import Final

from kio.static.constants import EntityType

from regent.protocol.entities.declaration import Field, Message, Structure

_PARTITION_STATE: Final = Structure(
    "UpdateMetadataPartitionState",
    (
        Field("topic_name", "string", until=4),
        Field("partition_index", "int32"),
        Field("controller_epoch", "int32"),
        Field("leader", "int32"),
        Field("leader_epoch", "int32"),
        Field("isr", "int32", array=True),
        Field("zk_version", "int32"),
        Field("replicas", "int32", array=True),
        Field("offline_replicas", "int32", since=4, array=True, default=()),
    ),
)

_TOPIC_STATE: Final = Structure(
    "UpdateMetadataTopicState",
    (
        Field("topic_name", "string"),
        Field("topic_id", "uuid", since=7),
        Field("partition_states", _PARTITION_STATE, array=True),
    ),
)

_ENDPOINT: Final = Structure(
    "UpdateMetadataEndpoint",
    (
        Field("port", "int32"),
        Field("host", "string"),
        Field("listener", "string", since=3),
        Field("security_protocol", "int16"),
    ),
)

_BROKER: Final = Structure(
    "UpdateMetadataBroker",
    (
        Field("id_", "int32"),
        Field("v0_host", "string", until=0),
        Field("v0_port", "int32", until=0),
        Field("endpoints", _ENDPOINT, since=1, array=True),
        Field("rack", "string", since=2, nullable=True),
    ),
)

UPDATE_METADATA_REQUEST: Final = Message(
    "UpdateMetadataRequest",
    EntityType.request,
    api_key=6,
    versions=range(9),
    flexible_since=6,
    fields=(
        Field("controller_id", "int32"),
        Field("is_k_raft_controller", "bool", since=8, default=False),
        Field("type_", "int8", since=8, default=0, tag=0),
        Field("controller_epoch", "int32"),
        Field("broker_epoch", "int64", since=5, default=-1),
        Field("ungrouped_partition_states", _PARTITION_STATE, array=True, until=4),
        Field("topic_states", _TOPIC_STATE, array=True, since=5),
        Field("live_brokers", _BROKER, array=True),
    ),
)

UPDATE_METADATA_RESPONSE: Final = Message(
    "UpdateMetadataResponse",
    EntityType.response,
    api_key=6,
    versions=range(9),
    flexible_since=6,
    fields=(Field("error_code", "error_code"),),
)
