"""Draining replicas: what leaves, where it goes, what is refused, and when it is done."""

from __future__ import annotations

import msgspec
import pytest

from regent.controller.commands import UNTHROTTLED, AlterPartitionReassignments
from regent.model.partition import TopicPartition
from regent.reconcile.plan import Plan
from regent.resources.broker_drain_status import DrainPhase
from regent.resources.conditions import ConditionType
from tests.unit.reconcile.drains.draining import Cluster, Drain, older
from tests.unit.reconcile.requests import partition

RACKS = ("a", "a", "b", "b", "c")


def test_every_replica_leaves_and_nothing_else_is_moved() -> None:
    cluster = Cluster({"t": [(1, 2), (2, 3), (3, 1)], "u": [(4,), (1,)]})
    drain = Drain(cluster, 1)
    drain.finish()
    assert cluster.on(1) == 0
    assert cluster.replicas("t")[1] == (2, 3)
    assert cluster.replicas("u")[0] == (4,)
    assert [len(replicas) for replicas in cluster.replicas("t")] == [2, 2, 2]
    assert len(cluster.asked) == 3
    assert drain.is_in(DrainPhase.DRAINED)
    assert drain.truth()["Drained"] == "True/BrokersDrained"


def test_several_brokers_are_drained_by_one_plan_and_nothing_moves_twice() -> None:
    cluster = Cluster({"t": [(1, 2), (2, 1), (1, 3), (3, 2)]}, brokers=6)
    drain = Drain(cluster, 1, 2)
    drain.finish()
    assert cluster.on(1, 2) == 0
    partitions = [tp for tp, _ in cluster.asked]
    assert len(partitions) == len(set(partitions)) == 4


def test_the_load_is_spread_and_so_are_the_preferred_leaders() -> None:
    cluster = Cluster({"t": [(1,)] * 12}, brokers=4)
    Drain(cluster, 1).finish()
    assert sorted(cluster.replicas("t")) == [(2,)] * 4 + [(3,)] * 4 + [(4,)] * 4


def test_topics_of_one_partition_do_not_all_go_to_the_same_broker() -> None:
    cluster = Cluster({f"t{i}": [(1,)] for i in range(9)}, brokers=4)
    Drain(cluster, 1).finish()
    assert [cluster.on(b) for b in (2, 3, 4)] == [3, 3, 3]


def test_a_replica_stays_in_its_rack_or_goes_to_one_that_is_not_used() -> None:
    cluster = Cluster({"t": [(1, 3), (1, 5), (3, 1)]}, brokers=5, racks=RACKS)
    Drain(cluster, 1).finish()
    rack_of = dict(enumerate(RACKS, start=1))
    for replicas in cluster.replicas("t"):
        assert len({rack_of[b] for b in replicas}) == 2


def test_a_rack_counts_though_its_broker_gets_nothing() -> None:
    cluster = Cluster({"t": [(5, 3)]}, brokers=5, racks=("b", "a", "b", "a", "c"))
    cluster.cordoned = (3, 5)
    plan = Drain(cluster, 5).plan()
    assert plan.status is not None
    assert [each.target for each in plan.status.partitions] == [(2, 3)]


def test_what_would_lose_a_rack_is_refused_with_every_partition_named() -> None:
    cluster = Cluster(
        {"t": [(5, 1), (1, 3), (3, 5)], "u": [(5, 3, 1)]},
        brokers=5,
        racks=("a", "a", "b", "b", "c"),
    )
    drain = Drain(cluster, 5)
    drain.settle()
    assert drain.is_in(DrainPhase.REFUSED)
    assert drain.blockers == {"u-0": "RacksLost"}
    assert drain.truth()["Stalled"] == "True/RacksLost"
    assert "from racks ['a', 'b', 'c'] to ['a', 'b']" in drain.message
    assert cluster.asked == []
    drain.change(racks="Ignore")
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)
    assert drain.status.blockers == ()


