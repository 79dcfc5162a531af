"""What a broker says of its log directories."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class LogDirectory(msgspec.Struct, frozen=True, rename="camel"):
    """A log directory that a broker can use.

    Attributes:
        bytes: Capacity of its volume.
        used_bytes: Bytes of its replicas, and of copies on their way to it from another directory.
        replicas: How many these are. Kafka puts a new one where the fewest are.
    """

    path: str
    bytes: int
    used_bytes: int
    replicas: int


class LogDirs(msgspec.Struct, frozen=True):
    """The log directories of one broker.

    Attributes:
        sizes: Bytes of each replica in the online directories, by topic and partition. Copies on
            their way from one directory to another are left out.
        offline: Paths of the directories that the broker cannot use, sorted.
        capacity: Bytes of the volumes of all online directories together; None if the broker does
            not say (KIP-827 came with Kafka 3.3), or they have no end. Two directories on one
            volume count twice: Kafka does not say which are.
        directories: The online ones, sorted by path, if there are several and ``capacity`` is
            known.
    """

    sizes: Mapping[str, Mapping[int, int]]
    offline: tuple[str, ...] = ()
    capacity: int | None = None
    directories: tuple[LogDirectory, ...] = ()

    def size_of(self, topic: str, partition: int) -> int | None:
        """Bytes of a replica; None if it is not in the answer."""
        return self.sizes.get(topic, {}).get(partition)
