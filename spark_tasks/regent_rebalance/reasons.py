"""Why a goal is not met: which broker or rack, how much is missing, what would help."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from regent_rebalance.broker_costs import BrokerCosts
from regent_rebalance.goals import (
    HARD_GOALS,
    RACK,
    REPLICA_CAPACITY,
    REPLICA_DISTRIBUTION,
    Goals,
)
from regent_rebalance.plan import HARD, SOFT, GoalResult
from regent_rebalance.problem import Problem
from regent_rebalance.ragged import Ints, ints
from regent_rebalance.snapshot import Snapshot, listed


def hard_reasons(snapshot: Snapshot, problem: Problem, loads: Ints) -> list[str]:
    """Capacities that the best placement of movable replicas still exceeds."""
    above = problem.costs.above_capacity(loads)
    over = np.flatnonzero(above)
    if len(over) == 0:
        return []
    capacity = int((problem.costs.capacity + problem.fixed)[over].max())
    brokers = [
        f"broker {snapshot.brokers.ids[b]} (rack {_rack(snapshot, b)}): {above[b]} more than "
        f"{capacity}"
        for b in over.tolist()
    ]
    missing = int(above.sum())
    return [
        f"{REPLICA_CAPACITY}: {missing} replicas have no room: {listed(brokers)}; allow more "
        f"replicas on a broker, or add {-(-missing // capacity)} brokers in racks that take them"
    ]


def goal_results(
    snapshot: Snapshot,
    goals: Goals,
    problem: Problem,
    loads: Ints,
    missed: Mapping[str, str],
    unknown: Mapping[str, str],
) -> tuple[GoalResult, ...]:
    """A result for each goal that counts, in the order of the goals.

    Args:
        missed: What a search has not met, with the reasons.
        unknown: What goals could not count, with what they took instead.
    """
    results = []
    for name in goals.names:
        reason = missed.get(name, "")
        if reason:
            reason += "; the search found nothing better"
        elif name == REPLICA_DISTRIBUTION:
            reason = _outside(snapshot, problem, loads)
        elif name == RACK:
            reason = _pinned_racks(snapshot, problem)
        kind = HARD if name in HARD_GOALS else SOFT
        results.append(GoalResult(name, kind, not reason, reason, unknown.get(name, "")))
    return tuple(results)


def _outside(snapshot: Snapshot, problem: Problem, loads: Ints) -> str:
    limits, fixed = problem.costs, problem.fixed
    outside = limits.outside(loads)
    sentences = []
    for b in np.flatnonzero(outside).tolist():
        above = loads[b] > limits.most[b]
        limit = int((limits.most if above else limits.least)[b] + fixed[b])
        sentences.append(
            f"broker {snapshot.brokers.ids[b]} (rack {_rack(snapshot, b)}) has "
            f"{loads[b] + fixed[b]} replicas, {outside[b]} "
            f"{'above its limit' if above else 'below the least'} of {limit}"
        )
    if not sentences:
        return ""
    advice = _brokers_to_add(snapshot, problem, limits, loads)
    return f"{listed(sentences)}; racks, excluded brokers and pinned topics allow no better{advice}"


def _brokers_to_add(snapshot: Snapshot, problem: Problem, limits: BrokerCosts, loads: Ints) -> str:
    """Racks whose brokers are all full, with what their replicas need beyond them.

    At least so many: more brokers mean a lower average. A rack with a broker that has room lacks
    none; something else keeps replicas from it.
    """
    needs = []
    for rack, name in enumerate(snapshot.brokers.rack_names):
        members = problem.takes & (problem.rack == rack)
        if not members.any() or (loads < limits.most)[members].any():
            continue
        excess = int((loads - limits.most)[members].sum())
        if excess > 0:
            each = max(1, int(limits.most[members].max()))
            needs.append(f"rack {name or 'none'} needs at least {-(-excess // each)} more brokers")
    return f": {listed(needs)}" if needs else ""


def _pinned_racks(snapshot: Snapshot, problem: Problem) -> str:
    """Pinned partitions that share racks needlessly. The others never do after a plan."""
    pinned = np.ones(snapshot.partitions, dtype=np.bool_)
    pinned[problem.movable] = False
    rack_of = snapshot.brokers.racks[snapshot.replicas]
    in_rack = ints(np.bincount(snapshot.brokers.racks[problem.keeps], minlength=problem.racks))
    names = []
    for p in np.flatnonzero(pinned).tolist():
        racks = rack_of[snapshot.offsets[p] : snapshot.offsets[p + 1]]
        allowed = 1
        while np.minimum(in_rack, allowed).sum() < len(racks):
            allowed += 1
        if np.bincount(racks).max() > allowed:
            names.append(snapshot.name(p))
    if not names:
        return ""
    return f"{listed(names)} share racks and are pinned: unpin their topics"


def _rack(snapshot: Snapshot, broker: int) -> str:
    return snapshot.brokers.rack_names[snapshot.brokers.racks[broker]] or "none"