def test_too_few_brokers_are_refused_with_every_partition_named_and_waited_for() -> None:
    cluster = Cluster({"t": [(1, 2, 3), (3, 1, 2), (1,)]}, brokers=3)
    drain = Drain(cluster, 1)
    drain.settle()
    assert drain.blockers == {"t-0": "NotEnoughBrokers", "t-1": "NotEnoughBrokers"}
    assert drain.truth()["Reconciling"] == "True/NotEnoughBrokers"
    assert drain.is_in(DrainPhase.PENDING)
    assert cluster.asked == [], "partition 2 alone would not empty the broker"
    cluster.brokers[4] = msgspec.structs.replace(cluster.brokers[3], broker_id=4)
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


def test_racks_of_brokers_that_are_down_are_not_guessed() -> None:
    cluster = Cluster({"t": [(1, 3)]}, brokers=5, racks=RACKS)
    cluster.stop(3)
    drain = Drain(cluster, 1)
    drain.settle()
    assert drain.blockers == {"t-0": "BrokersUnavailable"}
    assert cluster.asked == []


def test_a_broker_that_is_down_can_be_drained() -> None:
    cluster = Cluster({"t": [(1, 2), (2, 1), (1, 3)]}, brokers=4)
    cluster.stop(1)
    drain = Drain(cluster, 1)
    drain.finish()
    assert cluster.on(1) == 0
    assert drain.is_in(DrainPhase.DRAINED)


def test_what_nothing_can_be_copied_from_waits_and_keeps_nothing_else_waiting() -> None:
    cluster = Cluster({"t": [(1,), (1, 2)]}, brokers=4)
    cluster.stop(1)
    drain = Drain(cluster, 1)
    drain.finish()
    assert cluster.replicas("t")[0] == (1,)
    assert 1 not in cluster.replicas("t")[1]
    assert drain.blockers == {"t-0": "PartitionsLeaderless"}
    assert not drain.holds(ConditionType.DRAINED)
    assert drain.truth()["Reconciling"] == "True/PartitionsLeaderless"


def test_a_partition_that_something_else_moves_goes_when_it_has_arrived() -> None:
    cluster = Cluster({"t": [(1, 2), (1, 3)]})
    elsewhere = AlterPartitionReassignments({TopicPartition("t", 0): (1, 4)})
    cluster.carry_out(elsewhere)
    drain = Drain(cluster, 1)
    drain.settle()
    assert drain.blockers == {"t-0": "ReassignmentInProgress"}
    assert [tp.partition for tp, _ in cluster.asked[1:]] == [1]
    drain.finish()
    assert cluster.on(1) == 0
    assert drain.is_in(DrainPhase.DRAINED)


def test_nothing_begins_before_the_brokers_are_cordoned() -> None:
    cluster = Cluster({"t": [(1,)]})
    drain = Drain(cluster, 1)
    plan = drain.plan()
    assert plan.commands == ()
    assert plan.status is not None
    assert plan.status.plan is None
    assert plan.status.phase is DrainPhase.PENDING
    drain.status = plan.status
    assert drain.truth()["Cordoned"] == "False/Cordoning"
    drain.settle()
    assert drain.truth()["Cordoned"] == "True/BrokersCordoned"


def test_the_plan_is_stored_before_anything_is_moved() -> None:
    cluster = Cluster({"t": [(1,), (1,)]})
    drain = Drain(cluster, 1)
    drain.cluster.cordoned = (1,)
    plan = drain.plan()
    assert plan.status_first
    assert plan.commands == ()
    assert plan.status is not None
    assert plan.status.plan is not None
    assert plan.status.plan.partitions == 2


def test_the_limits_of_concurrency_hold() -> None:
    cluster = Cluster({"t": [(1,)] * 20})
    drain = Drain(cluster, 1, concurrency={"total": 3})
    drain.settle()
    assert len(cluster.moving()) == 3
    drain.finish()
    assert max(cluster.sizes) <= 3
    assert len(cluster.asked) == 20


