"""A plan: for each partition that changes its replicas before and after, and what is proved."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass

import numpy as np

from regent_rebalance.bounds import Bounds
from regent_rebalance.details import Details
from regent_rebalance.ragged import Ints, ints

HARD, SOFT = "hard", "soft"


@dataclass(frozen=True, slots=True)
class GoalResult:
    """Whether a goal is met, and if not, why.

    Attributes:
        kind: HARD or SOFT.
        reason: A sentence with brokers and numbers; empty if the goal is met.
        unknown: What of the snapshot the goal could not count, and what it took instead; empty if
            all of it is known.
    """

    name: str
    kind: str
    met: bool
    reason: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly something lies on the brokers that may keep replicas.

    Attributes:
        name: "replicas", "leaders", "disk", "network in" or "network out".
        least, most: Of one broker; bytes, or bytes a second, for the last three.
        mean: Average of the brokers.
        deviation: Standard deviation, as a share of the average.
        outside: Brokers outside the limits of the goal; None without a goal.
    """

    name: str
    least: int
    most: int
    mean: float
    deviation: float
    outside: int | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """Partitions that change, in order of topic and number. Brokers are named by id.

    Where replicas before and after are the same the first is to lead again: a preferred election.

    Attributes:
        topic, partition: Names of the partitions.
        before_offsets, before: Their replicas.
        after_offsets, after: What they will be; the first is the leader.
        bytes: What each of them copies.
    """

    topic: tuple[str, ...]
    partition: Ints
    before_offsets: Ints
    before: Ints
    after_offsets: Ints
    after: Ints
    bytes: Ints

    def __len__(self) -> int:
        return len(self.topic)

    def lists(self) -> tuple[list[list[int]], list[list[int]]]:
        """Replicas before and after of every partition."""
        return _lists(self.before_offsets, self.before), _lists(self.after_offsets, self.after)


@dataclass(frozen=True, slots=True)
class Objective:
    """What a plan is to save, where that is not the number of moves.

    Attributes:
        bytes_share: 1 for bytes alone, less for moves, too.
        cost: What the plan costs, a replica of the average size being 1.
        bound: What it costs at least.
    """

    bytes_share: float
    cost: float
    bound: float


@dataclass(frozen=True, slots=True)
class Summary:
    """What is said about a plan.

    Attributes:
        moves: New replicas: each is a copy.
        removals: Replicas removed beyond those that are replaced.
        bytes: What the copies have, as far as sizes are known.
        leader_changes: Partitions that get another leader than they have, or, without one, than the
            preferred one; at best ``leader_changes_bound``.
        bounds: Lower bounds on moves and bytes of plans that come as close to the goals.
        method: The network that found the replicas, or the search.
        objective: None if moves are what is saved.
    """

    moves: int
    removals: int
    bytes: int
    leader_changes: int
    leader_changes_bound: int
    bounds: Bounds
    method: str
    goals: tuple[GoalResult, ...]
    before: tuple[Spread, ...]
    after: tuple[Spread, ...]
    objective: Objective | None = None

    @property
    def gap(self) -> float:
        """How much more than the best bound, as a share of it: 0 is proved optimal."""
        if self.objective is not None:
            cost, bound = self.objective.cost, self.objective.bound
            return cost / bound - 1 if bound else cost
        return self.moves / self.bounds.moves - 1 if self.bounds.moves else float(self.moves)

    @property
    def goals_met(self) -> bool:
        """Whether every goal is met."""
        return all(goal.met for goal in self.goals)


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes, and what is said about them.

    Attributes:
        hash: Of the changes alone, "sha256:" and 64 digits: who approves it approves exactly them.
        details: Brokers before and after, and batches; None until ``describe`` has added them.
    """

    changes: Changes
    summary: Summary
    hash: str
    details: Details | None = None

    def batch_numbers(self) -> Ints:
        """For each change the number of its batch, 1 the first; 0 without batches."""
        if self.details is None:
            return np.zeros(len(self.changes), dtype=np.int64)
        return self.details.schedule.batch + 1


def hash_of(changes: Changes) -> str:
    """The same for the same changes, on every machine."""
    before = _texts(changes.before_offsets, changes.before)
    after = _texts(changes.after_offsets, changes.after)
    rows = zip(changes.topic, changes.partition.tolist(), before, after, strict=True)
    lines = [f"{topic} {partition} {old} {new}\n" for topic, partition, old, new in rows]
    digest = hashlib.sha256(b"regent plan 1\n")
    digest.update("".join(lines).encode())
    return f"sha256:{digest.hexdigest()}"


def spread_of(name: str, values: Ints, outside: int | None = None) -> Spread:
    """The figures of some brokers."""
    mean = float(values.mean()) if len(values) else 0.0
    deviation = float(values.std()) / mean if mean else 0.0
    return Spread(
        name,
        int(values.min(initial=values[0] if len(values) else 0)),
        int(values.max(initial=0)),
        round(mean, 3),
        round(deviation, 6),
        outside,
    )


def changes_of(
    topic: tuple[str, ...],
    partition: Ints,
    before: tuple[Ints, Ints],
    after: tuple[Ints, Ints],
    copied: Ints,
) -> Changes:
    """Changes from columns in the planner's types."""
    return Changes(
        topic, ints(partition), before[0], ints(before[1]), after[0], ints(after[1]), ints(copied)
    )


def _lists(offsets: Ints, values: Ints) -> list[list[int]]:
    flat, ends = np.asarray(values).tolist(), offsets.tolist()
    return [flat[begin:end] for begin, end in itertools.pairwise(ends)]


def _texts(offsets: Ints, values: Ints) -> list[str]:
    """The brokers of each partition, with commas between them."""
    ids, number = np.unique(values, return_inverse=True)
    name = list(map(str, ids.tolist()))
    flat, ends = [name[i] for i in number.tolist()], offsets.tolist()
    return [",".join(flat[begin:end]) for begin, end in itertools.pairwise(ends)]
