"""Draining replicas while something else moves them, or drains other brokers."""

from __future__ import annotations

import pytest

from regent.admin.commands import AlterPartitionReassignments
from regent.model.partition import TopicPartition
from regent.resources.broker_drain_status import DrainPhase
from tests.unit.reconcile.drains.draining import Cluster, Drain, older


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