def test_what_leaves_is_throttled_as_the_drain_has_it_also_what_is_on_its_way() -> None:
    cluster = Cluster({"t": [(1,)] * 3})
    drain = Drain(cluster, 1, concurrency={"total": 2}, throttle={"bytesPerSecond": 10_000_000})
    drain.settle()
    drain.change(throttle={"bytesPerSecond": 20_000_000})
    drain.settle()
    assert {each.throttle for each in cluster.moving().values()} == {20_000_000}
    drain.change(throttle=None)
    drain.finish()
    assert cluster.rates == [10_000_000, 20_000_000, UNTHROTTLED, None]
    assert drain.is_in(DrainPhase.DRAINED)


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
    assert drain.status.plan is not None
    assert drain.status.plan.partitions == 2, "all of it can be undone"


def test_whatever_moment_it_is_interrupted_at_the_same_moves_are_asked_for_once() -> None:
    """Each round starts from the stored status alone."""
    cluster = Cluster({"t": [(1, 2), (2, 1), (1, 3)] * 5})
    drain = Drain(cluster, 1, concurrency={"total": 2})
    drain.settle()
    pinned = drain.status.plan
    assert pinned is not None
    drain.finish()
    assert drain.status.plan == pinned
    assert len(cluster.asked) == 15
    assert len({tp for tp, _ in cluster.asked}) == 15


def test_a_drained_broker_that_nothing_changes_about_costs_no_write() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1)
    drain.finish()
    drain.after_s = 3600
    plan = drain.plan()
    assert plan.status == drain.status
    assert (plan.commands, plan.requeue_after_s) == ((), None)


def test_brokers_without_replicas_are_drained_at_once() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 4, 17)
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED)
    assert drain.status.plan is None


def test_the_plan_does_not_keep_what_is_gone_when_it_grows() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1)
    drain.finish()
    del cluster.topics["t"]
    cluster.create("new", (1, 2))
    drain.finish()
    assert drain.status.plan is not None
    assert drain.status.plan.partitions == 1


def test_a_topic_that_is_deleted_meanwhile_is_no_obstacle() -> None:
    cluster = Cluster({"t": [(1, 2)], "u": [(1, 3)] * 3})
    drain = Drain(cluster, 1, concurrency={"total": 1})
    drain.settle()
    del cluster.topics["u"]
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


def test_a_pause_begins_nothing_more_and_keeps_the_cordon() -> None:
    cluster = Cluster({"t": [(1,)] * 4})
    drain = Drain(cluster, 1, concurrency={"total": 1})
    drain.settle()
    drain.change(desiredState="Paused")
    drain.settle()
    assert drain.is_in(DrainPhase.PAUSING)
    drain.finish()
    assert drain.is_in(DrainPhase.PAUSED)
    assert drain.truth()["Ready"] == "True/Paused"
    assert drain.truth()["Cordoned"] == "True/BrokersCordoned"
    assert not drain.holds(ConditionType.DRAINED)
    assert cluster.on(1) == 3
    drain.change(desiredState="Drained")
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


def test_a_drain_that_takes_too_long_is_stalled_and_goes_on() -> None:
    cluster = Cluster({"t": [(1,)] * 3})
    drain = Drain(cluster, 1, concurrency={"total": 1}, timeoutSeconds=60)
    drain.settle()
    assert drain.plan().requeue_after_s == 60
    drain.after_s = 61
    drain.settle()
    assert drain.truth()["Stalled"] == "True/DrainTimedOut"
    assert not drain.holds(ConditionType.DRAINED)
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)
    assert drain.truth()["Stalled"] == "False/NotStalled"


def test_nothing_moves_before_all_of_its_record_is_stored() -> None:
    """An API server with an older definition stores the plan, and not when it began."""
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1)
    assert drain.round()
    drain.status = drain.status.model_copy(update={"started_at": None})
    plan = drain.plan()
    assert plan.status_first
    assert plan.commands == ()
    assert plan.status is not None
    assert plan.status.started_at is not None
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


def test_a_move_to_a_dead_broker_waits_until_that_one_is_drained_too() -> None:
    cluster = Cluster({"t": [(1, 2)] * 4})
    drain = Drain(cluster, 1, concurrency={"total": 1})
    drain.settle()
    ((tp, target),) = cluster.asked
    (dead,) = (b for b in target if b != 2)
    cluster.stop(dead)
    drain.settle()
    assert drain.truth()["Ready"] == "False/BrokersUnavailable"
    assert cluster.asked == [(tp, target)]
    (own,) = drain.claims
    drain.others.append(older(own, brokers=(dead,)))
    drain.settle()
    assert cluster.asked[1] == (tp, (1, 2)), "it is called back"
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)
    assert cluster.on(1, dead) == 0
    drain.change(desiredState="Undone")
    drain.finish()
    assert cluster.replicas("t") == [(1, 2)] * 4


