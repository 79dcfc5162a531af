"""Deletion of topics, from the queue until nothing is left."""

from __future__ import annotations

import msgspec
import pytest

from regent.controller import effects
from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers
from regent.controller.state.states import ReplicaState
from regent.model.errors import (
    ControllerMovedError,
    ZooKeeperUnavailableError,
)
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.protocol.control_requests import StopReplicaPartition, StopReplicaResponse
from regent.runtime.view_publisher import topic_view
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.unit.controller.driving import once
from tests.unit.controller.world import T0, T1, World, stop_replica

BROKERS = (1, 2, 3)


def cluster(*topics: str, **settings: bool) -> tuple[World, ActiveController]:
    """Topics of two partitions, on brokers 1 and 2, and 2 and 3, with a configuration."""
    world = World(**settings)
    world.start_broker(*BROKERS)
    for topic in topics or ("t",):
        world.create_led_topic(topic, {0: (1, 2), 1: (2, 3)}, config={"retention.ms": "1"})
    active = world.fail_over()
    world.driver.take_sent()
    return world, active


def answer(
    world: World,
    active: ActiveController,
    broker_id: int,
    *partitions: TopicPartition,
    error_code: int = 0,
    partition_errors: dict[TopicPartition, int] | None = None,
    delete: bool = True,
) -> None:
    response = StopReplicaResponse(
        broker_id,
        error_code,
        partition_errors or {},
        {tp: StopReplicaPartition(-2, delete) for tp in partitions},
    )
    world.run(answers.process_stop_replica_responses(active, [response]))


def replica_states(active: ActiveController, topic: str = "t") -> dict[str, str]:
    context = active.context
    return {
        f"{tp.partition} on {b}": context.replica_state(b, tp).name
        for tp in context.cluster.partitions_of(topic)
        for b in context.cluster.replicas(tp)
    }


class TestStart:
    def test_everybody_forgets_the_partitions_before_replicas_are_stopped(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)
        first, *others = world.driver.sent
        assert tuple(first.partitions) == (T0, T1)
        assert first.deleted_partitions == {T0, T1}
        assert first.update_metadata_receivers == BROKERS
        assert first.stop_replica == {}
        assert stop_replica(others)

    def test_live_replicas_are_first_stopped_and_then_deleted_without_an_epoch_check(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)
        hosted = [(1, T0), (2, T0), (2, T1), (3, T1)]
        assert stop_replica(world.driver.sent) == [
            *((broker_id, tp, -2, False) for broker_id, tp in hosted),
            *((broker_id, tp, -2, True) for broker_id, tp in hosted),
        ]
        assert set(replica_states(active).values()) == {"DELETION_STARTED"}

    def test_a_partition_that_was_never_born_is_deleted_too(self) -> None:
        world, active = cluster(deletion_waits_for_brokers=True)
        world.create_topic("unborn", {0: (9,)}, seen_by=active)
        world.mark_for_deletion("unborn", seen_by=active)
        assert replica_states(active, "unborn") == {"0 on 9": "DELETION_INELIGIBLE"}
        assert not active.context.partition_states.keys() & {TopicPartition("unborn", 0)}


class TestCompletion:
    def finish(self, world: World, active: ActiveController) -> None:
        answer(world, active, 1, T0)
        answer(world, active, 2, T0, T1)
        answer(world, active, 3, T1)

    def test_when_the_last_replica_is_gone_nothing_is_left(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)
        self.finish(world, active)
        assert not world.exists(paths.topic("t"))
        assert not world.exists(paths.topic_config("t"))
        assert not world.exists(paths.delete_topic("t"))
        assert not active.context.cluster.has_topic("t")
        assert world.driver.views[-1] == frozenset({"t"})

    def test_a_topic_created_anew_as_soon_as_it_can_be_keeps_its_configuration(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)

        def create_as_soon_as_possible(_: object) -> None:
            """What Kafka's tools do once the topic node is gone: configuration, then topic."""
            if not world.exists(paths.topic("t")):
                world.driver.after = world.driver.before = lambda _: None
                world.create_topic("t", {0: (1,)}, config={"retention.ms": "2"})

        world.driver.after = world.driver.before = create_as_soon_as_possible
        self.finish(world, active)
        create_as_soon_as_possible(None)
        assert world.exists(paths.topic("t"))
        config = world.node(paths.topic_config("t"))
        assert b"retention.ms" in config.data
        assert not world.exists(paths.delete_topic("t"))

    def test_a_topic_created_anew_while_the_answer_was_lost_stays(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)

        def created_anew() -> None:
            world.create_topic("t", {0: (1,)}, config={"retention.ms": "2"})
            raise ZooKeeperUnavailableError("connection lost")

        world.driver.after = once(zk_effects.Multi, created_anew)
        self.finish(world, active)
        assert world.exists(paths.topic("t"))
        assert world.exists(paths.topic_config("t"))
        assert not active.context.cluster.has_topic("t")

    def test_one_topic_that_is_in_the_way_does_not_keep_the_others(self) -> None:
        world, active = cluster("t", "u")
        world.mark_for_deletion("t", "u", seen_by=active)
        world.driver.before = once(zk_effects.Multi, lambda: world.put(paths.topic("u") + "/new"))
        for broker_id in BROKERS:
            answer(world, active, broker_id, *active.context.replica_states_on(broker_id))
        assert list(active.context.cluster.topics) == ["u"]
        assert world.exists(paths.delete_topic("u"))
        assert len(world.log.errors("Topic nodes not deleted")) == 1

    def test_a_node_that_appears_meanwhile_keeps_the_topic_in_the_queue(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)
        world.driver.before = once(
            zk_effects.Write, lambda: world.put(paths.topic_partitions("t") + "/7/state")
        )
        self.finish(world, active)
        assert world.exists(paths.delete_topic("t"))
        assert world.exists(paths.topic_config("t"))
        assert active.context.is_topic_queued_for_deletion("t")
        world.run(active.deletions.resume())
        assert not world.exists(paths.topic("t"))
        assert not world.exists(paths.delete_topic("t"))

    def test_a_controller_that_has_moved_removes_nothing(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)
        world.elect_rival()
        tree = world.zookeeper.dump()
        answer(world, active, 1, T0)
        answer(world, active, 2, T0, T1)
        with pytest.raises(ControllerMovedError):
            answer(world, active, 3, T1)
        assert world.zookeeper.dump() == tree


