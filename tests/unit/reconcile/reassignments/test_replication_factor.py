"""Which replicas come and go when their number changes."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from regent.controller.view import ClusterView
from regent.reconcile.reassignments.replication_factor import ReplicaPlacement
from tests.unit.reconcile.reassignments.reassigning import moved, orders, racked
from tests.unit.reconcile.requests import partition, view


def resized(seen: ClusterView, factor: int) -> dict[int, tuple[int, ...]]:
    placement = ReplicaPlacement(seen, hosts=seen.brokers)
    return {tp.partition: r for tp, r in placement.resized(seen.topics["orders"], factor).items()}


def test_a_replica_out_of_sync_goes_first() -> None:
    shown = partition(0, (1, 2, 3), isr=(1, 3))
    assert resized(view(orders(shown)), 2) == {0: (1, 3)}


def test_of_two_in_a_rack_one_goes() -> None:
    seen = racked(view(orders((1, 2, 3))), "a", "b", "b")
    assert resized(seen, 2)[0] in {(1, 2), (1, 3)}
    seen = racked(view(orders((1, 2, 3))), "a", "a", "b")
    assert resized(seen, 2) == {0: (1, 3)}


def test_a_partition_that_is_being_moved_is_named_whatever_its_number_of_replicas() -> None:
    assert resized(view(orders(moved(0, (1, 2), (3, 2)))), 3) == {0: (3, 2, 1)}


def test_with_too_few_brokers_there_are_fewer_replicas() -> None:
    assert resized(view(orders((1,)), brokers=2), 3) == {0: (1, 2)}


@given(
    st.lists(
        st.lists(st.integers(1, 6), min_size=1, max_size=5, unique=True), min_size=1, max_size=8
    ),
    st.integers(1, 6),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_every_partition_gets_its_number_on_as_many_racks_as_can_be(
    replicas: list[list[int]], factor: int, racks: int, chance: random.Random
) -> None:
    seen = racked(view(orders(*map(tuple, replicas))), *(f"rack-{i % racks}" for i in range(6)))
    result = resized(seen, factor)
    # Nothing depends on the order in which a view has its topics and brokers.
    brokers = list(seen.brokers.items())
    chance.shuffle(brokers)
    assert resized(msgspec.structs.replace(seen, brokers=dict(brokers)), factor) == result
    for index, before in enumerate(replicas):
        after = result.get(index, tuple(before))
        assert len(after) == factor
        assert len(set(after)) == factor
        kept = [b for b in before if b in after]
        assert list(after[: len(kept)]) == kept
        if factor >= len(before):
            assert kept == before
            used = {b % racks for b in before}
            new = {b % racks for b in after}
            assert len(new) == min(len(used) + factor - len(before), racks)
        else:
            assert after[0] == before[0]
