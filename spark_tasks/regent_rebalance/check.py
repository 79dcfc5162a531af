"""Whether a plan meets weighted goals: counted anew, in integers, from lists of replicas alone.

The search is not asked. What it believes of its loads has no part in what a plan says of itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regent_rebalance.goals import TOPIC_DISTRIBUTION, Goals, topic_limits
from regent_rebalance.problem import Problem
from regent_rebalance.quantities import Quantity, totals
from regent_rebalance.ragged import Ints, ints, owners
from regent_rebalance.snapshot import Snapshot, listed


def missed(
    snapshot: Snapshot,
    goals: Goals,
    problem: Problem,
    quantities: Sequence[Quantity],
    after: tuple[Ints, Ints, Ints],
) -> dict[str, str]:
    """For each goal that is not met a sentence with brokers and numbers.

    Args:
        after: Where the replicas of each partition begin, their brokers, and who leads.
    """
    offsets, replicas, leaders = after
    found: dict[str, str] = {}
    for quantity in quantities:
        loads = totals(quantity, offsets, replicas, leaders, problem.brokers)
        over = np.maximum(0, loads - quantity.capacity)
        if quantity.capacity_goal and over.any():
            found[quantity.capacity_goal] = _sentences(
                snapshot, quantity, loads, quantity.capacity, over, "above its limit"
            )
        if quantity.least_goal and (loads < quantity.least).any():
            short = np.maximum(0, quantity.least - loads)
            sentence = _sentences(
                snapshot, quantity, loads, quantity.least, short, "below the least"
            )
            found[quantity.least_goal] = "; ".join(
                filter(None, (found.get(quantity.least_goal), sentence))
            )
        above = np.maximum(0, loads - quantity.most)
        below = np.maximum(0, quantity.least - loads)
        if quantity.goal and (above.any() or below.any()):
            parts = []
            if above.any():
                parts.append(
                    _sentences(snapshot, quantity, loads, quantity.most, above, "above its limit")
                )
            if below.any():
                parts.append(
                    _sentences(snapshot, quantity, loads, quantity.least, below, "below the least")
                )
            found[quantity.goal] = "; ".join(parts)
    if goals.has(TOPIC_DISTRIBUTION):
        sentence = _topics(snapshot, goals, problem, offsets, replicas)
        if sentence:
            found[TOPIC_DISTRIBUTION] = sentence
    return found


def _sentences(
    snapshot: Snapshot, quantity: Quantity, loads: Ints, limit: Ints, off: Ints, how: str
) -> str:
    unit = {"disk": " bytes of disk"}.get(quantity.name, f" {quantity.name}")
    if quantity.name.startswith("network"):
        unit = f" bytes a second of {quantity.name}"
    return listed(
        [
            f"broker {snapshot.brokers.ids[b]} (rack "
            f"{snapshot.brokers.rack_names[snapshot.brokers.racks[b]] or 'none'}) has "
            f"{loads[b]:,}{unit}, {off[b]:,} {how} of {limit[b]:,}"
            for b in np.flatnonzero(off).tolist()
        ]
    )


def _topics(
    snapshot: Snapshot, goals: Goals, problem: Problem, offsets: Ints, replicas: Ints
) -> str:
    """Topics that are spread unevenly. Pinned ones stay as they are, and do not count."""
    topics, brokers = len(snapshot.topics), problem.brokers
    movable = np.zeros(snapshot.partitions, dtype=np.bool_)
    movable[problem.movable] = True
    of = owners(offsets)
    counted = movable[of]
    keys = snapshot.topic[of[counted]].astype(np.int64) * brokers + replicas[counted]
    counts = ints(np.bincount(keys, minlength=topics * brokers)).reshape(topics, brokers)
    keeping = int(problem.keeps.sum())
    limits = ints(
        [topic_limits(total, keeping, goals.topic_balance) for total in counts.sum(axis=1).tolist()]
    ).reshape(topics, 2)
    above = (counts > limits[:, 1:]) & problem.keeps
    below = (counts < limits[:, :1]) & problem.takes
    return listed(
        [
            f"broker {snapshot.brokers.ids[b]} has {counts[t, b]} replicas of topic "
            f"{snapshot.topics[t]}, which shall be {limits[t, 0]} to {limits[t, 1]}"
            for t, b in np.argwhere(above | below).tolist()
        ]
    )