def test_a_move_to_a_broker_that_is_drained_as_well_arrives_first_if_it_is_alive() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1)
    drain.settle()
    ((_, target),) = cluster.asked
    (own,) = drain.claims
    drain.others.append(older(own, brokers=target[:1]))
    drain.settle()
    assert len(cluster.asked) == 1
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


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


def test_what_comes_back_to_a_drained_broker_has_the_whole_time_again() -> None:
    cluster = Cluster({"t": [(1,)]})
    drain = Drain(cluster, 1, timeoutSeconds=60)
    drain.finish()
    drain.after_s = 3600
    cluster.put("t", partition(0, (1,)))
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINING)
    assert drain.truth()["Stalled"] == "False/NotStalled"
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


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


def test_brokers_that_are_not_alive_are_named_since_their_ids_may_be_mistyped() -> None:
    cluster = Cluster({"t": [(1,)]})
    drain = Drain(cluster, 2, 14)
    drain.settle()
    assert drain.is_in(DrainPhase.DRAINED)
    assert "brokers [14] are not alive" in drain.message


@pytest.mark.parametrize(
    ("changes", "counts"),
    [({}, False), ({"created": "2026-06-01T10:00:00Z"}, True), ({"has_begun": True}, False)],
)
def test_of_two_drains_of_a_broker_one_counts(changes: dict[str, str], counts: bool) -> None:
    cluster = Cluster({"t": [(1,)]})
    drain = Drain(cluster, 1)
    (own,) = drain.claims
    drain.others.append(older(own, **changes))
    drain.settle()
    assert bool(cluster.asked) is counts
    if not counts:
        assert drain.truth()["Stalled"] == "True/ResourceConflict"
        assert "BrokerDrain ops/older" in drain.message


def test_a_deleted_drain_holds_nothing_up_and_moves_nothing_more() -> None:
    cluster = Cluster({"t": [(1,)] * 3})
    drain = Drain(cluster, 1)
    drain.deleted = True
    assert drain.plan() == Plan()
    assert drain.claims == ()


def test_what_a_reassignment_moves_leaves_when_that_is_over_and_nothing_else_waits() -> None:
    """Else both would want it in two places."""
    cluster = Cluster({"t": [(1, 2), (1, 3)]})
    drain = Drain(cluster, 1)
    drain.moved_by_others = {TopicPartition("t", 0): "shop/move"}
    drain.finish()
    assert [tp.partition for tp, _ in cluster.asked] == [1]
    assert drain.blockers == {"t-0": "ReassignmentInProgress"}
    assert "PartitionReassignment shop/move moves it" in drain.message
    drain.moved_by_others = {}
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


def test_a_move_that_was_planned_waits_for_a_reassignment_that_has_begun_since() -> None:
    cluster = Cluster({"t": [(1, 2), (1, 3)]})
    drain = Drain(cluster, 1, concurrency={"total": 1})
    drain.settle()
    drain.moved_by_others = {TopicPartition("t", 1): "shop/move"}
    drain.finish()
    assert [tp.partition for tp, _ in cluster.asked] == [0]
    assert "t-1: PartitionReassignment shop/move moves it" in drain.message
    drain.moved_by_others = {}
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


def test_a_move_goes_elsewhere_if_another_drain_cordons_its_target_before_it_begins() -> None:
    cluster = Cluster({"t": [(1,)] * 6})
    drain = Drain(cluster, 1, concurrency={"total": 1})
    drain.settle()
    (own,) = drain.claims
    drain.others = [older(own, brokers=(2,), created="2026-06-01T10:00:00Z")]
    begun = len(cluster.asked)
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)
    assert {target for _, target in cluster.asked[begun:]} == {(3,), (4,)}
