"""Newton's step for prices, damped. Compiled.

The curvatures of :class:`regent_rebalance.smooth_bound.Slopes` have the shape of an arrow: the
prices of two brokers do not meet, but each meets the floors of groups. So brokers are eliminated
one by one, in blocks as large as there are quantities; what is left is a system of the floors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regent_rebalance.case import Floats
from regent_rebalance.jit import compiled
from regent_rebalance.ragged import Bools, Ints
from regent_rebalance.smooth_bound import Slopes

_LEAST = 1e-6
"""Added to curvatures, so that none is 0."""


class Step(NamedTuple):
    """A step, and room to find it.

    Attributes:
        floor: Group and quantity.
        extra: Broker and quantity.
        system: The floors' system: a row and a column for each group and quantity.
        right: Its right side, and then its solution.
        arrow: Quantity, and group and quantity: how a broker meets the floors.
        block: Two quantities: a broker's system.
        inverse: Its inverse.
        column: A number for each quantity.
    """

    floor: Floats
    extra: Floats
    system: Floats
    right: Floats
    arrow: Floats
    block: Floats
    inverse: Floats
    column: Floats

    @classmethod
    def empty(cls, brokers: int, groups: int, kinds: int) -> Step:
        """Room for a step."""
        floors = groups * kinds
        return cls(
            np.zeros((groups, kinds)),
            np.zeros((brokers, kinds)),
            np.zeros((floors, floors)),
            np.zeros(floors),
            np.zeros((kinds, floors)),
            np.zeros((kinds, kinds)),
            np.zeros((kinds, kinds)),
            np.zeros(kinds),
        )


@compiled
def factorize(matrix: Floats) -> None:
    """Write the Cholesky factor of a symmetric positive matrix into its lower triangle."""
    size = matrix.shape[0]
    for j in range(size):
        rest = matrix[j, j]
        for k in range(j):
            rest -= matrix[j, k] * matrix[j, k]
        # Rounding may leave less than nothing of what hardly bends.
        matrix[j, j] = np.sqrt(max(rest, 1e-12))
        for i in range(j + 1, size):
            rest = matrix[i, j]
            for k in range(j):
                rest -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = rest / matrix[j, j]


@compiled
def solve(factor: Floats, right: Floats) -> None:
    """Replace the right side of a system by its solution.

    Args:
        factor: As :func:`factorize` writes it.
    """
    size = factor.shape[0]
    for i in range(size):
        for k in range(i):
            right[i] -= factor[i, k] * right[k]
        right[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            right[i] -= factor[k, i] * right[k]
        right[i] /= factor[i, i]


@compiled
def find_step(group: Ints, slopes: Slopes, fixed: Bools, damping: float, step: Step) -> None:
    """Write the step of floors and extras that, were there no damping, leads to the curve's top.

    Args:
        group: Of each broker.
        fixed: Broker and quantity: extras that are to stay as they are.
        damping: Added to all curvatures, by their mean, and to each by itself.
    """
    groups, kinds = step.floor.shape
    even = _LEAST + damping * mean_curvature(slopes)
    sum_up(group, slopes, step)
    for i in range(groups * kinds):
        step.system[i, i] += damping * step.system[i, i] + even * len(group) / groups
    for b in range(len(group)):
        describe(b, group, slopes, fixed, damping, even, step)
        eliminate(b, slopes, fixed, step)
    factorize(step.system)
    solve(step.system, step.right)
    for g in range(groups):
        for k in range(kinds):
            step.floor[g, k] = step.right[g * kinds + k]
    for b in range(len(group)):
        describe(b, group, slopes, fixed, damping, even, step)
        for k in range(kinds):
            step.extra[b, k] = 0.0 if fixed[b, k] else slopes.of_broker[b, k]
            for i in range(groups * kinds):
                step.extra[b, k] -= step.arrow[k, i] * step.right[i]
        factorize(step.block)
        solve(step.block, step.extra[b])


@compiled
def mean_curvature(slopes: Slopes) -> float:
    """The mean of the curvatures by each price alone."""
    brokers, kinds = slopes.of_broker.shape
    total = 0.0
    for b in range(brokers):
        for k in range(kinds):
            total += slopes.within[b, k, k]
    return float(total / (brokers * kinds))


@compiled
def sum_up(group: Ints, slopes: Slopes, step: Step) -> None:
    """Write the system of the floors alone. A floor is part of all prices of its group."""
    groups, kinds = step.floor.shape
    for g in range(groups):
        for k in range(kinds):
            step.right[g * kinds + k] = slopes.of_group[g, k]
            for h in range(groups):
                for j in range(kinds):
                    step.system[g * kinds + k, h * kinds + j] = slopes.between[g, h, k, j]
    for b in range(len(group)):
        own = group[b] * kinds
        for k in range(kinds):
            step.right[own + k] += slopes.of_broker[b, k]
            for j in range(kinds):
                step.system[own + k, own + j] += slopes.within[b, k, j]
                for g in range(groups):
                    step.system[own + k, g * kinds + j] += slopes.mixed[b, g, k, j]
                    step.system[g * kinds + j, own + k] += slopes.mixed[b, g, k, j]


@compiled
def describe(
    broker: int,
    group: Ints,
    slopes: Slopes,
    fixed: Bools,
    damping: float,
    even: float,
    step: Step,
) -> None:
    """Write the system of a broker's extras, and how they meet the floors. Fixed ones do not."""
    groups, kinds = step.floor.shape
    for k in range(kinds):
        for j in range(kinds):
            bound = fixed[broker, k] or fixed[broker, j]
            step.block[k, j] = 0.0 if bound else slopes.within[broker, k, j]
            for g in range(groups):
                meets = slopes.mixed[broker, g, k, j]
                if g == group[broker]:
                    meets += slopes.within[broker, k, j]
                step.arrow[k, g * kinds + j] = 0.0 if fixed[broker, k] else meets
        step.block[k, k] += 1.0 if fixed[broker, k] else damping * step.block[k, k] + even


@compiled
def eliminate(broker: int, slopes: Slopes, fixed: Bools, step: Step) -> None:
    """Take a broker's extras out of the system of the floors."""
    kinds, floors = step.arrow.shape
    invert(fixed[broker], step)
    for k in range(kinds):
        step.column[k] = 0.0
        for j in range(kinds):
            step.column[k] += step.inverse[k, j] * slopes.of_broker[broker, j]
    for i in range(floors):
        for k in range(kinds):
            step.right[i] -= step.arrow[k, i] * step.column[k]
            part = 0.0
            for j in range(kinds):
                part += step.inverse[k, j] * step.arrow[j, i]
            if part != 0.0:
                for h in range(floors):
                    step.system[i, h] -= part * step.arrow[k, h]


@compiled
def invert(fixed: Bools, step: Step) -> None:
    """Write the inverse of a broker's system, 0 for what is fixed. The system is factorized."""
    kinds = step.block.shape[0]
    factorize(step.block)
    for j in range(kinds):
        for k in range(kinds):
            step.column[k] = 1.0 if k == j else 0.0
        solve(step.block, step.column)
        for k in range(kinds):
            step.inverse[k, j] = 0.0 if fixed[k] or fixed[j] else step.column[k]
