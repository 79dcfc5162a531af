"""Undoing a drain: everything is back where it was, whenever it is asked for."""

from __future__ import annotations

import pytest

from regent.model.partition import TopicPartition
from regent.resources.broker_drain_status import DrainPhase
from tests.unit.reconcile.drains.draining import Cluster, Drain
from tests.unit.reconcile.requests import partition

BEFORE = [(1, 2), (2, 3), (3, 1), (1, 4)]


@pytest.mark.parametrize("arrived", range(4))
def test_what_was_moved_goes_back_however_far_the_drain_was(arrived: int) -> None:
    cluster = Cluster({"t": BEFORE})
    drain = Drain(cluster, 1)
    drain.settle()
    for tp in tuple(cluster.moving())[:arrived]:
        cluster.arrive(tp)
    drain.change(desiredState="Undone")
    drain.settle()
    drain.finish()
    assert cluster.replicas("t") == BEFORE
    assert drain.is_in(DrainPhase.UNDONE)
    assert drain.truth()["Ready"] == "True/DrainUndone"
    assert drain.truth()["Cordoned"] == "False/CordonLifted"
    assert drain.truth()["Drained"] == "False/DrainUndone"
    assert drain.claims == (), "another drain may have the broker"


def test_what_somebody_else_has_moved_since_is_left_and_named() -> None:
    cluster = Cluster({"t": [(1, 2), (1, 3)]})
    drain = Drain(cluster, 1)
    drain.finish()
    cluster.put("t", partition(0, (4,)))
    drain.change(desiredState="Undone")
    drain.finish()
    assert cluster.replicas("t") == [(4,), (1, 3)]
    assert drain.is_in(DrainPhase.UNDONE)
    assert "t-0" in drain.message
    said = drain.message
    assert not drain.round()
    assert drain.message == said


def test_a_broker_that_is_down_is_waited_for() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1)
    drain.finish()
    broker = cluster.brokers[1]
    cluster.stop(1)
    drain.change(desiredState="Undone")
    drain.settle()
    assert drain.truth()["Reconciling"] == "True/BrokersUnavailable"
    assert "brokers [1] are not alive" in drain.message
    cluster.brokers[1] = broker
    drain.finish()
    assert cluster.replicas("t") == [(1, 2)]


def test_after_it_was_undone_it_can_be_drained_anew_by_another_plan() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1)
    drain.finish()
    drain.change(desiredState="Undone")
    drain.finish()
    assert "plan" not in drain.status.to_api()
    cluster.create("u", (1,))
    drain.change(desiredState="Drained")
    drain.finish()
    assert cluster.on(1) == 0
    assert drain.status.to_api()["plan"]["partitions"] == 2


def test_the_origin_of_what_came_later_is_recorded_too() -> None:
    cluster = Cluster({"t": [(1, 2)]})
    drain = Drain(cluster, 1)
    drain.finish()
    cluster.create("new", (2, 1))
    drain.finish()
    drain.change(desiredState="Undone")
    drain.finish()
    assert cluster.replicas("new") == [(2, 1)]
    assert cluster.replicas("t") == [(1, 2)]
    assert not cluster.moving()
    assert TopicPartition("new", 0) in {tp for tp, _ in cluster.asked}
