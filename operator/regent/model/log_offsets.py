"""Where the logs of partitions begin and end."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from regent.model.partition import TopicPartition


class LogOffsets(msgspec.Struct, frozen=True):
    """What the leaders of partitions say.

    Attributes:
        start: The first offset of a log, by partition.
        end: The high watermark.
        unknown: Why a broker does not tell that of some of its partitions, a sentence each.
    """

    start: Mapping[TopicPartition, int]
    end: Mapping[TopicPartition, int]
    unknown: tuple[str, ...] = ()
