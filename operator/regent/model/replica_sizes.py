"""How much of partitions a broker has on its disks."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from regent.model.partition import TopicPartition


class ReplicaSizes(msgspec.Struct, frozen=True):
    """What a broker has said about partitions that it was asked for.

    Attributes:
        sizes: Bytes on disk, of those of which it has a replica. A copy that is on its way from one
            directory of the broker to another does not count.
        failed_directories: Log directories of which it does not say what is in them.
    """

    sizes: Mapping[TopicPartition, int]
    failed_directories: tuple[str, ...] = ()
