"""ControlledShutdown, API key 7: a broker that stops asks for its leaders to be moved.

Versions: 1 has a header with a client id, 2 adds the broker epoch (KIP-380), 3 is flexible
(KIP-482).
"""

from __future__ import annotations

from typing import Final

from kio.static.constants import EntityType

from regent.protocol.entities.declaration import Field, Message, Structure

CONTROLLED_SHUTDOWN_REQUEST: Final = Message(
    "ControlledShutdownRequest",
    EntityType.request,
    api_key=7,
    versions=range(4),
    flexible_since=3,
    fields=(
        Field("broker_id", "int32"),
        Field("broker_epoch", "int64", since=2, default=-1),
    ),
)

_REMAINING_PARTITION: Final = Structure(
    "RemainingPartition",
    (
        Field("topic_name", "string"),
        Field("partition_index", "int32"),
    ),
)

CONTROLLED_SHUTDOWN_RESPONSE: Final = Message(
    "ControlledShutdownResponse",
    EntityType.response,
    api_key=7,
    versions=range(4),
    flexible_since=3,
    fields=(
        Field("error_code", "error_code"),
        Field("remaining_partitions", _REMAINING_PARTITION, array=True),
    ),
)
