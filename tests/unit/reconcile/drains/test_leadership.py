"""Draining leadership: the brokers lead nothing and can be stopped, or it is said why not."""

from __future__ import annotations

from typing import Any

import pytest

from regent.admin.commands import ElectLeaders
from regent.model.partition import TopicPartition
from regent.reconcile.drains.claims import claim_of
from regent.reconcile.drains.planning import plan_drain
from regent.resources.broker_drain_status import DrainPhase
from regent.resources.conditions import ConditionType
from tests.unit.reconcile.drains.draining import Cluster, Drain, accepted
from tests.unit.reconcile.requests import partition, status_of


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


@pytest.mark.parametrize(
    "trouble", [{"uninformed": (2,)}, {"refusals": ((2, "UNKNOWN_SERVER_ERROR"),)}]
)
def test_a_broker_is_not_drained_while_who_is_to_lead_instead_does_not(
    trouble: dict[str, Any],
) -> None:
    """Whoever stops it would take the partition from those who still write to it."""
    cluster = Cluster({"t": [(2, 1)]})
    drain = drain_of(cluster, 1)
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)
    cluster.topics["t"] = [partition(0, (2, 1), **trouble)]
    drain.finish()
    assert drain.is_in(DrainPhase.VERIFYING)
    assert not drain.holds(ConditionType.DRAINED)
    cluster.topics["t"] = [partition(0, (2, 1))]
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


@pytest.mark.parametrize(
    ("field", "waiting", "answered"),
    [
        ("silent", (2,), ()),
        ("unanswered", {2: 0}, {2: 1}),  # later it was told of something else
    ],
)
def test_a_broker_is_not_drained_before_the_next_leaders_have_answered(
    field: str, waiting: object, answered: object
) -> None:
    """This controller, and that they lead: one that hangs counts as reached for a while."""
    cluster = Cluster({"t": [(1, 2)], "led-already": [(2, 1)]})
    setattr(cluster, field, waiting)
    drain = drain_of(cluster, 1)
    drain.finish()
    assert leaders(cluster) == [2]
    assert drain.is_in(DrainPhase.VERIFYING)
    assert not drain.holds(ConditionType.DRAINED)
    setattr(cluster, field, answered)
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)
    setattr(cluster, field, waiting)
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED), "that takes nothing back"


def test_a_broker_that_would_not_learn_of_it_does_not_lead_next() -> None:
    cluster = Cluster({"t": [(1, 2, 3)], "pair": [(1, 2)]}, brokers=3)
    cluster.unreached = (2,)
    drain = drain_of(cluster, 1)
    drain.finish()
    assert leaders(cluster) == [3]
    assert leaders(cluster, "pair") == [1], "nobody else could be told to lead it"
    assert drain.blockers == {"pair-0": "BrokersCordoned"}
    assert not drain.holds(ConditionType.DRAINED)
    cluster.unreached = ()
    drain.finish()
    assert leaders(cluster, "pair") == [2]
    assert drain.is_in(DrainPhase.DRAINED)


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


def test_a_broker_that_cannot_be_stopped_any_more_is_not_drained_any_more() -> None:
    """As while another broker is restarted: the eviction of the next one has to wait."""
    cluster = Cluster({"t": [(2, 1, 3)]}, brokers=3)
    cluster.configs["t"] = {"min.insync.replicas": "2"}
    drain = drain_of(cluster, 1)
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED)
    cluster.put("t", partition(0, (2, 1, 3), (2, 1)))
    drain.settle()
    assert not drain.holds(ConditionType.DRAINED), "without it one replica is left in sync"
    assert drain.blockers == {"t-0": "UnderReplicated"}
    cluster.put("t", partition(0, (2, 1, 3)))
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED)
    cluster.configs["t"] = {"min.insync.replicas": "3"}
    drain.settle()
    assert drain.blockers == {"t-0": "BelowMinInsyncReplicas"}
    assert not drain.holds(ConditionType.DRAINED)


def test_configurations_that_have_to_be_read_again_change_nothing_before_they_are() -> None:
    cluster = Cluster({"t": [(2, 1, 3)]})
    drain = drain_of(cluster, 1)
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED)
    cluster.configs.clear()
    plan = drain.plan()
    assert plan.status is None
    assert [command.progress for command in plan.commands] == [
        "reading the configuration of the topic"
    ]


