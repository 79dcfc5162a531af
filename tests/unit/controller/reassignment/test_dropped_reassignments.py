"""Reassignments that a tool drops from the topic node which it rewrites."""

from __future__ import annotations

import json

from regent.controller.topics.topic_changes import process_partition_modifications
from regent.model.partition import ReplicaAssignment
from regent.zk_data import paths
from tests.unit.controller.reassignment.moving import Cluster, writes
from tests.unit.controller.world import T0, T1

RESTORED = (
    "Reassignments restored: a client of Kafka 2.3 or older has dropped them from topic nodes"
)
MOVING = ReplicaAssignment((2, 3, 1), (3,), (1,))


def rewrite(cluster: Cluster, partitions: dict[int, list[int]]) -> None:
    """What ``kafka-topics --zookeeper --alter --partitions`` of Kafka 1.1 leaves in the node."""
    content = {"version": 1, "partitions": {str(p): r for p, r in partitions.items()}}
    cluster.world.put(paths.topic("t"), json.dumps(content).encode())
    cluster.world.run(process_partition_modifications(cluster.active, ["t"]))


def restored(cluster: Cluster) -> int:
    return len(cluster.world.log.warnings(RESTORED))


def test_what_a_growth_has_dropped_goes_back_beside_the_new_partitions() -> None:
    cluster = Cluster((1, 2)).start()
    cluster.move(2, 3)
    rewrite(cluster, {0: [2, 3, 1], 1: [4, 5, 1]})
    assert cluster.stored(0) == MOVING
    assert cluster.stored(1) == ReplicaAssignment((4, 5, 1))
    assert cluster.state(T1).leader == 4
    assert restored(cluster) == 1


def test_a_successor_takes_the_partition_to_its_target() -> None:
    cluster = Cluster((1, 2)).start()
    cluster.move(2, 3)
    rewrite(cluster, {0: [2, 3, 1], 1: [4, 5, 1]})
    cluster.start()
    cluster.sync(1, 2, 3)
    assert cluster.stored() == ReplicaAssignment((2, 3))


def test_partitions_that_do_not_move_cost_no_write() -> None:
    cluster = Cluster((1, 2), (2, 3)).start()
    cluster.move(2, 3)
    rewrite(cluster, {0: [2, 3, 1], 1: [2, 3]})
    assert cluster.stored(0) == MOVING
    cluster.forget()
    cluster.world.run(process_partition_modifications(cluster.active, ["t"]))
    assert writes(cluster) == []


def test_another_list_of_replicas_is_left_alone() -> None:
    cluster = Cluster((1, 2)).start()
    cluster.move(2, 3)
    rewrite(cluster, {0: [2, 1]})
    assert cluster.world.topic("t").assignments[0] == ReplicaAssignment((2, 1))
    assert cluster.active.context.cluster.assignment(T0) == MOVING
    assert restored(cluster) == 0
