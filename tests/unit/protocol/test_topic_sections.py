"""Arrays of topics: from columns of partitions, and encoded while they are sent."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.partition import TopicPartition
from regent.protocol import topic_sections
from regent.protocol.collected_entries import TopicEntries
from regent.protocol.primitives import FLEXIBLE, LEGACY, Encoding
from regent.protocol.topic_sections import (
    TopicsInPieces,
    by_topic,
    grouped_section,
    topic_head,
    topics_section,
)

NAMES = ("a", "b", "ü" * 100, "c" * 249)


@pytest.mark.parametrize(("size", "pieces"), [(1, 3), (20, 2), (10_000, 1)])
def test_pieces_have_same_bytes(size: int, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_sections, "PIECE_SIZE", size)
    prefixes = {"a": [b"0123", b"45"], "": [b"6" * 20], "ü" * 100: [b"7" * 9] * 200}
    suffix = b"\x01\x00"
    expected = b"".join(topics_section(prefixes, FLEXIBLE.string, encoding=FLEXIBLE, suffix=suffix))
    entries = {topic: TopicEntries.of(some, suffix=suffix) for topic, some in prefixes.items()}
    section = TopicsInPieces(entries, FLEXIBLE.string)
    for _ in range(2):
        assert len(list(section)) == pieces
        assert b"".join(section) == expected
    assert len(section) == len(expected)


def test_there_may_be_no_topics() -> None:
    section = TopicsInPieces({}, FLEXIBLE.string)
    assert (b"".join(section), len(section)) == (b"\x01", 1)


@given(
    st.lists(st.builds(TopicPartition, st.sampled_from(NAMES), st.integers(0, 3)), unique=True),
    st.sampled_from([LEGACY, FLEXIBLE]),
    st.none() | st.dictionaries(st.sampled_from(NAMES), st.uuids()),
    st.sampled_from([b"", b"end"]),
)
def test_topics_of_one_partition_are_encoded_as_all_others(
    partitions: list[TopicPartition],
    encoding: Encoding,
    topic_ids: Mapping[str, uuid.UUID] | None,
    suffix: bytes,
) -> None:
    entries = [f"{topic[0]}{number}".encode() for topic, number in partitions]
    head = topic_head(topic_ids or {}, encoding, with_id=topic_ids is not None)
    expected = topics_section(by_topic(partitions, entries), head, encoding=encoding, suffix=suffix)
    section = grouped_section(
        partitions, entries, encoding=encoding, topic_ids=topic_ids, suffix=suffix
    )
    assert b"".join(section) == b"".join(expected)


def test_a_name_that_is_too_long_for_a_version_is_refused() -> None:
    with pytest.raises(ValueError, match="32768 bytes is too long"):
        grouped_section([TopicPartition("x" * 32768, 0)], [b""], encoding=LEGACY)
