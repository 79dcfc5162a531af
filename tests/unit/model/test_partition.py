"""Identity of partitions and the algebra of their assignments during a reassignment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.partition import PartitionReplica, ReplicaAssignment, TopicPartition

Ids = tuple[int, ...]


def test_partitions_and_replicas_print_as_kafka_logs_them() -> None:
    tp = TopicPartition("orders", 3)
    assert str(tp) == "orders-3"
    assert str(PartitionReplica(tp, 7)) == "orders-3 on broker 7"


@pytest.mark.parametrize(
    ("start", "target", "expected"),
    [
        ((1, 2, 3, 4), (4, 2, 5, 3), ReplicaAssignment((4, 2, 5, 3, 1), (5,), (1,))),
        ((1, 2, 3), (4, 5, 6), ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))),
        ((1, 2, 3), (1, 2, 3), ReplicaAssignment((1, 2, 3))),
        ((1, 2, 3), (3, 1, 2), ReplicaAssignment((3, 1, 2))),
        ((1, 2), (1, 2, 3), ReplicaAssignment((1, 2, 3), (3,))),
        ((1, 2, 3), (2,), ReplicaAssignment((2, 1, 3), (), (1, 3))),
    ],
)
def test_a_reassignment_begins_with_its_target_and_keeps_what_is_to_go(
    start: Ids, target: Ids, expected: ReplicaAssignment
) -> None:
    assert ReplicaAssignment(start).reassign_to(target) == expected


def test_a_reassignment_replaces_the_one_under_way() -> None:
    first = ReplicaAssignment((1, 2, 3)).reassign_to((4, 5, 6))
    second = first.reassign_to((7, 8, 9))
    assert second == ReplicaAssignment((7, 8, 9, 1, 2, 3), (7, 8, 9), (1, 2, 3))
    assert second.reassign_to((1, 2, 3)) == ReplicaAssignment((1, 2, 3))


def test_a_new_order_alone_is_no_reassignment() -> None:
    assert not ReplicaAssignment((1, 2, 3)).reassign_to((3, 1, 2)).is_being_reassigned


def test_a_forgotten_replica_is_in_none_of_the_lists() -> None:
    assignment = ReplicaAssignment((4, 5, 1, 2), (4, 5), (1, 2))
    assert assignment.remove_replica(1) == ReplicaAssignment((4, 5, 2), (4, 5), (2,))
    assert assignment.remove_replica(4) == ReplicaAssignment((5, 1, 2), (5,), (1, 2))
    assert assignment.remove_replica(9) == assignment


ids = st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True).map(tuple)


@given(ids, st.lists(ids, min_size=1, max_size=4))
def test_origin_and_target_survive_any_sequence_of_reassignments(
    origin: Ids, targets: list[Ids]
) -> None:
    assignment = ReplicaAssignment(origin)
    for target in targets:
        assignment = assignment.reassign_to(target)
        assert assignment.target_replicas == target
        assert set(assignment.origin_replicas) == set(origin)
        assert set(assignment.adding_replicas) == set(target) - set(origin)
        assert set(assignment.removing_replicas) == set(origin) - set(target)
        assert set(assignment.replicas) == set(origin) | set(target)
        assert len(set(assignment.replicas)) == len(assignment.replicas)
        assert assignment.reassign_to(target) == assignment
        assert assignment.is_being_reassigned == (set(target) != set(origin))


@given(ids, ids)
def test_a_cancelled_reassignment_leaves_the_set_it_began_with(origin: Ids, target: Ids) -> None:
    under_way = ReplicaAssignment(origin).reassign_to(target)
    cancelled = under_way.reassign_to(under_way.origin_replicas)
    assert not cancelled.is_being_reassigned
    assert set(cancelled.replicas) == set(origin)


@given(ids, ids)
def test_a_finished_reassignment_is_the_target(origin: Ids, target: Ids) -> None:
    assignment = ReplicaAssignment(origin).reassign_to(target)
    for replica in assignment.removing_replicas:
        assignment = assignment.remove_replica(replica)
    assert assignment.replicas == target
    assert assignment.removing_replicas == ()
