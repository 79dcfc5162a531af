"""What the solvers see of a snapshot and goals: the partitions that may move, and limits."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from regent_rebalance.broker_costs import BrokerCosts
from regent_rebalance.errors import InfeasibleGoalsError, InvalidInputError
from regent_rebalance.goals import (
    RACK,
    REPLICA_CAPACITY,
    REPLICA_DISTRIBUTION,
    Goals,
    balance_limits,
)
from regent_rebalance.ragged import Bools, Counts, Ints, ints, offsets_of, owners, take
from regent_rebalance.snapshot import Snapshot, listed

_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Problem:
    """Placing replicas. Partitions are positions in ``movable``; brokers are those of the snapshot.

    Attributes:
        movable: The partitions of the snapshot that are not pinned.
        offsets: Where the present replicas of each movable partition begin.
        replicas: Their brokers.
        factor: How many replicas each movable partition is to have.
        size: Bytes that a new replica of each copies.
        rack: Rack of each broker.
        racks: How many racks there are.
        keeps: Brokers that may keep replicas: neither dead nor drained.
        takes: Brokers that may get new ones: not excluded either.
        fixed: Replicas of pinned partitions on each broker.
        costs: Limits on what movable partitions bring to each broker.
        repairs_racks: Whether partitions that share racks needlessly must be spread.
    """

    movable: Ints
    offsets: Ints
    replicas: Ints
    factor: Ints
    size: Ints
    rack: Ints
    racks: int
    keeps: Bools
    takes: Bools
    fixed: Ints
    costs: BrokerCosts
    repairs_racks: bool

    @property
    def partitions(self) -> int:
        """How many partitions may move."""
        return len(self.movable)

    @property
    def brokers(self) -> int:
        """How many brokers there are, those that keep nothing included."""
        return len(self.rack)

    def rack_limits(self) -> Ints:
        """How many replicas of each partition one rack may have; the same in every rack.

        The least number with which the racks have room for all replicas: 1 unless there are fewer
        racks than replicas.
        """
        in_rack = np.bincount(self.rack[self.keeps], minlength=self.racks)
        highest = int(self.factor.max(initial=1))
        room = np.array([np.minimum(in_rack, n).sum() for n in range(1, highest + 1)])
        return np.searchsorted(room, self.factor) + 1

    def kept_in_rack(self) -> Counts:
        """For each partition and rack, replicas on brokers that may keep them."""
        counts = np.zeros((self.partitions, self.racks), dtype=np.int16)
        lengths = np.diff(self.offsets)
        for column in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > column)
            broker = self.replicas[self.offsets[rows] + column]
            counts[rows, self.rack[broker]] += self.keeps[broker]
        return counts

    def allowed_in_rack(self, kept: Counts) -> Counts:
        """For each partition and rack, how many replicas a plan may put there."""
        limits = np.broadcast_to(self.rack_limits()[:, None].astype(np.int16), kept.shape)
        return limits if self.repairs_racks else np.maximum(limits, kept)

    def least_racks(self, kept: Counts) -> Ints:
        """For each partition, over how many racks its replicas are spread at least: as many as they
        are on brokers that may keep them. 0 where no limit of racks lets it be fewer, and where
        there are to be fewer replicas.

        Where there are more replicas than racks, the limits alone leave a rack without any: four
        replicas of which each of three racks may have two are within them in two racks.
        """
        least, rows = np.zeros(self.partitions, np.int64), np.flatnonzero(self.rack_limits() > 1)
        here, factor = kept[rows], self.factor[rows]
        room = -np.sort(-self.allowed_in_rack(kept)[rows], axis=1)
        fewest = 1 + (np.cumsum(room, axis=1, dtype=np.int64) < factor[:, None]).sum(axis=1)
        now = (here > 0).sum(axis=1)
        least[rows] = np.where((fewest < now) & (here.sum(axis=1) <= factor), now, 0)
        return least


def problem_of(snapshot: Snapshot, goals: Goals) -> Problem:
    """Raises InvalidInputError for goals that do not fit the snapshot, InfeasibleGoalsError for
    partitions that fit nowhere."""
    brokers = snapshot.brokers
    _check_names(snapshot, goals)
    keeps = brokers.alive & ~np.isin(brokers.ids, ints(goals.drained))
    takes = keeps & ~np.isin(brokers.ids, ints(goals.excluded))
    pins = frozenset(goals.pinned)
    pinned = np.array([topic in pins for topic in snapshot.topics], dtype=np.bool_)
    factor_of = np.zeros(len(snapshot.topics), np.int64)
    for topic, wanted in goals.replication_factor.items():
        factor_of[topic_number(snapshot, topic, what="replication factors")] = wanted
    stays = pinned[snapshot.topic]
    movable, still = np.flatnonzero(~stays), np.flatnonzero(stays)
    _check_pinned(snapshot, keeps, still)
    factor = np.where(
        factor_of[snapshot.topic] > 0, factor_of[snapshot.topic], snapshot.replication
    )
    fixed = np.bincount(
        take(snapshot.offsets, snapshot.replicas, still), minlength=len(brokers)
    ).astype(np.int64)
    problem = Problem(
        movable=movable,
        offsets=offsets_of(snapshot.replication[movable]),
        replicas=take(snapshot.offsets, snapshot.replicas, movable),
        factor=factor[movable],
        size=snapshot.copy_bytes()[movable],
        rack=brokers.racks,
        racks=len(brokers.rack_names),
        keeps=keeps,
        takes=takes,
        fixed=fixed,
        costs=_costs(goals, keeps=keeps, takes=takes, fixed=fixed, total=int(factor.sum())),
        repairs_racks=goals.has(RACK),
    )
    _check_placeable(snapshot, problem)
    return problem


def already_met(snapshot: Snapshot, goals: Goals) -> tuple[str, ...]:
    """Which drained or excluded brokers and pinned topics the snapshot does not have, a sentence
    for each kind.

    A dead broker without replicas and a deleted topic need no move, so they are no reason to refuse
    a plan. A wrong id or name looks the same, so it is named.
    """
    ids = frozenset(snapshot.brokers.ids.tolist())
    names = frozenset(snapshot.topics)
    absent = (
        ("drained brokers", "broker", "id", sorted({*goals.drained} - ids)),
        ("excluded brokers", "broker", "id", sorted({*goals.excluded} - ids)),
        ("pinned topics", "topic", "name", sorted({*goals.pinned} - names)),
    )
    return tuple(
        f"{what}: the snapshot has no {kind} {listed(missing)}, so this needs no move; correct the "
        f"{label} if it is wrong"
        for what, kind, label, missing in absent
        if missing
    )


def _check_names(snapshot: Snapshot, goals: Goals) -> None:
    """Raise InvalidInputError for ids and names that no broker and no topic can ever have had."""
    for what, ids in (("drained", goals.drained), ("excluded", goals.excluded)):
        for broker in ids:
            if broker < 0:
                raise InvalidInputError(
                    f"{what} brokers: no broker can have the id {broker}: give an id from 0 on"
                )
    for topic in sorted({*goals.pinned}.difference(snapshot.topics)):
        if not _TOPIC_NAME.fullmatch(topic):
            raise InvalidInputError(
                f"pinned topics: no topic can have the name {topic!r}: give the whole name of each "
                "topic; patterns are not supported"
            )


def topic_number(snapshot: Snapshot, topic: str, *, what: str) -> int:
    """Position of a topic. Raises InvalidInputError for one that the snapshot does not have."""
    at = bisect.bisect_left(snapshot.topics, topic)
    if snapshot.topics[at : at + 1] != (topic,):
        raise InvalidInputError(f"{what}: the snapshot has no topic {topic!r}: correct its name")
    return at


def _check_pinned(snapshot: Snapshot, keeps: Bools, pinned: Ints) -> None:
    lost = ~keeps[take(snapshot.offsets, snapshot.replicas, pinned)]
    if lost.any():
        partition = pinned[np.repeat(np.arange(len(pinned)), snapshot.replication[pinned])[lost][0]]
        broker = take(snapshot.offsets, snapshot.replicas, pinned)[lost][0]
        raise InvalidInputError(
            f"topic {snapshot.topics[snapshot.topic[partition]]} is pinned, and its partition "
            f"{snapshot.partition[partition]} has a replica on broker "
            f"{snapshot.brokers.ids[broker]}, which is dead or drained: unpin it or keep the broker"
        )


def _costs(goals: Goals, *, keeps: Bools, takes: Bools, fixed: Ints, total: int) -> BrokerCosts:
    least, most = 0, total
    if goals.has(REPLICA_DISTRIBUTION):
        least, most = balance_limits(total, int(keeps.sum()), goals.replica_balance)
    capacity = total
    if goals.has(REPLICA_CAPACITY) and goals.max_replicas is not None:
        capacity = goals.max_replicas
    return BrokerCosts.of(
        np.where(takes, least, 0) - fixed,
        np.where(keeps, most, 0) - fixed,
        np.where(keeps, capacity, 0) - fixed,
    )


def _check_placeable(snapshot: Snapshot, problem: Problem) -> None:
    """Whether each partition by itself has room, brokers' limits aside."""
    if not problem.keeps.any():
        raise InfeasibleGoalsError(["no broker is left that may keep replicas"])
    living = int(problem.keeps.sum())
    takers = np.bincount(problem.rack[problem.takes], minlength=problem.racks)
    # A rack with a broker that takes replicas has room for one of each partition.
    if int(problem.factor.max(initial=0)) <= int((takers > 0).sum()):
        return
    kept = problem.kept_in_rack()
    held = problem.takes[problem.replicas]
    keys = owners(problem.offsets)[held] * problem.racks + problem.rack[problem.replicas[held]]
    own_takers = np.bincount(keys, minlength=kept.size).reshape(kept.shape)
    room = np.minimum(problem.allowed_in_rack(kept), kept + takers - own_takers).sum(axis=1)
    missing = problem.factor - room
    reasons = []
    for factor in np.unique(problem.factor[missing > 0]).tolist():
        where = np.flatnonzero((missing > 0) & (problem.factor == factor))
        names = listed([snapshot.name(problem.movable[p]) for p in where])
        if factor > living:
            reasons.append(
                f"replication factor {factor} of {names} needs {factor} brokers, {living} may "
                f"keep replicas: add {factor - living}"
            )
        else:
            racks = np.unique(problem.rack[problem.takes])
            open_racks = listed([repr(snapshot.brokers.rack_names[k]) for k in racks]) or "none"
            reasons.append(
                f"{names}: {missing[where].max()} of {factor} replicas find no broker in a rack "
                f"with room; racks with brokers that take replicas: {open_racks}: add brokers in "
                "other racks, or exclude fewer"
            )
    if reasons:
        raise InfeasibleGoalsError(reasons)
