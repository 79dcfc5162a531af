"""Brokers that do not do as they are told: kept, named, published, and forgotten in time."""

from __future__ import annotations

import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.brokers.answers import (
    process_leader_and_isr_response,
    process_stop_replica_responses,
    process_update_metadata_response,
)
from regent.controller.brokers.broker_changes import process_broker_change
from regent.controller.topics.topic_changes import process_topic_change
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import (
    LeaderAndIsrResponse,
    StopReplicaPartition,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from regent.protocol.error_codes import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    STALE_CONTROLLER_EPOCH,
)
from regent.zk_data import paths
from tests.unit.controller.world import T0, T1, World

U0 = TopicPartition("u", 0)
UNKNOWN_SERVER_ERROR = -1
UNKNOWN_TOPIC_OR_PARTITION = 3
CLUSTER_AUTHORIZATION_FAILED = 31


@pytest.fixture
def world() -> World:
    """Topics t and u on brokers 1 and 2."""
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (1, 2), 1: (2, 1)})
    world.create_topic("u", {0: (1, 2)})
    return world


@pytest.fixture
def active(world: World) -> ActiveController:
    return world.lead()


def answer(
    world: World,
    active: ActiveController,
    broker_id: int,
    errors: dict[TopicPartition, int],
    *accepted: TopicPartition,
    error_code: int = 0,
) -> None:
    """A broker answers a LeaderAndIsr."""
    named = dict.fromkeys([*errors, *accepted], False)
    response = LeaderAndIsrResponse(broker_id, error_code, errors, named)
    world.run(process_leader_and_isr_response(active, response))


def answer_stop(
    world: World, active: ActiveController, errors: dict[TopicPartition, int], *, delete: bool
) -> None:
    """Broker 1 answers a StopReplica."""
    named = {tp: StopReplicaPartition(5, delete) for tp in errors}
    response = StopReplicaResponse(1, 0, errors, named)
    world.run(process_stop_replica_responses(active, [response]))


def refused(active: ActiveController) -> dict[str, str]:
    return {
        f"{each.topic}-{each.partition} on {each.broker_id}": each.error
        for each in active.context.refusals.sample()
    }


class TestTaken:
    def test_an_error_of_one_partition_is_kept_by_name_and_published(
        self, world: World, active: ActiveController
    ) -> None:
        answer(world, active, 1, {T0: UNKNOWN_TOPIC_OR_PARTITION}, T1, U0)
        assert refused(active) == {"t-0 on 1": "UNKNOWN_TOPIC_OR_PARTITION"}
        assert active.context.refusals.of_partition(T0) == ((1, "UNKNOWN_TOPIC_OR_PARTITION"),)
        assert active.context.refusals.of_partition(T1) == ()
        assert world.driver.views == [frozenset({"t"})]

    def test_an_error_of_the_whole_request_concerns_every_partition_of_it(
        self, world: World, active: ActiveController
    ) -> None:
        answer(world, active, 2, {}, T0, T1, error_code=UNKNOWN_SERVER_ERROR)
        assert refused(active) == dict.fromkeys(("t-0 on 2", "t-1 on 2"), "UNKNOWN_SERVER_ERROR")
        assert active.context.refusals.count == 2


class TestNormalAnswers:
    @pytest.mark.parametrize("code", [STALE_CONTROLLER_EPOCH, KAFKA_STORAGE_ERROR])
    def test_an_epoch_that_is_not_new_and_a_failed_log_dir_are_no_refusals(
        self, world: World, active: ActiveController, code: int
    ) -> None:
        answer(world, active, 1, {T1: code}, T0)
        assert refused(active) == {}

    @pytest.mark.parametrize("code", [FENCED_LEADER_EPOCH, KAFKA_STORAGE_ERROR])
    @pytest.mark.parametrize("delete", [False, True])
    def test_stop_is_refused_if_a_deletion_waits_for_the_answer(
        self, world: World, active: ActiveController, code: int, *, delete: bool
    ) -> None:
        answer_stop(world, active, {T0: code}, delete=delete)
        assert list(refused(active)) == (["t-0 on 1"] if delete else [])

    def test_any_other_error_of_a_stop_is_a_refusal(
        self, world: World, active: ActiveController
    ) -> None:
        answer_stop(world, active, {T0: UNKNOWN_SERVER_ERROR}, delete=False)
        (reported,) = world.log.errors("Replicas refused by their broker")
        assert reported["request"] == "StopReplica"
        assert refused(active) == {"t-0 on 1": "UNKNOWN_SERVER_ERROR"}


class TestForgotten:
    @pytest.fixture(autouse=True)
    def _refused(self, world: World, active: ActiveController) -> None:
        answer(world, active, 1, {T0: UNKNOWN_SERVER_ERROR, U0: UNKNOWN_SERVER_ERROR})
        answer(world, active, 2, {T0: UNKNOWN_SERVER_ERROR})
        world.driver.views.clear()

    def test_when_the_broker_does_as_it_is_told(
        self, world: World, active: ActiveController
    ) -> None:
        answer(world, active, 1, {}, T0)
        assert list(refused(active)) == ["u-0 on 1", "t-0 on 2"]
        assert world.driver.views == [frozenset({"t"})]

    def test_when_it_has_stopped_the_replica(self, world: World, active: ActiveController) -> None:
        answer_stop(world, active, {T0: 0}, delete=False)
        named = {T0: StopReplicaPartition(5, False)}
        world.run(process_stop_replica_responses(active, [StopReplicaResponse(1, 0, {}, named)]))
        assert "t-0 on 1" not in refused(active)

    @pytest.mark.parametrize("event", ["stop_broker", "bounce_broker"])
    def test_when_the_life_of_the_broker_ends(
        self, world: World, active: ActiveController, event: str
    ) -> None:
        getattr(world, event)(1)
        world.run(process_broker_change(active))
        assert list(refused(active)) == ["t-0 on 2"]

    def test_when_the_topic_is_gone(self, world: World, active: ActiveController) -> None:
        world.delete(paths.topic("t"))
        world.run(process_topic_change(active))
        assert list(refused(active)) == ["u-0 on 1"]


class TestMetadata:
    def answer(self, world: World, active: ActiveController, code: int) -> None:
        world.run(process_update_metadata_response(active, UpdateMetadataResponse(1, code)))

    def test_a_broker_that_refuses_it_is_named_once_until_it_takes_it(
        self, world: World, active: ActiveController
    ) -> None:
        for _ in range(2):
            self.answer(world, active, CLUSTER_AUTHORIZATION_FAILED)
        assert active.context.refusals.metadata == {1: "CLUSTER_AUTHORIZATION_FAILED"}
        (reported,) = world.log.errors("UpdateMetadata refused")
        assert reported == {"broker": 1, "error": "CLUSTER_AUTHORIZATION_FAILED"}
        self.answer(world, active, 0)
        assert active.context.refusals.metadata == {}

    def test_a_new_life_of_the_broker_has_refused_nothing(
        self, world: World, active: ActiveController
    ) -> None:
        self.answer(world, active, CLUSTER_AUTHORIZATION_FAILED)
        world.bounce_broker(1, seen_by=active)
        assert active.context.refusals.metadata == {}
