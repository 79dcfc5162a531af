"""When brokers are drained of replicas, and that they stay so."""

from __future__ import annotations

import pytest

from regent.admin.commands import AlterPartitionReassignments
from regent.model.partition import TopicPartition
from regent.resources.broker_drain_status import DrainPhase
from regent.resources.conditions import ConditionType
from tests.support.present import present
from tests.unit.reconcile.drains.draining import Cluster, Drain
from tests.unit.reconcile.requests import partition


def test_it_is_not_drained_before_what_was_moved_is_in_sync() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1)
    drain.settle()
    cluster.arrive(TopicPartition("t", 0))
    (replicas,) = cluster.replicas("t")
    cluster.put("t", partition(0, replicas, replicas[:1]))
    drain.settle()
    assert cluster.on(1) == 0
    assert drain.is_in(DrainPhase.VERIFYING)
    assert not drain.holds(ConditionType.DRAINED)
    assert drain.truth()["ReplicasMoved"] == "True/NoReplicas"
    cluster.put("t", partition(0, replicas))
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED)
    cluster.put("t", partition(0, replicas, replicas[:1]))
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED), "what falls behind later is no matter of it"


def test_it_is_not_drained_while_a_replica_leaves_or_a_topic_is_being_deleted() -> None:
    cluster = Cluster({"t": [(1, 2)], "u": [(1,)]})
    cluster.carry_out(AlterPartitionReassignments({TopicPartition("t", 0): (3, 2)}))
    cluster.deleting.add("u")
    drain = Drain(cluster, 1)
    drain.settle()
    assert drain.blockers == {"u-0": "TopicMarkedForDeletion"}
    assert len(cluster.asked) == 1
    del cluster.topics["u"]
    drain.settle()
    assert drain.truth()["Ready"] == "False/ReplicasRemain"
    assert drain.truth()["ReplicasMoved"] == "False/ReplicasRemain"
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


def test_what_comes_to_drained_brokers_is_moved_off_again() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1)
    drain.finish()
    first = drain.status.plan
    cluster.create("new", (1, 2), (2, 3))
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINING)
    assert not drain.holds(ConditionType.DRAINED)
    drain.finish()
    assert cluster.on(1) == 0
    assert drain.is_in(DrainPhase.DRAINED)
    assert first is not None
    assert present(drain.status.plan).partitions == 2, "all of it can be undone"


def test_a_drained_broker_that_nothing_changes_about_costs_no_write() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1)
    drain.finish()
    drain.after_s = 3600
    plan = drain.plan()
    assert plan.status == drain.status
    assert (plan.commands, plan.requeue_after_s) == ((), None)


def test_what_comes_to_a_drained_broker_later_has_the_whole_time_again() -> None:
    cluster = Cluster({"t": [(1,)]})
    drain = Drain(cluster, 1, timeoutSeconds=60)
    drain.finish()
    drain.after_s = 3600
    cluster.create("u", (1,))
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINING)
    assert drain.truth()["Stalled"] == "False/NotStalled"
    drain.after_s += 60
    drain.settle()
    assert drain.truth()["Stalled"] == "True/DrainTimedOut"


def test_it_stays_drained_while_somebody_else_moves_on_what_it_has_moved() -> None:
    cluster = Cluster({"t": [(1, 2)]}, brokers=5)
    drain = Drain(cluster, 1)
    drain.finish()
    (moved,) = cluster.replicas("t")
    elsewhere = next(b for b in (3, 4, 5) if b not in moved)
    tp = TopicPartition("t", 0)
    cluster.carry_out(AlterPartitionReassignments({tp: (2, elsewhere)}))
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED)
    cluster.arrive(tp)
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED)


def test_it_is_not_drained_while_a_topic_cannot_be_read_and_what_can_be_leaves() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    cluster.unreadable["u"] = "not JSON"
    drain = Drain(cluster, 1)
    drain.finish()
    assert cluster.on(1) == 0
    assert drain.is_in(DrainPhase.DRAINING)
    assert drain.truth()["Drained"] == "False/TopicsUnreadable"
    assert drain.truth()["ReplicasMoved"] == "Unknown/Unknown"
    assert drain.truth()["LeadersMoved"] == "Unknown/Unknown"
    (blocker,) = drain.status.blockers
    assert "topics cannot be read: u" in blocker.message
    cluster.unreadable.clear()
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


@pytest.mark.parametrize("mode", ["Replicas", "Leadership"])
def test_it_does_not_stay_drained_when_a_topic_cannot_be_read_any_more(mode: str) -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1, mode=mode)
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)
    cluster.unreadable["u"] = "not JSON"
    drain.finish()
    assert drain.truth()["Drained"] == "False/TopicsUnreadable"
