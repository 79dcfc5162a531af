"""Where a partition is on its way."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.reconcile.reassignments.move_plan import Move
from regent.reconcile.reassignments.stages import MoveState, stages, status_of
from tests.unit.reconcile.reassignments.reassigning import moved, orders
from tests.unit.reconcile.requests import topic

MOVE = Move("orders", 0, 7, (1, 2, 3), (4, 5, 1))
replica_lists = st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True).map(tuple)


@given(replica_lists, replica_lists)
def test_each_stage_adds_one_replica_at_most_and_none_has_too_few(
    origin: tuple[int, ...], target: tuple[int, ...]
) -> None:
    path = stages(origin, target)
    assert (path[0], path[-1]) == (origin, target)
    for before, after in itertools.pairwise(path):
        assert len(set(after) - set(before)) <= 1
    for stage in path:
        assert len(stage) == len(set(stage)) >= min(len(origin), len(target))
    assert all(origin[0] in stage for stage in path[:-1]) or origin[0] not in target
    assert len({frozenset(stage) for stage in path[:-1]}) == len(path) - 1


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (orders((1, 2, 3)), MoveState.PENDING),
        (orders((2, 1, 3)), MoveState.PENDING),  # another preferred leader is no other place
        (orders((1, 2, 4)), MoveState.PENDING),  # half-way
        (orders((4, 5, 1)), MoveState.DONE),
        (orders((5, 4, 1)), MoveState.PENDING),  # all there, the preferred leader is not
        (orders(moved(0, (1, 2, 3), (4, 5, 1))), MoveState.RUNNING),
        (orders(moved(0, (1, 2, 3), (1, 2, 4))), MoveState.RUNNING),
        (orders(moved(0, (1, 2, 4), (4, 5, 1))), MoveState.RUNNING),
        (orders(moved(0, (1, 2, 3), (1, 2, 6))), MoveState.BLOCKED),
        (orders((1, 2, 6)), MoveState.DRIFTED),
        (orders((1, 2)), MoveState.DRIFTED),
        (orders((1, 2, 3), czxid=8), MoveState.DRIFTED),
        (orders((1, 2, 3), czxid=0), MoveState.PENDING),  # not known
        (orders(), MoveState.DRIFTED),
        (topic((1, 2, 3), deleting=True), MoveState.DRIFTED),
        (None, MoveState.DRIFTED),
    ],
)
def test_the_replicas_in_the_cluster_say_how_far_a_move_is(shown: object, state: MoveState) -> None:
    status = status_of(MOVE, shown)  # type: ignore[arg-type]
    assert status.state is state
    assert bool(status.problem) == (state in (MoveState.DRIFTED, MoveState.BLOCKED))


def test_a_partition_on_its_way_knows_where_it_came_from_in_the_order_of_the_plan() -> None:
    status = status_of(MOVE, orders(moved(0, (1, 2, 3), (4, 5, 1))))
    assert (status.stage, status.goal) == ((1, 2, 3), (4, 5, 1))


@given(replica_lists, replica_lists)
def test_a_move_that_is_taken_stage_by_stage_arrives(
    origin: tuple[int, ...], target: tuple[int, ...]
) -> None:
    move = Move("orders", 0, 7, origin, target)
    replicas = origin
    for _ in range(len(target) + 1):
        status = status_of(move, orders(replicas))
        if status.state is MoveState.DONE:
            break
        assert status.state is MoveState.PENDING
        replicas = status.next_goal(one_by_one=True)
    assert replicas == target
