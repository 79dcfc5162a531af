"""What brokers refuse is sent again, in the form that helps, and not for ever."""

from __future__ import annotations

import pytest

from regent.admin.commands import Accepted
from regent.controller import events as e
from regent.controller.commands import ControlledShutdown
from regent.controller.kafka_controller import KafkaController
from regent.controller.state.causes import CauseKind
from regent.controller.state.context import ControllerContext
from regent.controller.topics.topic_commands import process_commands
from regent.model.partition import NO_EPOCH, LeaderAndIsr, TopicPartition
from regent.protocol.control_requests import LeaderAndIsrResponse, UpdateMetadataResponse
from regent.protocol.error_codes import (
    INCONSISTENT_TOPIC_ID,
    KAFKA_STORAGE_ERROR,
    UNSUPPORTED_VERSION,
)
from tests.unit.controller.world import World, active_of, leader_and_isr

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
UNKNOWN_SERVER_ERROR = -1
BACKOFF_MS = 5_000
ATTEMPTS = 6


class Cluster:
    """Partitions t-0, t-1 and u-0 on brokers 1 and 2, and a third broker; nothing is refused."""

    def __init__(self) -> None:
        self.world = World(
            refusal_repair_backoff_ms=BACKOFF_MS,
            refusal_repair_attempts=ATTEMPTS,
            auto_leader_rebalance_enable=False,
        )
        self.world.start_broker(1, 2, 3)
        self.world.create_topic("t", {0: (1, 2), 1: (2, 1)})
        self.world.create_topic("u", {0: (1, 2)})
        self.controller: KafkaController = self.world.active_controller()
        self.world.driver.take_sent()

    @property
    def context(self) -> ControllerContext:
        return active_of(self.controller).context

    def state(self, tp: TopicPartition) -> LeaderAndIsr:
        return self.world.state_of(tp)

    def answer(
        self,
        broker_id: int,
        *partitions: TopicPartition,
        error: int = 0,
        whole: int = 0,
        is_new: bool = False,
    ) -> None:
        """A broker answers a LeaderAndIsr, about each partition the same."""
        errors = dict.fromkeys(partitions, error) if error else {}
        named = dict.fromkeys(partitions, is_new)
        response = LeaderAndIsrResponse(broker_id, whole, errors, named)
        self.world.process(self.controller, e.LeaderAndIsrResponseReceived((response,)))

    def answer_metadata(self, broker_id: int, error: int = 0) -> None:
        response = UpdateMetadataResponse(broker_id, error)
        self.world.process(self.controller, e.UpdateMetadataResponseReceived((response,)))

    def shut_down(self, broker_id: int) -> None:
        """A broker asks to be shut down; its answers are still to come."""
        command = ControlledShutdown(broker_id, NO_EPOCH)
        (outcome,) = self.world.run(process_commands(active_of(self.controller), [command]))
        assert isinstance(outcome, Accepted)

    def next_attempt(self) -> int:
        """Let the time of the next attempt come. Returns how long that took, in ms."""
        timer = self.world.driver.timers.pop("refusal repair")
        self.world.driver.now_ms += timer.after_ms
        self.world.driver.take_sent()
        self.world.process(self.controller, timer.event)
        return timer.after_ms

    @property
    def nothing_is_planned(self) -> bool:
        return "refusal repair" not in self.world.driver.timers

    def sent(self) -> dict[int, dict[TopicPartition, bool]]:
        """LeaderAndIsr since the last attempt began."""
        return leader_and_isr(self.world.driver.sent)

    def metadata_receivers(self) -> list[int]:
        return [b for sent in self.world.driver.sent for b in sent.update_metadata_receivers]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


