"""A cluster at one moment, in columns: some 20 bytes a replica, of any replication factor."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.ragged import Bools, Ints, ints, owners, positions

UNKNOWN = -1
"""A size or capacity that nobody knows, a leader that is not there."""

AMOUNT_MAX = 2**53
"""Of bytes, or bytes a second: sums stay within 64 bits, and floats are exact up to here."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class LogDir:
    """One of several log directories of a broker.

    Attributes:
        bytes: Its capacity.
        used_bytes: Bytes of its replicas.
        replicas: How many it has. Kafka puts a new one where the fewest are.
    """

    path: str
    bytes: int
    used_bytes: int
    replicas: int

    def __post_init__(self) -> None:
        for name, value in (
            ("bytes", self.bytes),
            ("usedBytes", self.used_bytes),
            ("replicas", self.replicas),
        ):
            if value < 0:
                raise InvalidInputError(
                    f"log directory {self.path}: {name} {value} is negative: give what it has, or "
                    "leave out the broker's logDirs"
                )


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
        network_in, network_out: Bytes a second that it can receive and send, or UNKNOWN.
        log_dirs: Its log directories; none if it has one, or they are not known.
    """

    ids: Ints
    racks: Ints
    rack_names: tuple[str, ...]
    alive: Bools
    disk_bytes: Ints
    network_in: Ints
    network_out: Ints
    log_dirs: tuple[tuple[LogDir, ...], ...]

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
        network_in: Sequence[int] | None = None,
        network_out: Sequence[int] | None = None,
        log_dirs: Sequence[tuple[LogDir, ...]] | None = None,
    ) -> Brokers:
        """Brokers in any order. A capacity of 0 is an unknown one: file systems that cannot tell
        theirs say so. Raises InvalidInputError for ids that are negative or repeated, and for
        racks that are no names."""
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
        for broker, rack in zip(ids, names, strict=True):
            if not rack.isprintable():
                raise InvalidInputError(
                    f"broker {broker}: rack {rack!r} has a control character: correct the "
                    "broker's broker.rack"
                )
        rack_names = tuple(sorted(set(names)))
        number = {name: i for i, name in enumerate(rack_names)}
        living = np.ones(len(order), dtype=np.bool_) if alive is None else np.asarray(alive)

        def capacity(values: Sequence[int] | None) -> Ints:
            known = np.full(len(order), UNKNOWN) if values is None else ints(values)[order]
            return ints(np.where(known == 0, UNKNOWN, known))

        return cls(
            ids=sorted_ids,
            racks=ints([number[name] for name in names])[order],
            rack_names=rack_names,
            alive=living[order].astype(np.bool_),
            disk_bytes=capacity(disk_bytes),
            network_in=capacity(network_in),
            network_out=capacity(network_out),
            log_dirs=tuple(() if log_dirs is None else log_dirs[i] for i in order.tolist()),
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
        bytes_in: Bytes a second that producers write to each partition, hence that each of its
            replicas receives; UNKNOWN where nobody has measured.
        bytes_out: Bytes a second that the leader of each partition sends, or UNKNOWN.
        notes: What is to be said of a plan that is made from it, a sentence each.
    """

    brokers: Brokers
    topics: tuple[str, ...]
    topic: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    offsets: Ints
    replicas: npt.NDArray[np.int32]
    leader: npt.NDArray[np.int16]
    sizes: Ints = field(repr=False)
    bytes_in: Ints = field(repr=False)
    bytes_out: Ints = field(repr=False)
    notes: tuple[str, ...] = ()

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
        unknown = (at_leader == UNKNOWN) | (self.leader == UNKNOWN)
        if not unknown.any():
            return at_leader
        largest = np.zeros(self.partitions, dtype=np.int64)
        np.maximum.at(largest, owners(self.offsets), self.sizes)
        return np.where(unknown, largest, at_leader)


@dataclass(frozen=True, slots=True)
class Rows:
    """What a snapshot file has for each partition, in any order, brokers by their ids.

    Attributes:
        replicas: Flat; ``lengths`` says how many belong to each partition.
        leader: The leader's id, UNKNOWN if there is none.
        sizes: Flat as replicas, or None if no size is known.
        bytes_in, bytes_out: Bytes a second of each partition, or None if no rate is known.
    """

    topic: Sequence[str]
    partition: npt.ArrayLike
    lengths: npt.ArrayLike
    replicas: npt.ArrayLike
    leader: npt.ArrayLike
    sizes: npt.ArrayLike | None = None
    bytes_in: npt.ArrayLike | None = None
    bytes_out: npt.ArrayLike | None = None


def snapshot_of(brokers: Brokers, rows: Rows) -> Snapshot:
    """A checked snapshot. Raises InvalidInputError for what no cluster can be."""
    topics = tuple(sorted(set(rows.topic)))
    place = {topic: i for i, topic in enumerate(topics)}
    number = np.fromiter(map(place.__getitem__, rows.topic), np.int64, count=len(rows.topic))
    partition, lengths = ints(rows.partition), ints(rows.lengths)
    for topic in topics:
        if not topic.isprintable():
            raise InvalidInputError(f"topic {topic!r} has a control character: no topic can")
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

    def rates(values: npt.ArrayLike | None) -> Ints:
        return ints(np.full(len(order), UNKNOWN) if values is None else ints(values)[order])

    snapshot = Snapshot(
        brokers=brokers,
        topics=topics,
        topic=number[order].astype(np.int32),
        partition=partition[order].astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.int64),
        replicas=np.zeros(0, dtype=np.int32),
        leader=np.zeros(0, dtype=np.int16),
        sizes=sizes,
        bytes_in=rates(rows.bytes_in),
        bytes_out=rates(rows.bytes_out),
    )
    _check_partitions(snapshot)
    located = brokers.positions_of(flat, what=_replicas_of_strangers(snapshot, flat))
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
    for what, rates in (("bytes in", snapshot.bytes_in), ("bytes out", snapshot.bytes_out)):
        problem = (
            f"its {what} per second are negative: give a rate, or {UNKNOWN} for an unknown one"
        )
        refuse(rates < UNKNOWN, problem)
    negative = snapshot.sizes < UNKNOWN
    if negative.any():
        wrong = int(owners(snapshot.offsets)[int(np.argmax(negative))])
        raise InvalidInputError(
            f"{snapshot.name(wrong)}: size {snapshot.sizes[int(np.argmax(negative))]} is "
            f"negative: give bytes, or {UNKNOWN} for an unknown size"
        )


def _replicas_of_strangers(snapshot: Snapshot, flat: Ints) -> str:
    """Which partitions have replicas on brokers that are not in the snapshot."""
    unknown = ~np.isin(flat, snapshot.brokers.ids)
    named = np.unique(owners(snapshot.offsets)[unknown]).tolist()
    return f"replicas of {listed([snapshot.name(each) for each in named])}"


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
    return dataclasses.replace(unfinished, replicas=replicas.astype(np.int32), leader=leader)


def listed(values: Sequence[object]) -> str:
    """A few values, and how many more there are."""
    shown = ", ".join(str(value) for value in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN} more"
