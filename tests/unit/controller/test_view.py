"""What the view tells of partitions and topics."""

from __future__ import annotations

from typing import Any

import pytest

from regent.controller.view import ClusterView, PartitionView, TopicView
from regent.model.cluster import Broker
from regent.model.topic_config import BrokerFacts


def partition(
    number: int = 0,
    replicas: tuple[int, ...] = (1, 2, 3),
    *,
    leader: int = 1,
    isr: tuple[int, ...] = (1, 2, 3),
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
) -> PartitionView:
    return PartitionView(number, "Online", replicas, leader, 5, isr, adding, removing)


def topic(*partitions: PartitionView) -> TopicView:
    return TopicView("t", None, partitions)


def test_a_leader_is_a_broker() -> None:
    assert partition(leader=0).has_leader
    assert not partition(leader=-1).has_leader


@pytest.mark.parametrize(
    ("isr", "adding", "expected"),
    [
        ((1, 2, 3), (), False),
        ((3, 1, 2), (), False),
        ((1, 2), (), True),
        ((1, 2), (3,), False),
        ((1,), (3,), True),
        ((), (), True),
    ],
)
def test_a_replica_that_is_only_being_added_need_not_be_in_sync(
    isr: tuple[int, ...], adding: tuple[int, ...], expected: bool
) -> None:
    assert partition(isr=isr, adding=adding).is_under_replicated is expected


def test_a_topic_counts_its_partitions() -> None:
    view = topic(partition(0), partition(1, leader=-1, isr=(2,)), partition(2, isr=(1, 2)))
    assert (view.leaderless, view.under_replicated) == (1, 2)


def test_replicas_that_are_being_added_do_not_count_yet() -> None:
    moving = partition(1, (4, 1, 2), adding=(4,), removing=(1,))
    assert topic(partition(0, (1, 2)), moving).replication_factor == 2
    assert topic().replication_factor == 0


BROKERS = {1: Broker(1, 10, ()), 2: Broker(2, 20, ())}


@pytest.mark.parametrize(
    "changes",
    [
        {"brokers": {1: Broker(1, 10, ())}},
        {"brokers": {**BROKERS, 2: Broker(2, 21, ())}},
        {"shutting_down": (2,)},
        {"cordoned": (2,)},
        {"cordoned": (77,)},
        {"unreached": (2,)},
        {"silent": (2,)},
        {"broker_facts": (BrokerFacts(broker_id=1, settings={"min.insync.replicas": "2"}),)},
    ],
    ids=[
        "gone",
        "restarted",
        "shutting down",
        "cordoned",
        "cordoned, not alive",
        "unreached",
        "silent",
        "set up otherwise",
    ],
)
def test_what_resources_wait_for_of_the_brokers(changes: dict[str, Any]) -> None:
    before = ClusterView(brokers=BROKERS)
    assert ClusterView(brokers=dict(BROKERS)).placement_terms == before.placement_terms
    assert ClusterView(**{"brokers": BROKERS, **changes}).placement_terms != before.placement_terms