class TestAPartition:
    def test_gets_a_new_leader_epoch_which_all_of_its_replicas_are_sent(
        self, cluster: Cluster
    ) -> None:
        before = cluster.state(T0)
        cluster.answer(2, T0, error=UNKNOWN_SERVER_ERROR)
        assert cluster.state(T0) == before
        assert cluster.next_attempt() == BACKOFF_MS
        after = cluster.state(T0)
        assert after.leader_epoch == before.leader_epoch + 1
        assert (after.leader, after.isr) == (before.leader, before.isr)
        assert cluster.sent() == {1: {T0: False}, 2: {T0: False}}
        change = cluster.context.trail.partitions[T0].changes[-1]
        assert change.cause.kind is CauseKind.REQUEST_REFUSED
        assert [broker.broker_id for broker in change.cause.brokers] == [2]
        cluster.answer(2, T0)
        assert cluster.context.refusals.count == 0
        assert cluster.nothing_is_planned

    def test_that_was_new_on_its_broker_is_still_new_there(self, cluster: Cluster) -> None:
        cluster.answer(2, T0, error=UNKNOWN_SERVER_ERROR, is_new=True)
        cluster.next_attempt()
        assert cluster.sent() == {1: {T0: False}, 2: {T0: True}}

    @pytest.mark.parametrize("step_ms", [-3_600_000, -BACKOFF_MS // 2, 3_600_000])
    def test_is_tried_again_in_time_though_the_clock_is_set(
        self, cluster: Cluster, step_ms: int
    ) -> None:
        before = cluster.state(T0)
        cluster.answer(2, T0, error=UNKNOWN_SERVER_ERROR)
        cluster.world.driver.now_ms += step_ms
        cluster.answer(2, U0, error=UNKNOWN_SERVER_ERROR)
        waited_ms = 0
        while cluster.state(T0) == before:
            waited_ms += cluster.next_attempt()
            assert waited_ms <= 2 * BACKOFF_MS

    def test_is_tried_again_after_growing_waits_and_then_given_up(self, cluster: Cluster) -> None:
        waits = []
        for _ in range(ATTEMPTS):
            cluster.answer(1, T0, error=UNKNOWN_SERVER_ERROR)
            waits.append(cluster.next_attempt())
        assert waits == [BACKOFF_MS * 2**n for n in range(ATTEMPTS)]
        for _ in range(2):
            cluster.answer(1, T0, error=UNKNOWN_SERVER_ERROR)
        assert cluster.nothing_is_planned
        (given_up,) = (
            r.fields
            for r in cluster.world.log.records
            if r.message.startswith("Refused requests not repeated any more")
        )
        assert given_up == {
            "broker": 1,
            "attempts": ATTEMPTS,
            "count": 1,
            "examples": ["t-0"],
        }
        assert cluster.state(T0).leader_epoch == ATTEMPTS

    @pytest.mark.parametrize(
        "error", [KAFKA_STORAGE_ERROR, INCONSISTENT_TOPIC_ID, UNSUPPORTED_VERSION]
    )
    def test_is_left_alone_where_no_repetition_helps(self, cluster: Cluster, error: int) -> None:
        cluster.answer(1, T0, error=error)
        assert cluster.nothing_is_planned

    def test_that_is_to_be_deleted_gets_no_new_epoch(self, cluster: Cluster) -> None:
        before = cluster.state(T0)
        cluster.answer(1, T0, error=UNKNOWN_SERVER_ERROR)
        cluster.context.queue_topic_for_deletion("t")
        cluster.next_attempt()
        assert cluster.state(T0) == before

    @pytest.mark.parametrize("happens", ["stop_broker", "bounce_broker"])
    def test_of_a_broker_whose_life_has_ended_needs_nothing(
        self, cluster: Cluster, happens: str
    ) -> None:
        cluster.answer(2, T0, error=UNKNOWN_SERVER_ERROR)
        getattr(cluster.world, happens)(2)
        cluster.world.deliver(cluster.controller)
        epoch = cluster.state(T0).leader_epoch
        cluster.next_attempt()
        assert cluster.sent() == {}
        assert cluster.state(T0).leader_epoch == epoch

    @pytest.mark.parametrize("whole", [False, True])
    def test_of_a_broker_that_shuts_down_is_not_started_again(
        self, cluster: Cluster, *, whole: bool
    ) -> None:
        """Its replica was stopped, and would be in the ISR again when the broker ends."""
        code = UNKNOWN_SERVER_ERROR
        cluster.answer(2, T0, error=0 if whole else code, whole=code if whole else 0)
        cluster.shut_down(2)
        stopped = cluster.state(T0)
        assert stopped.isr == (1,)
        cluster.next_attempt()
        assert cluster.sent() == {}
        cluster.answer(2, T0)
        assert cluster.state(T0) == stopped


class TestAWholeRequest:
    def test_is_sent_again_as_it_was_and_to_nobody_else(self, cluster: Cluster) -> None:
        before = cluster.state(T0), cluster.state(T1)
        cluster.answer(1, T0, T1, whole=UNKNOWN_SERVER_ERROR, is_new=True)
        cluster.next_attempt()
        assert cluster.sent() == {1: {T0: True, T1: True}}
        assert cluster.metadata_receivers() == [1]
        assert (cluster.state(T0), cluster.state(T1)) == before

    def test_that_may_have_been_done_in_part_is_followed_by_new_epochs_once_it_is_accepted(
        self, cluster: Cluster
    ) -> None:
        """A broker ignores the epoch that it has taken over before it failed."""
        cluster.answer(1, T0, T1, whole=UNKNOWN_SERVER_ERROR)
        cluster.next_attempt()
        cluster.world.driver.take_sent()
        cluster.answer(1, T0, T1)
        assert [cluster.state(tp).leader_epoch for tp in (T0, T1)] == [1, 1]
        assert cluster.sent()[1] == {T0: False, T1: False}
        cluster.answer(1, T0, T1)
        assert [cluster.state(tp).leader_epoch for tp in (T0, T1)] == [1, 1]
        assert cluster.context.refusal_repairs.on_broker(1) == {}


class TestMetadata:
    def test_is_sent_again_in_full_to_the_broker_that_refused_it(self, cluster: Cluster) -> None:
        cluster.answer_metadata(3, UNKNOWN_SERVER_ERROR)
        cluster.next_attempt()
        (sent,) = cluster.world.driver.sent
        assert sent.update_metadata_receivers == (3,)
        assert list(sent.partitions) == list(cluster.context.cluster.leadership)
        assert sent.leader_and_isr == {}
        cluster.answer_metadata(3)
        assert cluster.context.refusal_repairs.on_broker(3) == {}

    def test_is_not_sent_again_for_ever(self, cluster: Cluster) -> None:
        for _ in range(ATTEMPTS):
            cluster.answer_metadata(3, UNKNOWN_SERVER_ERROR)
            cluster.next_attempt()
        cluster.answer_metadata(3, UNKNOWN_SERVER_ERROR)
        assert cluster.nothing_is_planned


def test_what_is_refused_later_waits_for_its_own_time(cluster: Cluster) -> None:
    cluster.answer(1, T0, error=UNKNOWN_SERVER_ERROR)
    cluster.world.driver.now_ms += 2_000
    cluster.answer(1, U0, error=UNKNOWN_SERVER_ERROR)
    assert cluster.next_attempt() == BACKOFF_MS - 2_000
    assert cluster.sent()[1] == {T0: False}
    assert cluster.next_attempt() == 2_000
    assert cluster.sent()[1] == {U0: False}