class TestObstacles:
    def test_a_state_with_a_higher_controller_epoch_keeps_no_topic(self) -> None:
        """As after a backup of ZooKeeper was restored, or an edit by hand."""
        world, active = cluster()
        world.set_state(T0, 1, (1, 2), leader_epoch=7, controller_epoch=1_000)
        self.delete_whole_topic(world, active)
        assert not world.exists(paths.topic("t"))

    def delete_whole_topic(self, world: World, active: ActiveController) -> None:
        world.mark_for_deletion("t", seen_by=active)
        for broker_id in BROKERS:
            answer(world, active, broker_id, *active.context.replica_states_on(broker_id))

    def test_a_dead_broker_puts_the_topic_off_but_live_replicas_go(self) -> None:
        world, active = cluster()
        world.stop_broker(3, seen_by=active)
        world.mark_for_deletion("t", seen_by=active)
        assert replica_states(active) == {
            "0 on 1": "DELETION_STARTED",
            "0 on 2": "DELETION_STARTED",
            "1 on 2": "DELETION_STARTED",
            "1 on 3": "DELETION_INELIGIBLE",
        }
        assert list(active.context.topics_ineligible_for_deletion) == ["t"]

    @pytest.mark.parametrize(("error_code", "errors"), [(29, {}), (0, {T1: -1})])
    def test_a_refused_deletion_waits_for_the_broker(
        self, error_code: int, errors: dict[TopicPartition, int]
    ) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)
        answer(world, active, 1, T0)
        answer(world, active, 2, T0, T1)
        answer(world, active, 3, T1, error_code=error_code, partition_errors=errors)
        assert list(active.context.topics_ineligible_for_deletion) == ["t"]
        assert world.exists(paths.topic("t"))
        assert len(world.log.errors("Replicas not deleted")) == 1

    @pytest.mark.parametrize(
        "past",
        [{"controller_epoch": 0}, {"broker_epoch": 1}, {"error_code": 77}],
        ids=["of a former term", "of a former life of the broker", "the broker has bounced"],
    )
    def test_an_answer_of_the_past_neither_completes_nor_fails_it(
        self, past: dict[str, int]
    ) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)
        answer(world, active, 1, T0)
        answer(world, active, 2, T0, T1)
        answered = StopReplicaResponse(3, 0, {}, {T1: StopReplicaPartition(-2, delete=True)})
        response = msgspec.structs.replace(answered, **past)
        world.run(answers.process_stop_replica_responses(active, [response]))
        assert replica_states(active)["1 on 3"] == "DELETION_STARTED"
        assert not active.context.topics_ineligible_for_deletion
        assert world.exists(paths.topic("t"))

    def test_of_one_answer_some_replicas_may_be_gone_and_others_not(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)
        answer(world, active, 2, T0, T1, partition_errors={T0: 56})
        assert replica_states(active)["0 on 2"] == "DELETION_INELIGIBLE"
        assert replica_states(active)["1 on 2"] == "DELETION_SUCCESSFUL"

    def test_a_topic_under_reassignment_is_deleted_wherever_it_has_replicas(self) -> None:
        world, active = cluster()
        under_way = ReplicaAssignment((1, 3, 2), adding_replicas=(3,), removing_replicas=(2,))
        active.context.set_assignment(T0, under_way)
        active.context.set_replica_state(3, T0, ReplicaState.NEW)
        world.mark_for_deletion("t", seen_by=active)
        assert not active.context.cluster.partitions_being_reassigned
        deleted = [b for b, tp, _, d in stop_replica(world.driver.sent) if d and tp == T0]
        assert deleted == [1, 3, 2]

    def test_the_return_of_the_broker_finishes_what_was_put_off(self) -> None:
        world, active = cluster(deletion_waits_for_brokers=True)
        world.stop_broker(3, seen_by=active)
        world.mark_for_deletion("t", seen_by=active)
        answer(world, active, 1, T0)
        answer(world, active, 2, T0, T1)
        assert replica_states(active)["1 on 3"] == "OFFLINE"
        world.driver.take_sent()
        world.start_broker(3, seen_by=active)
        assert stop_replica(world.driver.sent)[-1] == (3, T1, -2, True)
        answer(world, active, 3, T1)
        assert not world.exists(paths.topic("t"))


class TestView:
    def _published(self, world: World) -> list[frozenset[str] | None]:
        performed = world.driver.performed
        return [e.topics for e in performed if isinstance(e, effects.PublishView)]

    def _awaited(self, active: ActiveController) -> tuple[int, ...]:
        view = topic_view(active.context, "t")
        assert view is not None
        return view.deletion_waits_for

    def test_each_answer_of_a_broker_is_published_while_others_are_awaited(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)
        assert self._awaited(active) == (1, 2, 3)
        world.driver.performed.clear()
        answer(world, active, 1, T0)
        assert self._published(world) == [frozenset({"t"})]
        assert self._awaited(active) == (2, 3)
