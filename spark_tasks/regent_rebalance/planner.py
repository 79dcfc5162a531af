"""From a snapshot and goals to a plan. Pure: no files, no clock, no chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from regent_rebalance.beside import Beside, has_room_beside
from regent_rebalance.bounds import bounds_of
from regent_rebalance.broker_costs import BrokerCosts
from regent_rebalance.check import missed
from regent_rebalance.errors import InfeasibleGoalsError, PackageMissingError
from regent_rebalance.goals import (
    HARD_GOALS,
    LEADER_DISTRIBUTION,
    MIN_LEADERS,
    RACK,
    Goals,
    balance_limits,
)
from regent_rebalance.leadership import LeaderPlan, plan_leaders
from regent_rebalance.plan import (
    HARD,
    Changes,
    Plan,
    Spread,
    Summary,
    changes_of,
    hash_of,
    spread_of,
)
from regent_rebalance.problem import Problem, problem_of
from regent_rebalance.quantities import Quantity, quantities_of, totals
from regent_rebalance.ragged import Bools, Ints, ints, offsets_of, owners, positions, take
from regent_rebalance.reasons import goal_results, hard_reasons
from regent_rebalance.replicas import MAX_ARCS, SEARCH, ReplicaPlan, plan_replicas
from regent_rebalance.snapshot import UNKNOWN, Snapshot

if TYPE_CHECKING:
    from regent_rebalance.weighted import WeightedPlan

_OF_LEADERS = frozenset({MIN_LEADERS, LEADER_DISTRIBUTION})
"""Goals that an exact plan may miss though another one meets them: it places replicas first."""


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Replicas and leaders of all partitions, brokers by position."""

    offsets: Ints
    replicas: Ints
    leader: Ints

    def leaders(self) -> Ints:
        return self.replicas[self.offsets[:-1] + np.maximum(self.leader, 0)]


def make_plan(snapshot: Snapshot, goals: Goals, *, max_arcs: int = MAX_ARCS) -> Plan:
    """The plan with the fewest goals missed, then the fewest moves, then the fewest new leaders.

    Args:
        max_arcs: Arcs of the largest exact network; a larger cluster's plan may have a gap.

    Raises:
        InvalidInputError: Goals that do not fit the snapshot.
        InfeasibleGoalsError: Hard goals that no plan meets, or none that the search has found.
    """
    problem = problem_of(snapshot, goals)
    # A search needs what is proved of replicas only in the end.
    at_once = not (goals.weighted and has_room_beside(len(problem.replicas)))
    with Beside(partial(_plan_replicas, snapshot, problem, max_arcs), at_once=at_once) as exact:
        return _made(snapshot, goals, problem, exact)


def _made(snapshot: Snapshot, goals: Goals, problem: Problem, exact: Beside[ReplicaPlan]) -> Plan:
    try:
        quantities = quantities_of(snapshot, goals, problem)
    except InfeasibleGoalsError:
        exact.result()  # its reasons are more precise
        raise
    limits = _leader_limits(snapshot, goals, problem)
    outcome = _choose(snapshot, goals, problem, limits, quantities, exact)
    chosen, leaders, found, placed = (
        outcome.chosen, outcome.leaders, outcome.found, outcome.placed
    )  # fmt: skip
    loads = chosen.placement.loads(problem)
    before = _Cluster(snapshot.offsets, ints(snapshot.replicas), ints(snapshot.leader))
    after = _led(placed, leaders.leader, ints(snapshot.leader))
    changes = _changes(snapshot, problem, chosen, before, after)
    goal_list = goal_results(
        snapshot,
        goals,
        problem,
        loads,
        outcome.unmet,
        {name: why for quantity in quantities for name, why in quantity.unknown.items()},
    )
    unmet = [
        goal.reason
        for goal in goal_list
        if goal.kind == HARD and goal.name != RACK and not goal.met
    ]
    if unmet:
        raise InfeasibleGoalsError(unmet)
    copies = np.bincount(chosen.placement.partition, minlength=problem.partitions)
    penalty = limits.penalty(_count(after.leaders(), problem))
    unled = int((placed.leader < 0).sum())
    bounds = bounds_of(problem, chosen.bound, planned=loads)
    summary = Summary(
        moves=len(chosen.placement.broker),
        removals=int(np.maximum(0, np.diff(problem.offsets) - problem.factor).sum()),
        bytes=int((copies * problem.size).sum()),
        leader_changes=int((before.leaders() != after.leaders()).sum()),
        leader_changes_bound=max(0, leaders.bound - penalty) + unled,
        bounds=bounds if found is None else found.improved(bounds),
        method=chosen.method,
        goals=goal_list,
        before=_spreads(snapshot, problem, before, limits, quantities),
        after=_spreads(snapshot, problem, after, limits, quantities),
        objective=None if found is None else found.objective,
    )
    return Plan(changes, summary, hash_of(changes))


