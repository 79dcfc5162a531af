"""From a snapshot and goals to a plan. Pure: no files, no clock, no chance, one thread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.bounds import bounds_of
from regent_rebalance.broker_costs import BrokerCosts
from regent_rebalance.errors import InfeasibleGoalsError
from regent_rebalance.goals import LEADER_DISTRIBUTION, Goals, balance_limits
from regent_rebalance.leadership import LeaderPlan, plan_leaders
from regent_rebalance.plan import Changes, Plan, Spread, Summary, changes_of, hash_of, spread_of
from regent_rebalance.problem import Problem, problem_of
from regent_rebalance.ragged import Bools, Ints, ints, offsets_of, owners, positions, take
from regent_rebalance.reasons import goal_results, hard_reasons
from regent_rebalance.replicas import MAX_ARCS, ReplicaPlan, plan_replicas
from regent_rebalance.snapshot import UNKNOWN, Snapshot


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
        InfeasibleGoalsError: Hard goals that no plan meets.
    """
    problem = problem_of(snapshot, goals)
    chosen = plan_replicas(problem, max_arcs=max_arcs)
    loads = chosen.placement.loads(problem)
    reasons = hard_reasons(snapshot, problem, loads)
    if reasons:
        raise InfeasibleGoalsError(reasons)
    before = _Cluster(snapshot.offsets, ints(snapshot.replicas), ints(snapshot.leader))
    placed = _placed(snapshot, problem, chosen)
    limits = _leader_limits(snapshot, goals, problem)
    leaders = _plan_leaders(problem, placed, limits, goals)
    after = _led(placed, leaders.leader, ints(snapshot.leader))
    changes = _changes(snapshot, problem, chosen, before, after)
    goal_list = goal_results(
        snapshot, goals, problem, loads, limits, _count(after.leaders(), problem)
    )
    copies = np.bincount(chosen.placement.partition, minlength=problem.partitions)
    penalty = limits.penalty(_count(after.leaders(), problem))
    unled = int((placed.leader < 0).sum())
    summary = Summary(
        moves=len(chosen.placement.broker),
        removals=int(np.maximum(0, np.diff(problem.offsets) - problem.factor).sum()),
        bytes=int((copies * problem.size).sum()),
        leader_changes=int((before.leaders() != after.leaders()).sum()),
        leader_changes_bound=max(0, leaders.bound - penalty) + unled,
        bounds=bounds_of(problem, chosen.bound, planned=loads),
        method=chosen.method,
        goals=goal_list,
        before=_spreads(snapshot, problem, before, limits),
        after=_spreads(snapshot, problem, after, limits),
    )
    return Plan(changes, summary, hash_of(changes))


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
    snapshot: Snapshot, problem: Problem, cluster: _Cluster, limits: BrokerCosts
) -> tuple[Spread, ...]:
    keeping = problem.keeps
    replicas = _count(cluster.replicas, problem)
    leaders = _count(cluster.leaders(), problem)
    size = snapshot.copy_bytes()[owners(cluster.offsets)]
    disk = np.zeros(problem.brokers, dtype=np.int64)
    np.add.at(disk, cluster.replicas, size)
    outside = problem.costs.outside(replicas - problem.fixed)
    return (
        spread_of("replicas", replicas[keeping], int((outside[keeping] > 0).sum())),
        spread_of("leaders", leaders[keeping], int((limits.outside(leaders)[keeping] > 0).sum())),
        spread_of("disk", disk[keeping]),
    )
