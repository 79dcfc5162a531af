"""What it costs that brokers are outside their limits: a convex price on each broker's count.

Being one unit outside a soft limit costs more than any chain of moves that could mend it, and one
unit above a capacity more than any number of units outside soft limits that mending it could cause.
So a least-cost flow breaks as few hard limits as possible, then as few soft ones, then moves least;
and it exists whether the limits can be met or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.ragged import Ints, ints


@dataclass(frozen=True, slots=True)
class BrokerCosts:
    """Limits on how many units a flow brings to each broker.

    Attributes:
        least: Soft lower limit.
        most: Soft upper limit, at least ``least``.
        capacity: Hard upper limit, at least ``most``.
    """

    least: Ints
    most: Ints
    capacity: Ints

    @classmethod
    def of(cls, least: Ints, most: Ints, capacity: Ints) -> BrokerCosts:
        """Limits made consistent: a capacity counts before a soft limit."""
        most = np.minimum(most, capacity)
        return cls(np.minimum(least, most), most, capacity)

    @property
    def soft(self) -> int:
        """Cost of a unit outside a soft limit. A chain of moves visits each broker once at most."""
        return 4 * (len(self.least) + 2)

    @property
    def hard(self) -> int:
        """Cost of a unit above a capacity, besides the soft limit that it breaks."""
        return 4 * self.soft

    def outside(self, load: Ints) -> Ints:
        """Units outside the soft limits of each broker."""
        return ints(np.maximum(0, load - self.most) + np.maximum(0, self.least - load))

    def above_capacity(self, load: Ints) -> Ints:
        """Units above the capacity of each broker."""
        return ints(np.maximum(0, load - self.capacity))

    def penalty(self, load: Ints) -> int:
        """What loads cost together."""
        return int(
            self.soft * self.outside(load).sum() + self.hard * self.above_capacity(load).sum()
        )

    def segments(self, total: int) -> list[tuple[Ints, int]]:
        """Parallel arcs from each broker to the sink, capacity and cost of each.

        The costs differ from :meth:`penalty` by a constant for each unit, so that none is negative.
        """
        ends = [np.clip(limit, 0, total) for limit in (self.least, self.most, self.capacity)]
        ends.append(np.full(len(self.least), total))
        costs = (0, self.soft, 2 * self.soft, 2 * self.soft + self.hard)
        begins = [np.zeros(len(self.least), dtype=np.int64), *ends[:-1]]
        return [(end - begin, cost) for begin, end, cost in zip(begins, ends, costs, strict=True)]

    def least_with_prices(self, prices: Ints, total: int) -> int:
        """Least of penalty minus price times load, over every load from 0 to ``total``."""
        zero = np.zeros(len(prices), dtype=np.int64)
        corners = [zero, zero + total]
        corners += [np.clip(limit, 0, total) for limit in (self.least, self.most, self.capacity)]
        values = [
            self.soft * self.outside(load) + self.hard * self.above_capacity(load) - prices * load
            for load in corners
        ]
        return int(np.minimum.reduce(values).sum())