def _plan_replicas(snapshot: Snapshot, problem: Problem, max_arcs: int) -> ReplicaPlan:
    """Raises InfeasibleGoalsError if hard goals cannot be met."""
    chosen = plan_replicas(problem, max_arcs=max_arcs)
    reasons = hard_reasons(snapshot, problem, chosen.placement.loads(problem))
    if reasons:
        raise InfeasibleGoalsError(reasons)
    return chosen


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A choice of replicas and leaders.

    Attributes:
        placed: All partitions with their new replicas; the leader is -1 where it has left.
        found: What the search knows of it; None if networks have found it.
        missed: A sentence for each goal that it does not meet.
    """

    chosen: ReplicaPlan
    placed: _Cluster
    leaders: LeaderPlan
    found: WeightedPlan | None
    missed: Mapping[str, str]

    @property
    def unmet(self) -> Mapping[str, str]:
        """What a search was asked for, and has not met either."""
        if self.found is not None:
            return self.missed
        return {name: why for name, why in self.missed.items() if name in _OF_LEADERS}


def _choose(
    snapshot: Snapshot,
    goals: Goals,
    problem: Problem,
    limits: BrokerCosts,
    quantities: tuple[Quantity, ...],
    exact: Beside[ReplicaPlan],
) -> _Outcome:
    """The exact choice unless loads count, or replicas have to move for leaders.

    Networks place replicas first and choose leaders then. A search does both at once: it is asked
    where goals of leaders are missed, and counts if it meets a goal that counts more.
    """

    def outcome(chosen: ReplicaPlan, found: WeightedPlan | None) -> _Outcome:
        placed = _placed(snapshot, problem, chosen)
        if found is not None and any(quantity.led for quantity in quantities):
            leaders = _led_by(problem, placed, found.leading)
        else:
            leaders = _plan_leaders(problem, placed, limits, goals)
        # Counted from the lists that the plan consists of.
        final = _led(placed, leaders.leader, ints(snapshot.leader))
        lists = (final.offsets, final.replicas, final.leaders())
        return _Outcome(
            chosen, placed, leaders, found, missed(snapshot, goals, problem, quantities, lists)
        )

    counted = None
    if not goals.weighted:
        counted = outcome(exact.result(), None)
        if not _OF_LEADERS & counted.missed.keys():
            return counted
    found = _searched(snapshot, goals, problem, quantities, exact)
    proved = exact.result()
    searched = outcome(ReplicaPlan(found.placement, proved.bound, proved.cost, SEARCH), found)
    return searched if counted is None or _meets_more(goals, searched, counted) else counted


def _meets_more(goals: Goals, one: _Outcome, other: _Outcome) -> bool:
    """Whether the first goal that only one of the two meets is met by the first."""
    for name in (*(name for name in goals.names if name in HARD_GOALS), *goals.soft):
        if (name in one.missed) != (name in other.missed):
            return name in other.missed
    return False


def _searched(
    snapshot: Snapshot,
    goals: Goals,
    problem: Problem,
    quantities: tuple[Quantity, ...],
    exact: Beside[ReplicaPlan],
) -> WeightedPlan:
    # Numba takes half a second to load, and exact plans do without.
    try:
        from regent_rebalance.weighted import plan_weighted
    except ModuleNotFoundError as error:
        raise PackageMissingError(error.name or "numba") from error
    return plan_weighted(
        snapshot,
        goals,
        problem,
        quantities,
        least_moves=lambda: exact.result().bound,
        at_once=exact.at_once,
    )


def _led_by(problem: Problem, placed: _Cluster, leading: Ints) -> LeaderPlan:
    """The leaders that a search has chosen. How few could change is not known."""
    broker = placed.leaders()
    broker[problem.movable] = leading
    of = owners(placed.offsets)
    leads = placed.replicas == broker[of]
    leader = np.zeros(len(placed.leader), dtype=np.int64)
    leader[of[leads]] = positions(placed.offsets)[leads]
    return LeaderPlan(leader, 0, int((placed.leader != leader).sum()))


def _placed(snapshot: Snapshot, problem: Problem, chosen: ReplicaPlan) -> _Cluster:
    """All partitions with their new replicas; the leader is -1 where it has left."""
    offsets, flat = chosen.placement.lists(problem)
    lengths = snapshot.replication
    lengths[problem.movable] = np.diff(offsets)
    all_offsets = offsets_of(lengths)
    replicas = np.empty(int(all_offsets[-1]), dtype=np.int64)
    moving = np.zeros(snapshot.partitions, dtype=np.bool_)
    moving[problem.movable] = True
    replicas[moving[owners(all_offsets)]] = flat
    still = np.flatnonzero(~moving)
    replicas[~moving[owners(all_offsets)]] = take(snapshot.offsets, snapshot.replicas, still)
    leads = replicas == snapshot.leaders()[owners(all_offsets)]
    leader = np.full(snapshot.partitions, -1, dtype=np.int64)
    leader[owners(all_offsets)[leads]] = positions(all_offsets)[leads]
    return _Cluster(all_offsets, replicas, leader)


def _leader_limits(snapshot: Snapshot, goals: Goals, problem: Problem) -> BrokerCosts:
    partitions, brokers = snapshot.partitions, problem.brokers
    least, most = 0, partitions
    if goals.has(LEADER_DISTRIBUTION):
        least, most = balance_limits(partitions, int(problem.keeps.sum()), goals.leader_balance)
    return BrokerCosts.of(
        np.where(problem.takes, least, 0),
        np.where(problem.keeps, most, 0),
        np.full(brokers, partitions),
    )


def _plan_leaders(
    problem: Problem, placed: _Cluster, limits: BrokerCosts, goals: Goals
) -> LeaderPlan:
    fixed = np.ones(len(placed.leader), dtype=np.bool_)
    if goals.has(LEADER_DISTRIBUTION):
        fixed[problem.movable] = False
    return plan_leaders(placed.offsets, placed.replicas, placed.leader, limits, fixed=fixed)


def _led(placed: _Cluster, leader: Ints, before: Ints) -> _Cluster:
    """The chosen leader comes first where it is not the one that leads now."""
    first = placed.offsets[:-1]
    changed = (placed.leader != leader) | (before == UNKNOWN)
    replicas = placed.replicas.copy()
    at = first + leader
    exchanged = np.flatnonzero(changed & (leader > 0))
    replicas[first[exchanged]] = placed.replicas[at[exchanged]]
    replicas[at[exchanged]] = placed.replicas[first[exchanged]]
    return _Cluster(placed.offsets, replicas, np.where(changed, 0, leader))


def _changes(
    snapshot: Snapshot, problem: Problem, chosen: ReplicaPlan, before: _Cluster, after: _Cluster
) -> Changes:
    # Where the preferred leader is to lead again the list stays: it is a change all the same.
    changed = _differ(before, after) | (before.leaders() != after.leaders())
    # A list that changes begins with its leader: Kafka elects the first replica.
    stays_first = np.flatnonzero(changed & (after.leader > 0))
    first = after.offsets[:-1][stays_first]
    at = first + after.leader[stays_first]
    after.replicas[first], after.replicas[at] = after.replicas[at], after.replicas[first].copy()
    after.leader[stays_first] = 0
    rows = np.flatnonzero(changed)
    ids, copied = snapshot.brokers.ids, np.zeros(snapshot.partitions, dtype=np.int64)
    copies = np.bincount(chosen.placement.partition, minlength=problem.partitions)
    copied[problem.movable] = copies * problem.size
    lengths = np.diff(after.offsets)[rows]
    return changes_of(
        tuple(snapshot.topics[t] for t in snapshot.topic[rows].tolist()),
        ints(snapshot.partition[rows]),
        (offsets_of(snapshot.replication[rows]), ids[take(before.offsets, before.replicas, rows)]),
        (offsets_of(lengths), ids[take(after.offsets, after.replicas, rows)]),
        copied[rows],
    )


def _differ(before: _Cluster, after: _Cluster) -> Bools:
    """Partitions whose list of replicas is another one."""
    same_length = np.diff(before.offsets) == np.diff(after.offsets)
    differ: Bools = ~same_length
    rows = np.flatnonzero(same_length)
    lengths = np.diff(before.offsets)[rows]
    unequal = take(before.offsets, before.replicas, rows) != take(
        after.offsets, after.replicas, rows
    )
    differ[np.repeat(rows, lengths)[unequal]] = True
    return differ


def _count(brokers: Ints, problem: Problem) -> Ints:
    return ints(np.bincount(brokers, minlength=problem.brokers))


def _spreads(
    snapshot: Snapshot,
    problem: Problem,
    cluster: _Cluster,
    limits: BrokerCosts,
    quantities: tuple[Quantity, ...],
) -> tuple[Spread, ...]:
    keeping = problem.keeps
    replicas = _count(cluster.replicas, problem)
    leaders = _count(cluster.leaders(), problem)
    outside = problem.costs.outside(replicas - problem.fixed)
    spreads = [
        spread_of("replicas", replicas[keeping], int((outside[keeping] > 0).sum())),
        spread_of("leaders", leaders[keeping], int((limits.outside(leaders)[keeping] > 0).sum())),
    ]
    weighted = [q for q in quantities if q.name not in ("replicas", "leaders") and not q.least_goal]
    if not any(q.name == "disk" for q in weighted):
        size = snapshot.copy_bytes()[owners(cluster.offsets)]
        disk = np.zeros(problem.brokers, dtype=np.int64)
        np.add.at(disk, cluster.replicas, size)
        spreads.append(spread_of("disk", disk[keeping]))
    for quantity in weighted:
        loads = totals(
            quantity, cluster.offsets, cluster.replicas, cluster.leaders(), problem.brokers
        )[keeping]
        off = (loads > quantity.most[keeping]) | (loads < quantity.least[keeping])
        count = int(off.sum()) if quantity.goal else None
        spreads.append(spread_of(quantity.name, loads, count))
    return tuple(spreads)
