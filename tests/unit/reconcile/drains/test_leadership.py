"""Draining leadership: the brokers lead nothing and can be stopped, or it is said why not."""

from __future__ import annotations

from typing import Any

from regent.controller.commands import AlterPartitionReassignments, ElectLeaders
from regent.model.partition import TopicPartition
from regent.reconcile.drains.planning import plan_drain
from regent.resources.broker_drain_status import DrainPhase
from regent.resources.conditions import ConditionType
from tests.unit.reconcile.drains.draining import Cluster, Drain, accepted
from tests.unit.reconcile.requests import partition


def drain_of(cluster: Cluster, *brokers: int, **spec: Any) -> Drain:
    return Drain(cluster, *brokers, mode="Leadership", **spec)


def leaders(cluster: Cluster, topic: str = "t") -> list[int]:
    return [each.leader for each in cluster.topics[topic]]


def test_leaders_and_preferred_leaders_move_and_no_replica_does() -> None:
    cluster = Cluster({"t": [(1, 2, 3), (2, 1, 3), (3, 2)]})
    drain = drain_of(cluster, 1)
    drain.finish()
    assert leaders(cluster) == [2, 2, 3]
    assert cluster.replicas("t") == [(2, 3, 1), (2, 1, 3), (3, 2)]
    assert drain.is_in(DrainPhase.DRAINED)
    assert drain.truth()["LeadersMoved"] == "True/NoLeaders"
    assert drain.truth()["ReplicasMoved"] == "False/ReplicasStay"


def test_a_leader_that_is_not_preferred_is_relieved_by_an_election_alone() -> None:
    cluster = Cluster({"t": []})
    cluster.topics["t"] = [partition(0, (2, 1), leader=1)]
    drain = drain_of(cluster, 1)
    drain.finish()
    assert leaders(cluster) == [2]
    assert cluster.asked == []
    assert drain.is_in(DrainPhase.DRAINED)


def test_the_next_leader_is_one_that_is_in_sync() -> None:
    cluster = Cluster({"t": []}, brokers=3)
    cluster.topics["t"] = [partition(0, (1, 2, 3), (1, 3))]
    drain = drain_of(cluster, 1)
    drain.finish()
    assert leaders(cluster) == [3]
    assert cluster.replicas("t") == [(3, 2, 1)]


def test_partitions_that_could_not_be_written_to_are_all_named_and_the_others_move() -> None:
    cluster = Cluster({"t": [(1, 2), (2, 3)], "single": [(1,)], "wide": [(1, 2, 3)]})
    cluster.configs["t"] = {"min.insync.replicas": "2"}
    cluster.configs["wide"] = {"min.insync.replicas": "2"}
    drain = drain_of(cluster, 1)
    drain.finish()
    assert drain.blockers == {
        "t-0": "BelowMinInsyncReplicas",
        "single-0": "BelowMinInsyncReplicas",
    }
    assert drain.truth()["Stalled"] == "True/BelowMinInsyncReplicas"
    assert not drain.holds(ConditionType.DRAINED)
    assert leaders(cluster) == [1, 2], "its leader may stay: the broker cannot be stopped anyway"
    assert leaders(cluster, "wide") == [2]


def test_replicas_that_are_out_of_sync_are_waited_for() -> None:
    cluster = Cluster({"t": []}, brokers=3)
    cluster.configs["t"] = {"min.insync.replicas": "2"}
    cluster.topics["t"] = [partition(0, (2, 1, 3), (2, 1))]
    drain = drain_of(cluster, 1)
    drain.settle()
    assert drain.blockers == {"t-0": "UnderReplicated"}
    assert drain.truth()["Reconciling"] == "True/UnderReplicated"
    assert not drain.holds(ConditionType.DRAINED), "it leads nothing, and cannot be stopped yet"
    cluster.put("t", partition(0, (2, 1, 3)))
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED)
    cluster.stop(1)
    cluster.put("t", partition(0, (2, 1, 3), (2,)))
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED), "what happens afterwards is no matter of it"


def test_two_brokers_count_together() -> None:
    cluster = Cluster({"t": [(1, 2, 3)]})
    cluster.configs["t"] = {"min.insync.replicas": "2"}
    both = drain_of(cluster, 1, 2)
    both.settle()
    assert both.blockers == {"t-0": "BelowMinInsyncReplicas"}


def test_configurations_are_read_first() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    cluster.cordoned = (1,)
    cluster.configs.clear()
    plan = drain_of(cluster, 1).plan()
    (command,) = plan.commands
    assert command.progress == "reading the configuration of the topic"


def test_an_election_that_was_asked_for_is_not_asked_for_again_at_once() -> None:
    cluster = Cluster({"t": []})
    cluster.topics["t"] = [partition(0, (2, 1), leader=1)]
    cluster.cordoned = (1,)
    drain = drain_of(cluster, 1)
    (command,) = drain.plan().commands
    assert isinstance(command, ElectLeaders)
    again = plan_drain(drain.request([accepted(command)]))
    assert again.commands == ()
    assert again.requeue_after_s == 10
    assert again.status is not None
    assert again.status.phase is DrainPhase.DRAINING


def test_a_leader_that_comes_back_is_moved_again() -> None:
    cluster = Cluster({"t": [(1, 2, 3)]})
    drain = drain_of(cluster, 1)
    drain.finish()
    cluster.put("t", partition(0, (2, 3, 1), leader=1))
    drain.settle()
    assert leaders(cluster) == [2]
    assert drain.is_in(DrainPhase.DRAINED)


def test_it_is_undone_in_the_order_of_the_first_beginning() -> None:
    cluster = Cluster({"t": [(1, 2, 3)]})
    drain = drain_of(cluster, 1)
    drain.finish()
    cluster.put("t", partition(0, (2, 3, 1), (1, 3), leader=1))
    drain.finish()
    assert leaders(cluster) == [3]
    cluster.put("t", partition(0, *cluster.replicas("t"), leader=3))
    drain.change(desiredState="Undone")
    drain.finish()
    assert cluster.replicas("t") == [(1, 2, 3)]
    assert leaders(cluster) == [1]


def test_partitions_on_their_way_are_waited_for() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    cluster.carry_out(AlterPartitionReassignments({TopicPartition("t", 0): (1, 3)}))
    drain = drain_of(cluster, 1)
    drain.settle()
    assert drain.blockers == {"t-0": "ReassignmentInProgress"}
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


def test_the_order_that_a_reassignment_gives_is_changed_when_that_is_over() -> None:
    cluster = Cluster({"t": [(1, 2), (1, 3)]})
    drain = drain_of(cluster, 1)
    drain.moved_by_others = {TopicPartition("t", 0): "shop/move"}
    drain.finish()
    assert cluster.replicas("t") == [(1, 2), (3, 1)]
    assert drain.blockers == {"t-0": "ReassignmentInProgress"}
    drain.moved_by_others = {}
    drain.finish()
    assert leaders(cluster) == [2, 3]