def test_a_drained_broker_stays_so_while_a_partition_that_it_has_moves() -> None:
    cluster = Cluster({"t": [(2, 1, 3)]})
    drain = drain_of(cluster, 1)
    drain.settle()
    cluster.put("t", partition(0, (4, 2, 1, 3), (2, 1, 3), leader=2, adding=(4,), removing=(3,)))
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED)


def test_two_brokers_count_together() -> None:
    cluster = Cluster({"t": [(1, 2, 3)]})
    cluster.configs["t"] = {"min.insync.replicas": "2"}
    both = drain_of(cluster, 1, 2)
    both.settle()
    assert both.blockers == {"t-0": "BelowMinInsyncReplicas"}


def both_settle(cluster: Cluster, *drains: Drain) -> None:
    """Reconcile several drains in turn until none of them changes anything any more."""
    for _ in range(30):
        for drain in drains:
            claims = {other.name: claim_of(other.resource) for other in drains}
            drain.others = [c for name, c in claims.items() if c and name != drain.name]
        changed = [drain.round() for drain in drains]
        if not any(changed):
            return
    raise AssertionError(f"no end: {cluster.asked[-4:]}")


def test_two_drains_do_not_take_a_partition_from_each_other() -> None:
    """As two nodes are drained whose brokers have all its replicas. The second one waits."""
    cluster = Cluster({"t": [(1, 4), (4, 1)]})
    first, second = drain_of(cluster, 1, name="first"), drain_of(cluster, 4, name="second")
    both_settle(cluster, first)
    assert leaders(cluster) == [4, 4]
    both_settle(cluster, first, second)
    assert leaders(cluster) == [4, 4]
    assert first.is_in(DrainPhase.DRAINED)
    assert second.blockers == {"t-0": "BrokersCordoned", "t-1": "BrokersCordoned"}
    assert second.truth()["Reconciling"] == "True/BrokersCordoned"
    assert not second.holds(ConditionType.DRAINED)
    first.change(desiredState="Undone")
    both_settle(cluster, first, second)
    assert leaders(cluster) == [1, 1]
    assert second.is_in(DrainPhase.DRAINED)


def test_a_leader_that_stays_takes_nothing_from_another_drain() -> None:
    cluster = Cluster({"t": []})
    cluster.topics["t"] = [partition(0, (4, 1), leader=1)]
    first, second = drain_of(cluster, 1, name="first"), drain_of(cluster, 4, name="second")
    both_settle(cluster, first, second)
    assert cluster.replicas("t") == [(1, 4)]
    assert leaders(cluster) == [1]
    assert second.is_in(DrainPhase.DRAINED)
    assert first.blockers == {"t-0": "BrokersCordoned"}


def test_a_move_to_a_broker_that_another_drain_has_cordoned_since_is_given_up() -> None:
    cluster = Cluster({"t": [(4, 1), (4, 2, 1)]})
    second = drain_of(cluster, 4, name="second", concurrency={"total": 1})
    both_settle(cluster, second)
    assert leaders(cluster) == [1, 2]
    second.change(desiredState="Undone")
    cluster.stop(2)  # so its leader comes back alone
    both_settle(cluster, second)
    first = drain_of(cluster, 1, name="first")
    both_settle(cluster, first, second)
    second.change(desiredState="Drained")
    both_settle(cluster, first, second)
    assert first.is_in(DrainPhase.DRAINED)
    assert not second.holds(ConditionType.DRAINED)
    assert leaders(cluster) == [4, 4]


def test_drains_of_replicas_leave_the_order_to_drains_of_leaders() -> None:
    """While other partitions still move, there and back."""
    cluster = Cluster({"t": [(3, 4), (3, 2)]}, brokers=4)
    replicas = Drain(cluster, 3, name="replicas")
    leadership = drain_of(cluster, 1, name="leadership")
    both_settle(cluster, replicas)
    cluster.arrive(TopicPartition("t", 0))
    assert cluster.replicas("t")[0] == (1, 4)
    both_settle(cluster, replicas, leadership)
    assert leaders(cluster)[0] == 4
    assert cluster.moving(), "the other one is on its way"
    replicas.change(desiredState="Undone")
    both_settle(cluster, replicas, leadership)
    cluster.arrive(TopicPartition("t", 0))
    leadership.change(desiredState="Undone")
    both_settle(cluster, replicas, leadership)
    replicas.finish()
    assert cluster.replicas("t") == [(3, 4), (3, 2)]


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
    assert status_of(again).phase is DrainPhase.DRAINING


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
