"""A cluster at one moment, in columns: some 20 bytes a replica, of any replication factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.ragged import Bools, Ints, ints, owners, positions

UNKNOWN = -1
"""A size or capacity that nobody knows, a leader that is not there."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Brokers:
    """The brokers, in order of their ids. Everywhere else a broker is its position in here.

    Attributes:
        ids: Unique and ascending.
        racks: Position of the broker's rack in ``rack_names``. A broker that names no rack is in
            the rack "" as Kafka's own assignment treats a cluster without racks.
        rack_names: Unique and sorted.
        alive: Whether the broker is registered. A dead one keeps no replica in any plan.
        disk_bytes: Capacity of all its log directories together, or UNKNOWN.
    """

    ids: Ints
    racks: Ints
    rack_names: tuple[str, ...]
    alive: Bools
    disk_bytes: Ints

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(
        cls,
        ids: Sequence[int],
        racks: Sequence[str | None],
        *,
        alive: Sequence[bool] | None = None,
        disk_bytes: Sequence[int] | None = None,
    ) -> Brokers:
        """Brokers in any order. Raises InvalidInputError for ids that are negative or repeated."""
        order = np.argsort(ints(ids), kind="stable")
        sorted_ids = ints(ids)[order]
        if len(sorted_ids) == 0:
            raise InvalidInputError("the snapshot names no brokers: list them under 'brokers'")
        if sorted_ids[0] < 0:
            raise InvalidInputError(f"broker {sorted_ids[0]}: an id is not negative")
        repeated = sorted_ids[1:][np.diff(sorted_ids) == 0]
        if len(repeated):
            raise InvalidInputError(f"broker {repeated[0]} is listed twice: keep one of the two")
        names = ["" if rack is None else rack for rack in racks]
        rack_names = tuple(sorted(set(names)))
        number = {name: i for i, name in enumerate(rack_names)}
        living = np.ones(len(order), dtype=np.bool_) if alive is None else np.asarray(alive)
        capacity = np.full(len(order), UNKNOWN) if disk_bytes is None else ints(disk_bytes)
        return cls(
            ids=sorted_ids,
            racks=ints([number[name] for name in names])[order],
            rack_names=rack_names,
            alive=living[order].astype(np.bool_),
            disk_bytes=ints(capacity)[order],
        )

    def positions_of(self, ids: npt.ArrayLike, *, what: str) -> Ints:
        """Positions of brokers named by id. Raises InvalidInputError for an unknown one."""
        wanted = ints(ids)
        found = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        unknown = np.unique(wanted[self.ids[found] != wanted])
        if len(unknown):
            raise InvalidInputError(
                f"{what}: the snapshot has no broker {listed(unknown.tolist())}; it has "
                f'{listed(self.ids.tolist())}: add a dead one with "alive": false'
            )
        return ints(found)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Brokers and partitions. Partitions are sorted by topic and number.

    Attributes:
        topics: Names, sorted.
        topic: For each partition the position of its topic.
        partition: For each partition its number in the topic.
        offsets: Where the replicas of each partition begin, and the end of the last.
        replicas: For each replica its broker; the first of a partition is the preferred leader.
        leader: For each partition which of its replicas leads (0 the first), or UNKNOWN.
        sizes: Bytes of each replica, or UNKNOWN.
    """

    brokers: Brokers
    topics: tuple[str, ...]
    topic: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    offsets: Ints
    replicas: npt.NDArray[np.int32]
    leader: npt.NDArray[np.int16]
    sizes: Ints = field(repr=False)

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return len(self.topic)

    @property
    def replication(self) -> Ints:
        """How many replicas each partition has."""
        return np.diff(self.offsets)

    def name(self, partition: int) -> str:
        """Topic and number, as Kafka prints them."""
        return f"{self.topics[self.topic[partition]]}-{self.partition[partition]}"

    def leaders(self) -> Ints:
        """The broker that leads each partition; the preferred one where nobody does."""
        return ints(self.replicas[self.offsets[:-1] + np.maximum(self.leader, 0)])

    def copy_bytes(self) -> Ints:
        """Bytes that a new replica of each partition copies: the leader's size.

        The largest known one where the leader's is not known, 0 where none is.
        """
        at_leader = self.sizes[self.offsets[:-1] + np.maximum(self.leader, 0)]
        largest = np.zeros(self.partitions, dtype=np.int64)
        np.maximum.at(largest, owners(self.offsets), self.sizes)
        return np.where((at_leader == UNKNOWN) | (self.leader == UNKNOWN), largest, at_leader)


@dataclass(frozen=True, slots=True)
class Rows:
    """What a snapshot file has for each partition, in any order, brokers by their ids.

    Attributes:
        replicas: Flat; ``lengths`` says how many belong to each partition.
        leader: The leader's id, UNKNOWN if there is none.
        sizes: Flat as replicas, or None if no size is known.
    """

    topic: Sequence[str]
    partition: npt.ArrayLike
    lengths: npt.ArrayLike
    replicas: npt.ArrayLike
    leader: npt.ArrayLike
    sizes: npt.ArrayLike | None = None


def snapshot_of(brokers: Brokers, rows: Rows) -> Snapshot:
    """A checked snapshot. Raises InvalidInputError for what no cluster can be."""
    topics, number = np.unique(np.asarray(rows.topic, dtype=np.str_), return_inverse=True)
    partition, lengths = ints(rows.partition), ints(rows.lengths)
    order = np.lexsort((partition, number))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    flat = np.concatenate(
        [np.zeros(0, dtype=np.int64), _gather(offsets, order, ints(rows.replicas))]
    )
    sizes = (
        np.full(len(flat), UNKNOWN)
        if rows.sizes is None
        else _gather(offsets, order, ints(rows.sizes))
    )
    snapshot = Snapshot(
        brokers=brokers,
        topics=tuple(str(topic) for topic in topics),
        topic=number[order].astype(np.int32),
        partition=partition[order].astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.int64),
        replicas=np.zeros(0, dtype=np.int32),
        leader=np.zeros(0, dtype=np.int16),
        sizes=sizes,
    )
    _check_partitions(snapshot)
    located = brokers.positions_of(flat, what="replicas")
    return _with_replicas(snapshot, located, ints(rows.leader)[order])


def _gather(offsets: Ints, order: Ints, values: Ints) -> Ints:
    lengths = np.diff(offsets)[order]
    begins = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    return ints(values[np.repeat(offsets[:-1][order] - begins, lengths) + np.arange(lengths.sum())])


def _check_partitions(snapshot: Snapshot) -> None:
    def refuse(wrong: Bools, problem: str) -> None:
        if wrong.any():
            raise InvalidInputError(f"{snapshot.name(int(np.argmax(wrong)))}: {problem}")

    refuse(snapshot.partition < 0, "a partition's number is not negative")
    same = (np.diff(snapshot.topic) == 0) & (np.diff(snapshot.partition) == 0)
    refuse(np.append(same, [False]), "is listed twice: keep one of the two")
    refuse(snapshot.replication == 0, "has no replicas: leave it out, or say where they are")
    negative = snapshot.sizes < UNKNOWN
    if negative.any():
        wrong = int(owners(snapshot.offsets)[int(np.argmax(negative))])
        raise InvalidInputError(
            f"{snapshot.name(wrong)}: size {snapshot.sizes[int(np.argmax(negative))]} is "
            f"negative: give bytes, or {UNKNOWN} for an unknown size"
        )


def _with_replicas(unfinished: Snapshot, replicas: Ints, leader_ids: Ints) -> Snapshot:
    brokers, of = unfinished.brokers, owners(unfinished.offsets)
    keys = np.sort(of * len(brokers) + replicas)
    repeated = keys[1:][np.diff(keys) == 0]
    if len(repeated):
        partition, broker = divmod(int(repeated[0]), len(brokers))
        raise InvalidInputError(
            f"{unfinished.name(partition)}: broker {brokers.ids[broker]} has two replicas of it: "
            "name each broker once"
        )
    leads = brokers.ids[replicas] == leader_ids[of]
    leader = np.full(unfinished.partitions, UNKNOWN, dtype=np.int16)
    leader[of[leads]] = positions(unfinished.offsets)[leads]
    stranger = (leader == UNKNOWN) & (leader_ids != UNKNOWN)
    if stranger.any():
        wrong = int(np.argmax(stranger))
        raise InvalidInputError(
            f"{unfinished.name(wrong)}: leader {leader_ids[wrong]} has no replica of it: name one "
            f"of its replicas, or {UNKNOWN} if it has no leader"
        )
    return Snapshot(
        brokers=brokers,
        topics=unfinished.topics,
        topic=unfinished.topic,
        partition=unfinished.partition,
        offsets=unfinished.offsets,
        replicas=replicas.astype(np.int32),
        leader=leader,
        sizes=unfinished.sizes,
    )


def listed(values: Sequence[object]) -> str:
    """A few values, and how many more there are."""
    shown = ", ".join(str(value) for value in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN} more"
