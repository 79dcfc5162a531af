"""AlterPartitionReassignments, API key 45 (KIP-455): a client asks to move partitions.

The tagged field of a partition is Regent's own: what the client has found before it decided.
Brokers skip it, as all tagged fields that they do not know; a Regent moves no partition that has
changed since.
"""

from __future__ import annotations

import datetime
from typing import Final

from kio.static.constants import EntityType

from regent.protocol.entities.declaration import Field, Message, Structure

FOUND_TAG: Final = 10_000
"""Kafka numbers its tagged fields from 0 on."""

_FOUND: Final = Structure(
    "FoundPartition",
    (
        Field("topic_czxid", "int64"),
        Field("replicas", "int32", array=True),
        Field("adding_replicas", "int32", array=True),
        Field("removing_replicas", "int32", array=True),
    ),
)

_PARTITION: Final = Structure(
    "ReassignablePartition",
    (
        Field("partition_index", "int32"),
        Field("replicas", "int32", array=True, nullable=True, default=None),
        Field("found", _FOUND, array=True, default=(), tag=FOUND_TAG),
    ),
)

_TOPIC: Final = Structure(
    "ReassignableTopic",
    (
        Field("name", "string"),
        Field("partitions", _PARTITION, array=True),
    ),
)

ALTER_PARTITION_REASSIGNMENTS_REQUEST: Final = Message(
    "AlterPartitionReassignmentsRequest",
    EntityType.request,
    api_key=45,
    versions=range(1),
    flexible_since=0,
    fields=(
        Field("timeout", "timedelta_i32", default=datetime.timedelta(minutes=1)),
        Field("topics", _TOPIC, array=True),
    ),
)
