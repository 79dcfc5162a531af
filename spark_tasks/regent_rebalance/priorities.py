"""The order of soft goals: which of two states is closer to them, and what weighs how much.

A search weighs all soft goals alike. Where it meets all of them their order does not matter. Where
it does not, another search weighs a goal that was missed, and those before it, far more than those
after it; and of two states that one counts which is closer to the first goal they differ in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regent_rebalance.case import Case, State
from regent_rebalance.goals import TOPIC_DISTRIBUTION, Goals
from regent_rebalance.quantities import Quantity
from regent_rebalance.search import above_capacity, outside_by

_CLEARLY = 0.9
"""A state is closer to a goal if it misses it by less than this share of what another one does."""

_STEP = 16.0
"""How much more a unit outside weighs than one of a goal that counts less."""

_LEVELS = 4
"""With more levels the weights' range would leave sums inexact."""


@dataclass(frozen=True, slots=True)
class Priorities:
    """Soft goals in the order in which they count.

    Attributes:
        quantities: For each soft goal the column of its quantity; None for the limits of topics.
        hard_least: Columns whose lower limit is hard.
    """

    quantities: tuple[int | None, ...]
    hard_least: tuple[int, ...]

    @classmethod
    def of(cls, goals: Goals, ordered: Sequence[Quantity]) -> Priorities:
        """The order of goals, for the columns of a case."""
        column = {quantity.goal: k for k, quantity in enumerate(ordered)}
        return cls(
            tuple(None if name == TOPIC_DISTRIBUTION else column[name] for name in goals.soft),
            tuple(k for k, quantity in enumerate(ordered) if quantity.least_goal),
        )

    def missed(self, case: Case, state: State) -> list[float]:
        """By how much hard goals are missed, and then each soft goal, in replicas."""
        outside, topics = outside_by(case, state)
        hard = above_capacity(case, state).sum() + outside[list(self.hard_least)].sum()
        soft = [topics if column is None else outside[column] for column in self.quantities]
        return [float(hard), *map(float, soft)]

    def ranked(self, case: Case, missed: Sequence[float]) -> Case | None:
        """The case with weights by the order; None if no goal counts less than one missed.

        Args:
            missed: By how much a search has missed the goals.
        """
        soft = missed[1:]
        levels = [min(_LEVELS, sum(off > 0 for off in soft[i:])) for i in range(len(soft))]
        if len(dict.fromkeys(levels)) < 2:
            return None
        top = max(levels)
        weights, of_topics = np.full(len(case.soft), _STEP**top), 1.0
        for column, level in zip(self.quantities, levels, strict=True):
            if column is None:
                of_topics = _STEP**level
            else:
                weights[column] = _STEP**level
        return case._replace(
            soft=case.soft * weights,
            hard=case.hard * _STEP**top,
            topic_weight=of_topics,
            topic_strict=of_topics == _STEP**top,
        )


def is_closer(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether, of the goals that two states miss by clearly different amounts, the first state is
    closer to the first."""
    for less, more in zip(one, other, strict=True):
        if less < _CLEARLY * more:
            return True
        if more < _CLEARLY * less:
            return False
    return False
