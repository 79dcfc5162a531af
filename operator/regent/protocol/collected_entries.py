"""What a LeaderAndIsr mostly consists of, encoded topic by topic before there is a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple


class TopicEntries:
    """Entries of different partitions of a topic, one behind the other.

    Attributes:
        count: How many.
    """

    __slots__ = ("_encoded", "count")

    def __init__(self, count: int, encoded: bytes | bytearray) -> None:
        self.count = count
        self._encoded = encoded

    @property
    def encoded(self) -> bytes | bytearray:
        """Of each its leading bytes (:mod:`regent.protocol.partition_state`, in the flexible
        encoding), and the suffix of :class:`CollectedEntries`."""
        return self._encoded

    @classmethod
    def of(cls, prefixes: Iterable[bytes], *, suffix: bytes) -> TopicEntries:
        """From the leading bytes of each partition."""
        parts = [*prefixes, b""]
        return cls(len(parts) - 1, suffix.join(parts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicEntries):
            return NotImplemented
        return (self.count, self.encoded) == (other.count, other.encoded)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.count}, {bytes(self.encoded)!r})"


class CollectedEntries(NamedTuple):
    """Entries in the LeaderAndIsr of one broker. None is new there, is being reassigned, or has a
    leader that recovers: what follows the leading bytes of each is the same.

    Attributes:
        suffix: That. Not every version of the request has the same.
        topics: They need not be all that the broker hosts.
    """

    suffix: bytes
    topics: Mapping[str, TopicEntries]

    @property
    def entry_count(self) -> int:
        """How many there are."""
        return sum(topic.count for topic in self.topics.values())


NOTHING_COLLECTED: Final = CollectedEntries(b"", {})
