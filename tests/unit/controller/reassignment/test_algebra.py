"""What a reassignment makes of replica lists: the examples of KIP-455, and laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.controller.reassignment.algebra import (
    cancelled,
    completed,
    is_complete,
    origin_of,
    reassign_to,
    replicas_lost,
    target_problem,
)
from regent.model.partition import ReplicaAssignment

Replicas = tuple[int, ...]
REPLICAS = st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True).map(tuple)


def moved(origin: Replicas, *targets: Replicas) -> ReplicaAssignment:
    """Reassigned to one target after the other, without ever getting there."""
    assignment = ReplicaAssignment(origin)
    for target in targets:
        assignment = reassign_to(assignment, target)
    return assignment


@pytest.mark.parametrize(
    ("origin", "targets", "replicas", "adding", "removing"),
    [
        ((1, 2, 3, 4), [(4, 2, 5, 3)], (4, 2, 5, 3, 1), (5,), (1,)),
        ((1, 2, 3), [(4, 5, 6)], (4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3)),
        ((1, 2, 3), [(4, 5, 6), (7, 8, 9)], (7, 8, 9, 1, 2, 3), (7, 8, 9), (1, 2, 3)),
        ((1, 2, 3), [(4, 5, 6), (7, 8, 9), (1, 2, 3)], (1, 2, 3), (), ()),
        ((1, 2, 3), [(3, 1, 2)], (3, 1, 2), (), ()),
        ((1, 2, 3), [(1, 2)], (1, 2, 3), (), (3,)),
        ((1, 2), [(1, 2, 3)], (1, 2, 3), (3,), ()),
        ((1, 2), [(2, 3), (3, 4)], (3, 4, 2, 1), (3, 4), (2, 1)),
    ],
)
def test_examples(
    origin: Replicas,
    targets: list[Replicas],
    replicas: Replicas,
    adding: Replicas,
    removing: Replicas,
) -> None:
    assert moved(origin, *targets) == ReplicaAssignment(replicas, adding, removing)


@given(REPLICAS, REPLICAS)
def test_origin_and_target_can_be_told_from_the_assignment(
    origin: Replicas, target: Replicas
) -> None:
    assignment = moved(origin, target)
    assert sorted(origin_of(assignment)) == sorted(origin)
    assert assignment.target_replicas == target
    assert assignment.is_being_reassigned == (sorted(origin) != sorted(target))


@given(REPLICAS, REPLICAS)
def test_again_to_the_same_target_changes_nothing(origin: Replicas, target: Replicas) -> None:
    assert moved(origin, target, target) == moved(origin, target)


@given(REPLICAS, REPLICAS, REPLICAS)
def test_another_target_forgets_what_was_being_added_for_the_first(
    origin: Replicas, first: Replicas, second: Replicas
) -> None:
    direct, detour = moved(origin, second), moved(origin, first, second)
    assert detour.target_replicas == direct.target_replicas
    assert detour.adding_replicas == direct.adding_replicas
    assert sorted(detour.removing_replicas) == sorted(direct.removing_replicas)
    lost = replicas_lost(moved(origin, first), detour)
    assert sorted(lost) == sorted(set(first) - set(origin) - set(second))


@given(REPLICAS, st.lists(REPLICAS, max_size=3))
def test_cancelling_restores_the_replicas_though_not_their_order(
    origin: Replicas, targets: list[Replicas]
) -> None:
    back = cancelled(moved(origin, *targets))
    assert not back.is_being_reassigned
    assert sorted(back.replicas) == sorted(origin)


@given(REPLICAS, REPLICAS)
def test_back_to_the_origin_in_any_order_is_no_reassignment(
    origin: Replicas, target: Replicas
) -> None:
    assert moved(origin, target, origin[::-1]) == ReplicaAssignment(origin[::-1])


@given(REPLICAS, REPLICAS)
def test_the_replicas_are_those_of_origin_and_target_once_each(
    origin: Replicas, target: Replicas
) -> None:
    assignment = moved(origin, target)
    assert sorted(assignment.replicas) == sorted({*origin, *target})
    assert completed(assignment) == ReplicaAssignment(target)
    assert not set(assignment.adding_replicas) & set(assignment.removing_replicas)


@given(REPLICAS, REPLICAS, REPLICAS)
def test_it_is_complete_when_every_target_replica_is_in_sync(
    origin: Replicas, target: Replicas, isr: Replicas
) -> None:
    assert is_complete(moved(origin, target), isr) == (set(target) <= set(isr))


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ((), "empty"),
        ((1, 2, 1), "twice"),
        ((1, -1), "negative"),
        ((0,), None),
        ((3, 1), None),
    ],
)
def test_lists_that_cannot_be_a_target(target: Replicas, problem: str | None) -> None:
    found = target_problem(target)
    assert found is None if problem is None else problem in (found or "")
