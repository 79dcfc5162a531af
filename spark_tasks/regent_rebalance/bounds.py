"""Lower bounds that anybody can check by hand: what must move whatever else happens.

They hold for every plan that comes as close to the goals, in new replicas and in bytes. A replica
that leaves is copied elsewhere unless its partition shrinks: as many departures as there are
removals in all are free, at best the largest ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.problem import Problem
from regent_rebalance.ragged import Ints, ints, owners


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds on new replicas and on bytes copied.

    Attributes:
        mandatory: Replicas on dead or drained brokers, crowded in racks, or missing.
        fractional: What brokers have above their limits, or what they lack, whichever is more.
        dual: By prices (``certificate.py``); at most what a plan needs, and mostly that. Of small
            clusters' weighted plans also what an integer program proves (``integer_program.py``).
        mandatory_bytes: The smallest replicas that could be those.
        cover_bytes: The smallest replicas with which each broker comes down to its limit.
        dual_bytes: By prices; 0 where bytes are not what plans are to save.
    """

    mandatory: int
    fractional: int
    dual: int
    mandatory_bytes: int
    cover_bytes: int
    dual_bytes: int = 0

    @property
    def moves(self) -> int:
        """The best bound on new replicas."""
        return max(self.mandatory, self.fractional, self.dual)

    @property
    def bytes(self) -> int:
        """The best bound on bytes."""
        return max(self.mandatory_bytes, self.cover_bytes, self.dual_bytes)


def bounds_of(problem: Problem, dual: int, *, planned: Ints) -> Bounds:
    """Bounds on every plan that misses no more limits than a given one.

    Args:
        dual: The dual bound, on what plans cost: moves, and penalties for limits not met.
        planned: Replicas of each broker by the given plan. Where limits cannot be met, other plans
            may leave as many replicas above upper limits, and lack as many below lower ones.
    """
    above = int(np.maximum(0, planned - problem.costs.most).sum())
    below = int(np.maximum(0, problem.costs.least - planned).sum())
    new = _new_replicas(problem)
    removals = int(np.maximum(0, np.diff(problem.offsets) - problem.factor).sum())
    additions = int(np.maximum(0, problem.factor - np.diff(problem.offsets)).sum())
    loads = np.bincount(problem.replicas, minlength=problem.brokers)
    limit = np.where(problem.keeps, problem.costs.most, 0)
    excess = np.maximum(0, loads - np.maximum(limit, 0))
    short = np.maximum(0, problem.costs.least - loads)
    fractional = max(int(excess.sum()) - removals - above, int(short.sum()) - below, additions)
    return Bounds(
        mandatory=int(new.sum()),
        fractional=max(0, fractional),
        dual=max(0, dual - problem.costs.penalty(planned)),
        mandatory_bytes=int((new * problem.size).sum()),
        cover_bytes=_cover(problem, excess, removals + above),
    )


def _new_replicas(problem: Problem) -> Ints:
    """For each partition the new replicas that it needs on its own."""
    kept = problem.kept_in_rack()
    staying = np.minimum(kept, problem.allowed_in_rack(kept)).sum(axis=1)
    return ints(np.maximum(0, problem.factor - staying))


def _cover(problem: Problem, excess: Ints, free: int) -> int:
    """The smallest replicas of each broker, as many as it has too many; but for the largest of
    them all, as many as are removed without a copy or may stay."""
    crowded = np.flatnonzero(excess[problem.replicas] > 0)
    size, broker = problem.size[owners(problem.offsets)[crowded]], problem.replicas[crowded]
    order = np.lexsort((size, broker))
    broker = broker[order]
    first = np.searchsorted(broker, broker)
    covering = np.sort(size[order][np.arange(len(order)) - first < excess[broker]])
    return int(covering[: max(0, len(covering) - free)].sum())
