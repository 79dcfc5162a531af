"""Identity of partitions, and their assignments during a reassignment."""

from __future__ import annotations

from regent.model.partition import ReplicaAssignment, TopicPartition, partitions_of_topic


def test_partitions_print_as_kafka_logs_them() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"


def test_partitions_of_a_topic_are_made_together() -> None:
    first, second = partitions_of_topic("orders", {3: "x", 0: "y"})
    assert (first, second) == (TopicPartition("orders", 3), TopicPartition("orders", 0))
    assert (type(first), first.topic, second.partition) == (TopicPartition, "orders", 0)


def test_the_target_is_what_stays() -> None:
    under_way = ReplicaAssignment((4, 5, 1, 2), adding_replicas=(4, 5), removing_replicas=(1,))
    assert under_way.is_being_reassigned
    assert under_way.target_replicas == (4, 5, 2)
    settled = ReplicaAssignment((4, 5, 2))
    assert not settled.is_being_reassigned
    assert settled.target_replicas == settled.replicas


def test_a_forgotten_replica_is_in_none_of_the_lists() -> None:
    assignment = ReplicaAssignment((4, 5, 1, 2), (4, 5), (1, 2))
    assert assignment.remove_replica(1) == ReplicaAssignment((4, 5, 2), (4, 5), (2,))
    assert assignment.remove_replica(4) == ReplicaAssignment((5, 1, 2), (5,), (1, 2))
    assert assignment.remove_replica(9) == assignment
