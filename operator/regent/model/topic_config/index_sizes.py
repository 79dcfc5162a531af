"""Whether the index of a segment has room for the entries that a broker may write into it.

A broker rolls a segment whose index is full. But where it reads a segment anew, after it was
killed, it writes an entry for each batch that is more than ``index.interval.bytes`` behind the last
one, and rolls nothing: it fails over a full index (``LogSegment.recover``), and does not start. The
same happens to an index that is larger already than ``segment.index.bytes`` has become since
(``AbstractIndex.resize``), also after a clean stop. Kafka accepts such values in all versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from regent.model.topic_config.brokers import BrokerFacts
from regent.model.topic_config.java_parsing import parse_int
from regent.model.topic_config.problems import ConfigProblem

_INDEX: Final = "segment.index.bytes"
_INTERVAL: Final = "index.interval.bytes"
_SEGMENT: Final = "segment.bytes"
_KEYS: Final = (_INDEX, _INTERVAL, _SEGMENT)

_SETTINGS: Final[Mapping[str, tuple[str, int]]] = {
    _INDEX: ("log.index.size.max.bytes", 10 * 2**20),
    _INTERVAL: ("log.index.interval.bytes", 4096),
    _SEGMENT: ("log.segment.bytes", 2**30),
}
"""A broker's setting for topics that do not have the key, and its default."""

_ENTRY_BYTES: Final = 12
"""Of a time index; one of an offset index takes 8."""
_SMALLEST_BATCH_BYTES: Final = 26
"""A message without key and value of the oldest format."""


class _Sizes(NamedTuple):
    index_bytes: int
    interval: int
    segment: int

    @property
    def needed(self) -> int:
        """What an index takes for all entries of a segment. A time index keeps one entry free."""
        distance = max(self.interval + 1, _SMALLEST_BATCH_BYTES)
        return _ENTRY_BYTES * (self.segment // distance + 1)


def index_problems(config: Mapping[str, str], broker: BrokerFacts) -> Iterator[ConfigProblem]:
    """Problems of the sizes that a topic has, on one broker."""
    declared = [key for key in _KEYS if key in config]
    sizes, default = _sizes(config, broker.settings), _sizes({}, broker.settings)
    if sizes.index_bytes >= sizes.needed:
        return
    if sizes.index_bytes >= default.index_bytes and sizes.needed <= default.needed:
        return  # no worse than what the broker has for all topics
    if sizes.index_bytes < _ENTRY_BYTES:
        return  # a problem of its own
    yield ConfigProblem(
        declared[0],
        f"{_INDEX!r} ({sizes.index_bytes}) must be {sizes.needed} or more with {_SEGMENT!r} "
        f"{sizes.segment} and {_INTERVAL!r} {sizes.interval}: the index of a segment could get too "
        "large for it, and a broker that was killed would not start any more; change one of them",
        is_certain=broker.has_answered or len(declared) == len(_KEYS),
    )


def lowered_index_problems(
    before: Mapping[str, str], after: Mapping[str, str], brokers: Sequence[BrokerFacts]
) -> Iterator[ConfigProblem]:
    """Problems of a change that leaves less room for the entries of segments that are there.

    Segments may be older than the present configuration. So what brokers have for all topics
    counts, too.
    """
    if all(before.get(key) == after.get(key) for key in (_INDEX, _INTERVAL)):
        return
    for settings in [broker.settings for broker in brokers] or [None]:
        old, new, default = (_sizes(each, settings) for each in (before, after, {}))
        if new.index_bytes >= old.index_bytes and new.interval >= old.interval:
            continue
        largest = _Sizes(
            new.index_bytes,
            min(old.interval, new.interval, default.interval),
            max(old.segment, new.segment, default.segment),
        )
        if new.index_bytes < largest.needed:
            key, was, will = (
                (_INDEX, old.index_bytes, new.index_bytes)
                if new.index_bytes < old.index_bytes
                else (_INTERVAL, old.interval, new.interval)
            )
            yield ConfigProblem(
                key,
                f"{key!r} cannot be lowered from {was} to {will}: the topic may have segments "
                f"whose index takes {largest.needed} bytes and would have {new.index_bytes}, and "
                f"brokers would not start any more; leave {key!r} as it is, or set {_INDEX!r} to "
                f"{largest.needed} or more",
            )
            return


def _sizes(config: Mapping[str, str], settings: Mapping[str, str] | None) -> _Sizes:
    return _Sizes(*(_size(key, config, settings or {}) for key in _KEYS))


def _size(key: str, config: Mapping[str, str], settings: Mapping[str, str]) -> int:
    setting, default = _SETTINGS[key]
    for text in (config.get(key), settings.get(setting)):
        number = None if text is None else parse_int(text)
        if number is not None:
            return number
    return default
