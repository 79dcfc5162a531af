"""A leader that has a replica of another topic of that name does not keep the partition."""

from __future__ import annotations

import pytest

from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.controller.state.causes import CauseKind
from regent.controller.state.context import ControllerContext
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.control_requests import LeaderAndIsrResponse
from regent.protocol.error_codes import INCONSISTENT_TOPIC_ID, STALE_CONTROLLER_EPOCH
from regent.zk_data import paths
from tests.unit.controller.world import T0, World, active_of, leader_and_isr

UNKNOWN_SERVER_ERROR = -1


class Cluster:
    """Partition t-0 on brokers 1, 2 and 3, all in sync, led by 1."""

    def __init__(self) -> None:
        self.world = World(auto_leader_rebalance_enable=False)
        self.world.driver.inter_broker_protocol = (3, 9)
        self.world.start_broker(1, 2, 3)
        self.world.create_led_topic("t", {0: (1, 2, 3)})
        self.controller: KafkaController = self.world.active_controller()
        self.world.driver.take_sent()

    @property
    def context(self) -> ControllerContext:
        return active_of(self.controller).context

    @property
    def state(self) -> LeaderAndIsr:
        return self.world.state_of(T0)

    def answer(self, broker_id: int, error: int = 0, *, whole: int = 0) -> None:
        errors = {T0: error} if error else {}
        response = LeaderAndIsrResponse(broker_id, whole, errors, {T0: False})
        self.world.process(self.controller, e.LeaderAndIsrResponseReceived((response,)))

    def sent(self) -> dict[int, dict[TopicPartition, bool]]:
        return leader_and_isr(self.world.driver.take_sent())


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_another_member_of_the_isr_leads_once_it_has_said_that_it_hosts_the_topic(
    cluster: Cluster,
) -> None:
    before = cluster.state
    cluster.answer(1, INCONSISTENT_TOPIC_ID)
    assert cluster.state == before
    assert cluster.sent() == {2: {T0: False}, 3: {T0: False}}
    cluster.answer(2, STALE_CONTROLLER_EPOCH)
    assert (cluster.state.leader, cluster.state.isr) == (2, (2, 3))
    assert cluster.state.leader_epoch == before.leader_epoch + 1
    assert cluster.sent() == {1: {T0: False}, 2: {T0: False}, 3: {T0: False}}
    change = cluster.context.trail.partitions[T0].changes[-1]
    assert change.cause.kind is CauseKind.LEADER_OF_FORMER_TOPIC
    assert [broker.broker_id for broker in change.cause.brokers] == [1]


def test_the_former_leader_that_goes_on_refusing_changes_nothing_more(cluster: Cluster) -> None:
    cluster.answer(1, INCONSISTENT_TOPIC_ID)
    cluster.answer(2)
    after = cluster.state
    cluster.sent()
    cluster.answer(1, INCONSISTENT_TOPIC_ID)
    cluster.answer(2)
    cluster.answer(3)
    assert cluster.state == after
    assert cluster.sent() == {}
    assert cluster.context.refusals.of_partition(T0) == ((1, "INCONSISTENT_TOPIC_ID"),)


def test_where_all_refuse_the_id_is_wrong_and_the_leader_stays(cluster: Cluster) -> None:
    """They go on under the former epoch: another leader would be one in ZooKeeper only."""
    before = cluster.state
    for broker_id in (1, 2, 3):
        cluster.answer(broker_id, INCONSISTENT_TOPIC_ID)
    assert cluster.state == before
    cluster.sent()
    cluster.answer(1, INCONSISTENT_TOPIC_ID)
    assert cluster.sent() == {}


def test_followers_that_refuse_first_are_not_asked_again_and_do_not_stay_in_the_isr(
    cluster: Cluster,
) -> None:
    cluster.answer(2, INCONSISTENT_TOPIC_ID)
    assert cluster.sent() == {}
    cluster.answer(1, INCONSISTENT_TOPIC_ID)
    assert cluster.sent() == {3: {T0: False}}
    cluster.answer(3)
    assert (cluster.state.leader, cluster.state.isr) == (3, (3,))


def test_who_is_not_in_sync_does_not_lead_whatever_it_hosts(cluster: Cluster) -> None:
    cluster.world.set_state(T0, 1, (1,), leader_epoch=6)
    cluster.controller = cluster.world.active_controller()
    cluster.sent()
    before = cluster.state
    cluster.answer(1, INCONSISTENT_TOPIC_ID)
    cluster.answer(2)
    assert cluster.state == before
    assert cluster.sent() == {}


@pytest.mark.parametrize(
    ("error", "whole"),
    [(UNKNOWN_SERVER_ERROR, 0), (0, UNKNOWN_SERVER_ERROR)],
)
def test_what_a_repetition_may_heal_is_no_reason(cluster: Cluster, error: int, whole: int) -> None:
    before = cluster.state
    cluster.answer(1, error, whole=whole)
    cluster.answer(2)
    assert cluster.state == before


def test_an_election_that_failed_is_tried_again_with_the_next_watch_check(cluster: Cluster) -> None:
    """No answer comes any more that would say once more that somebody else hosts the topic."""
    cluster.answer(1, INCONSISTENT_TOPIC_ID)
    cluster.world.put(paths.partition_state(T0), b"{")
    cluster.answer(2)
    cluster.answer(3)
    assert cluster.world.log.errors("Leaders not replaced that host another topic of that name")
    cluster.world.set_state(T0, 1, (1, 2, 3), leader_epoch=5)
    cluster.sent()
    cluster.world.process(cluster.controller, e.WatchCheck())
    assert cluster.sent() == {2: {T0: False}, 3: {T0: False}}
    cluster.answer(2)
    assert (cluster.state.leader, cluster.state.isr) == (2, (2, 3))
    cluster.sent()
    cluster.world.process(cluster.controller, e.WatchCheck())
    assert cluster.sent() == {}
