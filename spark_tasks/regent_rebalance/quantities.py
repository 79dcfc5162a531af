"""What brokers are balanced by: replicas, leaders, bytes on disk, bytes a second in and out.

Every amount belongs to a partition, not to a replica: a copy is as large as its leader, and
receives what the leader receives. So totals, averages and limits do not depend on the plan, and
are the same once it is carried out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from regent_rebalance.errors import InfeasibleGoalsError, InvalidInputError
from regent_rebalance.goals import (
    DISK_CAPACITY,
    DISK_DISTRIBUTION,
    LEADER_DISTRIBUTION,
    MIN_LEADERS,
    NETWORK_IN_CAPACITY,
    NETWORK_IN_DISTRIBUTION,
    NETWORK_OUT_CAPACITY,
    NETWORK_OUT_DISTRIBUTION,
    REPLICA_CAPACITY,
    REPLICA_DISTRIBUTION,
    Goals,
    balance_limits,
    usage_limits,
)
from regent_rebalance.problem import Problem, topic_number
from regent_rebalance.ragged import Ints, ints
from regent_rebalance.snapshot import UNKNOWN, Snapshot, listed
from regent_rebalance.unknowns import equal_capacities, unchecked_capacities, uncounted_loads

NO_LIMIT = 1 << 52
"""More than any broker has; exact as a float."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that brokers have, and how much of it goals allow them.

    Attributes:
        name: As it is shown.
        goal: The soft goal, "" if it does not count.
        capacity_goal: The hard goal, "" if it does not count.
        each: For each partition of the snapshot the amount of a replica, or of the leader.
        led: Whether the leader alone brings it.
        least, most: For each broker the soft limits.
        capacity: For each broker the hard limit.
        least_goal: The hard goal that ``least`` belongs to, "" if it is a soft limit.
        unknown: For each of the goals what the snapshot does not know and they take instead;
            goals that lack nothing are not in it.
    """

    name: str
    goal: str
    capacity_goal: str
    each: Ints
    led: bool
    least: Ints
    most: Ints
    capacity: Ints
    least_goal: str = ""
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_soft_limits(self) -> bool:
        """Whether brokers are to be balanced by it."""
        return bool(self.goal)


def quantities_of(snapshot: Snapshot, goals: Goals, problem: Problem) -> tuple[Quantity, ...]:
    """The quantities that goals limit: first what replicas bring, then what leaders bring.

    Raises:
        InvalidInputError: A goal that needs loads or capacities which the snapshot does not have.
        InfeasibleGoalsError: Brokers that have not the capacity for all partitions together.
    """
    one = np.ones(snapshot.partitions, dtype=np.int64)
    brokers = snapshot.brokers
    nothing = np.full(len(brokers), UNKNOWN)
    found = []
    for name, names, each, led, room in (
        ("replicas", (REPLICA_DISTRIBUTION, REPLICA_CAPACITY), one, False, nothing),
        ("disk", (DISK_DISTRIBUTION, DISK_CAPACITY), snapshot.copy_bytes(), False,
         brokers.disk_bytes),
        ("network in", (NETWORK_IN_DISTRIBUTION, NETWORK_IN_CAPACITY), snapshot.bytes_in, False,
         brokers.network_in),
        ("leaders", (LEADER_DISTRIBUTION, ""), one, True, nothing),
        ("network out", (NETWORK_OUT_DISTRIBUTION, NETWORK_OUT_CAPACITY), snapshot.bytes_out, True,
         brokers.network_out),
    ):  # fmt: skip
        goal, capacity_goal = (each_name if goals.has(each_name) else "" for each_name in names)
        if name == "replicas" and goals.max_replicas is None:
            capacity_goal = ""
        if not (goal or capacity_goal):
            continue
        _check_known(snapshot, name, goal or capacity_goal, each)
        unknown = _unknown(snapshot, problem, (name, goal, capacity_goal), each, room, led=led)
        amounts = np.maximum(each, 0)
        total = int((amounts if led else amounts * _factors(snapshot, problem)).sum())
        least, most = _soft(goals, problem, goal, total, room)
        found.append(
            Quantity(
                name, goal, capacity_goal, amounts, led, least, most,
                _hard(snapshot, goals, problem, capacity_goal, total, room), unknown=unknown,
            )
        )  # fmt: skip
    return (*found, *_topics_leaders(snapshot, goals, problem))


def _check_known(snapshot: Snapshot, name: str, goal: str, each: Ints) -> None:
    if not snapshot.partitions:
        return
    if name == "disk" and (snapshot.sizes == UNKNOWN).all():
        raise InvalidInputError(
            f"{goal}: the snapshot has no size of any replica: add sizes, or drop the goal"
        )
    if (each == UNKNOWN).all():
        raise InvalidInputError(
            f"{goal}: the snapshot has no rate of any partition: add bytesIn and bytesOut, or drop "
            "the goal"
        )


def _unknown(
    snapshot: Snapshot,
    problem: Problem,
    names: tuple[str, str, str],
    each: Ints,
    room: Ints,
    *,
    led: bool,
) -> dict[str, str]:
    """By goal what is not known and what counts instead.

    Args:
        names: Of the quantity, its soft goal and its hard one.
    """
    name, goal, capacity_goal = names
    if name in ("replicas", "leaders"):
        return {}
    loads = uncounted_loads(snapshot, name, each)
    found = {}
    if goal:
        found[goal] = [loads, equal_capacities(snapshot, problem, room)]
    if capacity_goal:
        unchecked = unchecked_capacities(snapshot, problem, capacity_goal, name, room, led=led)
        found[capacity_goal] = [loads, unchecked]
    said = {goal: "; ".join(filter(None, parts)) for goal, parts in found.items()}
    return {goal: sentence for goal, sentence in said.items() if sentence}


def _topics_leaders(snapshot: Snapshot, goals: Goals, problem: Problem) -> tuple[Quantity, ...]:
    """Leaders of each topic of which every broker is to lead some."""
    takers, unlimited = int(problem.takes.sum()), np.full(problem.brokers, NO_LIMIT)
    movable = np.zeros(snapshot.partitions, dtype=np.bool_)
    movable[problem.movable] = True
    found, reasons = [], []
    for topic, wanted in sorted(goals.min_leaders.items()):
        number = topic_number(snapshot, topic, what="least leaders")
        each = (snapshot.topic == number).astype(np.int64)
        least = np.where(problem.takes, wanted, 0)
        count = int(each.sum())
        if count < wanted * takers:
            reasons.append(
                f"{MIN_LEADERS}: topic {topic} has {count} partitions, and {takers} brokers are to "
                f"lead {wanted} each: add {wanted * takers - count} partitions, or ask for fewer"
            )
        elif not (movable & (each > 0)).any():
            leads = np.bincount(snapshot.leaders()[each > 0], minlength=problem.brokers)
            short = np.flatnonzero(leads < least)
            if len(short):
                ids = listed(snapshot.brokers.ids[short].tolist())
                reasons.append(
                    f"{MIN_LEADERS}: topic {topic} is pinned, and brokers {ids} lead fewer than "
                    f"{wanted} of its partitions: unpin it, or ask for fewer"
                )
        most = np.where(problem.keeps, NO_LIMIT, 0)
        found.append(
            Quantity(f"leaders of {topic}", "", "", each, True, least, ints(most), unlimited,
                     least_goal=MIN_LEADERS)
        )  # fmt: skip
    if reasons:
        raise InfeasibleGoalsError(reasons)
    return tuple(found)


def _factors(snapshot: Snapshot, problem: Problem) -> Ints:
    """How many replicas each partition of the snapshot will have."""
    factors = snapshot.replication
    factors[problem.movable] = problem.factor
    return factors


def _soft(goals: Goals, problem: Problem, goal: str, total: int, room: Ints) -> tuple[Ints, Ints]:
    """Least and most. Brokers that keep nothing are to have nothing, excluded ones any less."""
    brokers = problem.brokers
    keeping = np.flatnonzero(problem.keeps)
    least = np.zeros(brokers, dtype=np.int64)
    most = np.where(problem.keeps, NO_LIMIT, 0)
    if goal in (REPLICA_DISTRIBUTION, LEADER_DISTRIBUTION):
        share = goals.replica_balance if goal == REPLICA_DISTRIBUTION else goals.leader_balance
        least[keeping], most[keeping] = balance_limits(total, len(keeping), share)
    elif goal:
        # Where the capacity of a broker is not known, all count alike.
        known = room[keeping]
        equal = bool((known <= 0).any())
        capacities = [1] * len(keeping) if equal else known.tolist()
        least[keeping], most[keeping] = usage_limits(total, capacities, goals.resource_balance)
    return np.where(problem.takes, least, 0), ints(most)


def _hard(
    snapshot: Snapshot, goals: Goals, problem: Problem, goal: str, total: int, room: Ints
) -> Ints:
    capacity = np.full(problem.brokers, NO_LIMIT)
    if goal == REPLICA_CAPACITY and goals.max_replicas is not None:
        capacity[:] = goals.max_replicas
    elif goal:
        known = problem.keeps & (room != UNKNOWN)
        share = Fraction(str(goals.capacity_threshold))
        capacity[known] = [int(share * limit) for limit in room[known].tolist()]
    capacity[~problem.keeps] = 0
    if goal and total > sum(capacity.tolist()):
        ids = snapshot.brokers.ids[problem.keeps].tolist()
        raise InfeasibleGoalsError(
            [
                f"{goal}: partitions need {total:,} in all, brokers {listed(ids)} may have "
                f"{sum(capacity.tolist()):,}: add brokers, or allow a larger share of capacities"
            ]
        )
    return ints(capacity)


def totals(quantity: Quantity, offsets: Ints, replicas: Ints, leaders: Ints, brokers: int) -> Ints:
    """For each broker what it has, of any replicas and leaders."""
    loads = np.zeros(brokers, dtype=np.int64)
    if quantity.led:
        np.add.at(loads, leaders, quantity.each)
    else:
        np.add.at(loads, replicas, np.repeat(quantity.each, np.diff(offsets)))
    return loads
