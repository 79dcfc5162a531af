"""The arrays of topics in requests: entries of partitions under their topics."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import Final

from regent.model.partition import TopicPartition
from regent.protocol.collected_entries import TopicEntries
from regent.protocol.primitives import (
    FLEXIBLE,
    NO_TAGS,
    Encoding,
    lengths_of_strings,
    uuid_bytes,
)

PIECE_SIZE: Final = 200_000
"""Bytes in a piece of :class:`TopicsInPieces`, and those of a topic more at most."""

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


def grouped_section(
    partitions: Collection[TopicPartition],
    entries: list[bytes],
    *,
    encoding: Encoding,
    topic_ids: Mapping[str, uuid.UUID] | None = None,
    suffix: bytes = b"",
) -> list[bytes]:
    """The array of topics, each with the array of its partitions, as parts to be joined.

    A cluster of small topics is where this matters: there a topic costs more than a partition.

    Args:
        entries: Of the partitions, in the same order.
        topic_ids: Of those topics that have one, where the version has ids; None: it has not.
        suffix: Follows each entry, where that is the same for all of them: joining is cheaper than
            appending it to each.
    """
    topics = list(map(_topic_of, partitions))
    if topics[:1] == topics[1:2] or len(dict.fromkeys(topics)) < len(topics):
        head = topic_head(topic_ids or {}, encoding, with_id=topic_ids is not None)
        return topics_section(by_topic(partitions, entries), head, encoding=encoding, suffix=suffix)
    names = list(map(str.encode, topics))
    columns: list[Iterable[bytes]] = [map(lengths_of_strings(encoding), map(len, names)), names]
    if topic_ids is not None:
        columns.append(map(uuid_bytes, map(topic_ids.get, topics)))
    columns += [
        repeat(encoding.array_length(1)),
        entries,
        repeat(suffix + encoding.tags),
    ]
    return [
        encoding.array_length(len(topics)),
        *chain.from_iterable(zip(*columns, strict=False)),
    ]


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


class TopicsInPieces:
    """What :func:`topics_section` encodes, piece by piece while it is sent.

    All of it at once would be tens of megabytes for each of many receivers. Memory of that size is
    new each time, and to get it from the kernel takes longer than to fill it.

    Args:
        topics: In the flexible encoding. Nobody changes them before all of it was sent.
    """

    def __init__(self, topics: Mapping[str, TopicEntries], head: Callable[[str], bytes]) -> None:
        array_length = functools.cache(FLEXIBLE.array_length)
        self._length = array_length(len(topics))
        self._topics = [
            (head(topic) + array_length(entries.count), entries.encoded)
            for topic, entries in topics.items()
        ]
        self._size = len(self._length) + sum(
            len(front) + len(entries) + len(NO_TAGS) for front, entries in self._topics
        )

    def __len__(self) -> int:
        """Bytes in all."""
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        """The bytes, anew each time."""
        parts: list[bytes | bytearray] = [self._length]
        size = 0
        for front, entries in self._topics:
            parts += (front, entries, NO_TAGS)
            size += len(entries)
            if size >= PIECE_SIZE:
                yield b"".join(parts)
                parts, size = [], 0
        if parts:
            yield b"".join(parts)


def ungrouped_section(
    topics: Mapping[str, list[bytes]], *, encoding: Encoding, suffix: bytes = b""
) -> list[bytes]:
    """The array of partitions of the oldest versions, where each repeats its topic's name."""
    parts = [encoding.array_length(sum(map(len, topics.values())))]
    for topic, entries in topics.items():
        name = encoding.string(topic)
        parts += [name + entry + suffix for entry in entries]
    return parts
