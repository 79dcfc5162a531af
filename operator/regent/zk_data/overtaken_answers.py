"""Answers to leaders that a higher leader epoch may have overtaken:
``/regent/overtaken_answers/<topic>-<partition>``.

The parent says which terms have just begun: they may have raised leader epochs while answers of
their predecessors were on their way.

These nodes are Regent's own. Kafka's controllers neither read nor remove them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from regent.model.partition import TopicPartition
from regent.zk_data.decoding import INT32_MAX, NonNegativeInt32, json_decoder, json_object

OVERTAKEN_ANSWERS: Final = "/regent/overtaken_answers"
PARENTS: Final = ("/regent", OVERTAKEN_ANSWERS)
"""To be created, in this order, before the first note."""


class _Terms(msgspec.Struct):
    terms: tuple[NonNegativeInt32, ...]


class _Note(msgspec.Struct):
    leader_epoch: NonNegativeInt32 = msgspec.field(name="leaderEpoch")


_decode = json_decoder(_Note)
_decode_terms = json_decoder(_Terms)


def overtaken_answer(tp: TopicPartition) -> str:
    """The note about a partition."""
    return f"{OVERTAKEN_ANSWERS}/{tp.topic}-{tp.partition}"


def partition_of_note(name: str) -> TopicPartition | None:
    """The partition that a note with this name is about; None if it is no such name."""
    topic, _, partition = name.rpartition("-")
    is_number = partition.isascii() and partition.isdigit() and len(partition) <= 10
    if not topic or not is_number or int(partition) > INT32_MAX:
        return None
    return TopicPartition(topic, int(partition))


def encode_overtaken_answer(leader_epoch: int) -> bytes:
    """Content of a note: version 1, and the leader epoch of the change that was answered."""
    return json_object([("version", 1), ("leaderEpoch", leader_epoch)])


def decode_overtaken_answer(path: str, data: bytes) -> int:
    """The leader epoch of the change that was answered.

    Raises:
        MalformedZNodeError: If the node does not decode.
    """
    return _decode(path, data).leader_epoch


def encode_begun_terms(epochs: Iterable[int]) -> bytes:
    """Content of the parent: version 1, and the controller epochs of terms that have begun."""
    return json_object([("version", 1), ("terms", list(epochs))])


def decode_begun_terms(data: bytes) -> tuple[int, ...]:
    """Controller epochs of terms that have begun, and whose beginning has not been looked after.

    Raises:
        MalformedZNodeError: If the node does not decode.
    """
    return _decode_terms(OVERTAKEN_ANSWERS, data).terms
