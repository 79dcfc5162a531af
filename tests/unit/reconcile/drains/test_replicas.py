"""Draining replicas: what leaves, where it goes, what is refused, and how it is gone about."""

from __future__ import annotations

import msgspec
import pytest

from regent.admin.commands import UNTHROTTLED
from regent.resources.broker_drain_status import DrainPhase
from regent.resources.conditions import ConditionType
from tests.support.present import present
from tests.unit.reconcile.drains.draining import Cluster, Drain
from tests.unit.reconcile.requests import status_of

RACKS = ("a", "a", "b", "b", "c")


def test_the_load_is_spread_and_so_are_the_preferred_leaders() -> None:
    cluster = Cluster({"t": [(1,)] * 12}, brokers=4)
    Drain(cluster, 1).finish()
    assert sorted(cluster.replicas("t")) == [(2,)] * 4 + [(3,)] * 4 + [(4,)] * 4


def test_a_rack_counts_though_its_broker_gets_nothing() -> None:
    cluster = Cluster({"t": [(5, 3)]}, brokers=5, racks=("b", "a", "b", "a", "c"))
    cluster.cordoned = (3, 5)
    plan = Drain(cluster, 5).plan()
    assert [each.target for each in status_of(plan).partitions] == [(2, 3)]


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


def test_nothing_begins_before_the_brokers_are_cordoned() -> None:
    cluster = Cluster({"t": [(1,)]})
    drain = Drain(cluster, 1)
    plan = drain.plan()
    assert plan.commands == ()
    assert status_of(plan).plan is None
    assert status_of(plan).phase is DrainPhase.PENDING
    drain.status = status_of(plan)
    assert drain.truth()["Cordoned"] == "False/Cordoning"
    drain.settle()
    assert drain.truth()["Cordoned"] == "True/BrokersCordoned"


def test_in_client_mode_the_cordon_is_regents_own_and_says_so() -> None:
    cluster = Cluster({"t": [(1,)]})
    cluster.is_client = True
    drain = Drain(cluster, 1)
    drain.settle()
    assert drain.truth()["Cordoned"] == "True/CordonedForRegent"


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


def test_the_plan_does_not_keep_what_is_gone_when_it_grows() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1)
    drain.finish()
    del cluster.topics["t"]
    cluster.create("new", (1, 2))
    drain.finish()
    assert present(drain.status.plan).partitions == 1


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
    assert status_of(plan).started_at is not None
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


def test_brokers_of_which_nothing_is_known_may_be_none_of_the_cluster() -> None:
    drain = Drain(Cluster({"t": [(1,)]}), 14, 15)
    drain.settle()
    assert drain.truth()["Drained"] == "True/BrokersUnknown"
    assert "brokers [14, 15] are not alive and have no replicas" in drain.message


@pytest.mark.parametrize("broker_id", [1, 2])
def test_a_broker_that_was_there_is_known_after_it_has_stopped(broker_id: int) -> None:
    """Whether it had replicas or not."""
    cluster = Cluster({"t": [(1,)]})
    drain = Drain(cluster, broker_id)
    drain.finish()
    cluster.stop(broker_id)
    drain.settle()
    assert drain.truth()["Drained"] == "True/BrokersDrained"
    assert f"brokers [{broker_id}] are not alive" in drain.message


def test_a_move_of_a_topic_that_cannot_be_read_is_kept_and_goes_on_afterwards() -> None:
    cluster = Cluster({"t": [(1, 2)], "u": [(1, 2)]})
    drain = Drain(cluster, 1)
    drain.settle()
    gone = cluster.topics.pop("u")
    cluster.unreadable["u"] = "not JSON"
    drain.finish()
    cluster.topics["u"] = gone
    cluster.unreadable.clear()
    drain.finish()
    assert cluster.on(1) == 0
    assert drain.is_in(DrainPhase.DRAINED)
    assert sorted(tp.topic for tp, _ in cluster.asked) == ["t", "u"]
