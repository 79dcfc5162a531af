"""The order in which dead brokers are to be started."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from regent.simulation.restart_order import EXACT_UP_TO, Return, restart_order


def waiting(isrs: list[tuple[int, ...]], order: tuple[int, ...]) -> int:
    """Partitions without a leader, summed over the starts."""
    return sum(
        sum(not any(broker in isr for broker in order[:started]) for isr in isrs)
        for started in range(len(order))
    )


isr_lists = st.lists(
    st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True).map(tuple), max_size=8
)


@settings(deadline=None)
@given(isr_lists)
def test_no_order_is_better(isrs: list[tuple[int, ...]]) -> None:
    dead = (1, 2, 3, 4, 5)
    advised = restart_order(isrs, dead)
    full = (*(each.broker for each in advised.returns), *advised.others)
    assert advised.is_best
    assert sorted(full) == list(dead)
    assert waiting(isrs, full) == min(waiting(isrs, order) for order in permutations(dead))


def test_the_largest_first_is_not_always_best() -> None:
    """Broker 1 brings most back at once; after 2 and 3 it brings nothing that these do not."""
    isrs = [(1, 2)] * 2 + [(1, 3)] * 2 + [(2,)] * 3 + [(3,)] * 3
    advised = restart_order(isrs, (1, 2, 3))
    assert advised.returns == (Return(2, 5, 5), Return(3, 5, 0))
    assert advised.others == (1,)


def test_brokers_that_are_not_dead_bring_nothing_back() -> None:
    advised = restart_order([(1, 2), (9,)], (2, 3))
    assert advised.returns == (Return(2, 1, 1),)
    assert advised.others == (3,)


def test_of_many_brokers_always_the_one_that_brings_most_back() -> None:
    brokers = range(EXACT_UP_TO + 1)
    isrs = [(broker,) for broker in brokers for _ in range(broker + 1)]
    advised = restart_order(isrs, brokers)
    assert not advised.is_best
    assert [each.broker for each in advised.returns] == list(reversed(brokers))
    assert advised.returns[-1].remaining == 0


def test_of_many_brokers_none_is_waited_for_that_is_not_dead() -> None:
    dead = range(EXACT_UP_TO + 1)
    advised = restart_order([(broker,) for broker in (*dead, 99)], dead)
    assert len(advised.returns) == EXACT_UP_TO + 1
    assert advised.returns[-1].remaining == 1


def test_without_partitions_there_is_nothing_to_do() -> None:
    advised = restart_order([], (1, 2))
    assert advised.returns == ()
    assert advised.others == (1, 2)
