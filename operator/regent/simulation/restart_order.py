"""In which order dead brokers are to be started, so that partitions without a leader come back as
early as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

EXACT_UP_TO: Final = 14
"""Brokers of which all orders are compared: 2^14 sets of them. Beyond, the choice is greedy."""


@dataclass(frozen=True, slots=True)
class Return:
    """A broker is started, after those before it.

    Attributes:
        partitions: Partitions that have a leader again with it, and had none before.
        remaining: Partitions that still have none.
    """

    broker: int
    partitions: int
    remaining: int


@dataclass(frozen=True, slots=True)
class RestartOrder:
    """An order.

    Attributes:
        returns: Brokers that bring partitions back, in that order.
        is_best: Whether no order leaves fewer partitions without a leader, summed over the starts.
        others: Brokers that bring no further partition back, in ascending order.
    """

    returns: tuple[Return, ...]
    is_best: bool
    others: tuple[int, ...]


def restart_order(isrs: Iterable[Sequence[int]], dead: Iterable[int]) -> RestartOrder:
    """The order for partitions without a leader.

    Args:
        isrs: The last ISR of each such partition: any member of it, started, becomes its leader.
        dead: Brokers that can be started.
    """
    groups = Counter(tuple(sorted(isr)) for isr in isrs)
    helpful = sorted({broker for isr in groups for broker in isr}.intersection(dead))
    is_best = len(helpful) <= EXACT_UP_TO
    order = _best(groups, helpful) if is_best else _greedy(groups, helpful)
    returns: list[Return] = []
    remaining = dict(groups)
    for broker in order:
        returned = sum(count for isr, count in remaining.items() if broker in isr)
        remaining = {isr: count for isr, count in remaining.items() if broker not in isr}
        if returned:
            returns.append(Return(broker, returned, sum(remaining.values())))
    used = [each.broker for each in returns]
    others = tuple(sorted(broker for broker in dead if broker not in used))
    return RestartOrder(tuple(returns), is_best, others)


def _greedy(groups: Mapping[tuple[int, ...], int], brokers: Sequence[int]) -> list[int]:
    """Always the broker that brings most back; of equal ones that with the lower id. The sum is at
    most four times the least one (minimum sum set cover, Feige and others 2004)."""
    order: list[int] = []
    remaining = dict(groups)
    while remaining:
        gains = Counter[int]()
        for isr, count in remaining.items():
            for broker in isr:
                gains[broker] += count
        candidates = [broker for broker in brokers if gains[broker]]
        if not candidates:
            break
        chosen = max(candidates, key=lambda broker: (gains[broker], -broker))
        order.append(chosen)
        remaining = {isr: count for isr, count in remaining.items() if chosen not in isr}
    return order


def _best(groups: Mapping[tuple[int, ...], int], brokers: Sequence[int]) -> list[int]:
    """The order with the least sum, by the sets of brokers that are started: the rest of an order
    depends on the set, not on how it came about."""
    place = {broker: 1 << i for i, broker in enumerate(brokers)}
    masks = Counter[int]()
    for isr, count in groups.items():
        masks[sum(place[broker] for broker in isr if broker in place)] += count
    everything = (1 << len(brokers)) - 1
    inside = [masks[subset] for subset in range(everything + 1)]
    for bit in place.values():
        for subset in range(everything + 1):
            if subset & bit:
                inside[subset] += inside[subset ^ bit]
    # inside[s]: partitions whose ISR is within s. What waits once s is started is within the rest.
    cost = [0] * (everything + 1)
    first = [0] * (everything + 1)
    for started in range(everything - 1, -1, -1):
        waiting = inside[everything ^ started]
        cost[started], first[started] = min(
            (waiting + cost[started | bit], i)
            for i, bit in enumerate(place.values())
            if not started & bit
        )
    order: list[int] = []
    started = 0
    while started != everything:
        order.append(brokers[first[started]])
        started |= 1 << first[started]
    return order
