"""Arrays of topics, encoded while they are sent."""

from __future__ import annotations

import pytest

from regent.protocol import topic_sections
from regent.protocol.collected_entries import TopicEntries
from regent.protocol.primitives import FLEXIBLE
from regent.protocol.topic_sections import TopicsInPieces, topics_section


@pytest.mark.parametrize(("size", "pieces"), [(1, 3), (20, 2), (10_000, 1)])
def test_pieces_are_what_is_encoded_at_once(
    size: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
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
