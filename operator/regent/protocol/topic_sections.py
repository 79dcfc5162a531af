"""The arrays of topics in requests: entries of partitions under their topics."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final

from regent.model.partition import TopicPartition
from regent.protocol.primitives import Encoding, uuid_bytes

_topic_of: Final = itemgetter(0)


def by_topic(partitions: Iterable[TopicPartition], entries: list[bytes]) -> dict[str, list[bytes]]:
    """Entries of partitions, in the same order, under their topics in the order of appearance.

    Fast where the partitions of a topic are adjacent, correct anyway.
    """
    topics: dict[str, list[bytes]] = {}
    start = 0
    for name, same in groupby(map(_topic_of, partitions)):
        end = start + len(list(same))
        topics.setdefault(name, []).extend(entries[start:end])
        start = end
    return topics


def topic_head(
    topic_ids: Mapping[str, uuid.UUID], encoding: Encoding, *, with_id: bool
) -> Callable[[str], bytes]:
    """Encodes a topic's name, and its id where the version has one; zero stands for none."""
    if not with_id:
        return encoding.string
    return lambda topic: encoding.string(topic) + uuid_bytes(topic_ids.get(topic))


def topics_section(
    topics: Mapping[str, list[bytes]],
    head: Callable[[str], bytes],
    *,
    encoding: Encoding,
    suffix: bytes = b"",
) -> list[bytes]:
    """The array of topics, each with the array of its partitions, as parts to be joined.

    Args:
        head: Gives the fields of a topic in front of its partitions.
        suffix: Follows each entry, where that is the same for all of them: joining is cheaper than
            appending it to each.
    """
    parts = [encoding.array_length(len(topics))]
    array_length, end = functools.cache(encoding.array_length), suffix + encoding.tags
    for topic, entries in topics.items():
        parts += (head(topic), array_length(len(entries)), suffix.join(entries), end)
    return parts


def ungrouped_section(
    topics: Mapping[str, list[bytes]], *, encoding: Encoding, suffix: bytes = b""
) -> list[bytes]:
    """The array of partitions of the oldest versions, where each repeats its topic's name."""
    parts = [encoding.array_length(sum(map(len, topics.values())))]
    for topic, entries in topics.items():
        name = encoding.string(topic)
        parts += [name + entry + suffix for entry in entries]
    return parts
