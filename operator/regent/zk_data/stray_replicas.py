"""Replicas that are left on a broker's disk: ``/regent/stray_replicas/<broker>/<topic>``.

These nodes are Regent's own. Kafka's controllers neither read nor remove them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from regent.model.errors import MalformedZNodeError
from regent.model.topic import MAX_TOPIC_NAME_LENGTH
from regent.zk_data.decoding import PartitionId, json_decoder, json_object

STRAY_REPLICAS: Final = "/regent/stray_replicas"
PARENTS: Final = ("/regent", STRAY_REPLICAS)
"""To be created, in this order, before the first node of a broker."""


class _StrayReplicas(msgspec.Struct):
    partitions: tuple[PartitionId, ...]


_decode = json_decoder(_StrayReplicas)


def strays_on(broker_id: int) -> str:
    """Parent of the nodes of one broker."""
    return f"{STRAY_REPLICAS}/{broker_id}"


def strays_of(broker_id: int, topic: str) -> str:
    """The stray replicas of one topic on one broker."""
    return f"{STRAY_REPLICAS}/{broker_id}/{topic}"


def encode_stray_replicas(partitions: Iterable[int]) -> bytes:
    """Content of a node: version 1 and the partitions, in ascending order."""
    return json_object([("version", 1), ("partitions", sorted(partitions))])


def decode_stray_replicas(path: str, data: bytes) -> tuple[int, ...]:
    """Partitions of the topic whose logs are left on the broker.

    Raises:
        MalformedZNodeError: If the node does not decode, or its name is too long for a topic's: no
            broker has a directory of that name.
    """
    if len(path.rpartition("/")[2].encode()) > MAX_TOPIC_NAME_LENGTH:
        raise MalformedZNodeError(
            path, f"the topic name is longer than {MAX_TOPIC_NAME_LENGTH} bytes"
        )
    return _decode(path, data).partitions
