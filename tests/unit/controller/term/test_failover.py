"""Becoming the controller: what is loaded, in which order, and what is put right."""

from __future__ import annotations

import pytest

from regent.controller import effects
from regent.controller.events import TopicDeletion
from regent.controller.state.states import PartitionState, ReplicaState
from regent.model.errors import UnexpectedZooKeeperError
from regent.model.partition import (
    LeaderAndIsr,
    TopicPartition,
)
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from regent.zk_data.operations import Create
from tests.support.broker_znodes import encode_isr_change_notification, encode_log_dir_event
from tests.unit.controller.world import T0, T1, World, leader_and_isr, stop_replica

UNCLEAN = "unclean.leader.election.enable"


def cluster(*broker_ids: int, protocol: tuple[int, int] = (3, 9), **settings: object) -> World:
    world = World(**settings)
    world.driver.inter_broker_protocol = protocol
    world.start_broker(*broker_ids)
    return world


def reading(world: World, path: str) -> int:
    """Position of the first effect after the election that reads a node, or its children."""
    reads = (zk_effects.ReadData, zk_effects.ReadChildren)
    performed = world.driver.performed
    elected = next(i for i, e in enumerate(performed) if isinstance(e, zk_effects.Multi))
    return next(
        i
        for i, e in enumerate(performed)
        if i > elected and isinstance(e, reads) and path in e.paths
    )


def writing(world: World, path: str) -> int:
    """Position of the first effect that writes a node."""
    return next(
        i
        for i, e in enumerate(world.driver.performed)
        if isinstance(e, zk_effects.Write) and any(op.path == path for op in e.operations)
    )


class TestOrder:
    @pytest.fixture
    def world(self) -> World:
        """Broker 3, the leader of t-0, has died; everything that can wait for a controller does."""
        world = cluster(1, 2)
        world.create_led_topic("t", {0: (3, 1), 1: (1, 2)})
        world.create_topic("marked", {0: (1,)})
        world.mark_for_deletion("marked")
        world.put(
            paths.isr_change_notification("isr_change_0000000001"),
            encode_isr_change_notification([T1]),
        )
        world.put(
            paths.log_dir_event_notification("log_dir_event_0000000001"), encode_log_dir_event(1)
        )
        world.fail_over()
        return world

    def test_notifications_are_dropped_before_what_they_announce_is_read(
        self, world: World
    ) -> None:
        dropped = writing(world, paths.isr_change_notification("isr_change_0000000001"))
        assert dropped < reading(world, paths.BROKER_TOPICS)
        assert dropped < reading(world, paths.partition_state(T0))
        assert world.zookeeper.children(paths.ISR_CHANGE_NOTIFICATION) == ()
        assert world.zookeeper.children(paths.LOG_DIR_EVENT_NOTIFICATION) == ()

    def test_the_list_of_live_brokers_is_sent_before_anything_that_may_take_long(
        self, world: World
    ) -> None:
        """It is what makes brokers refuse the former controller."""
        sent = next(
            i for i, e in enumerate(world.driver.performed) if isinstance(e, effects.SendRequests)
        )
        asked = next(
            i
            for i, e in enumerate(world.driver.performed)
            if isinstance(e, effects.InterBrokerProtocol)
        )
        assert sent < asked
        assert sent < reading(world, paths.BROKER_TOPICS)

    def test_then_every_broker_gets_all_its_replicas_at_once(self, world: World) -> None:
        second = world.driver.sent[1]
        assert second.leader_and_isr == {1: {T0: False, T1: False}, 2: {T1: False}}
        assert second.update_metadata_receivers == (1, 2)

    def test_then_dead_replicas_leave_the_isrs_and_at_last_leaders_are_elected(
        self, world: World
    ) -> None:
        third, fourth = world.driver.sent[2:4]
        assert third.partitions[T0].leader_and_isr == LeaderAndIsr(-1, 6, (1,), 1, 1)
        assert fourth.partitions[T0].leader_and_isr == LeaderAndIsr(1, 7, (1,), 1, 2)
        assert world.state(T0) == LeaderAndIsr(1, 7, (1,), 1, 2)


class TestLoading:
    def test_what_has_a_leader_is_online_and_what_never_had_one_is_born(self) -> None:
        world = cluster(1, 2)
        world.create_topic("t", {0: (1, 2), 1: (2, 1)})
        world.set_state(T0, 1, (1, 2), leader_epoch=5)
        context = world.fail_over().context
        assert context.partition_state(T0) is PartitionState.ONLINE
        assert context.partition_state(T1) is PartitionState.ONLINE
        assert world.state(T0) == LeaderAndIsr(1, 5, (1, 2), 0, 0)
        assert world.state(T1) == LeaderAndIsr(2, 0, (2, 1), 1, 0)
        assert leader_and_isr(world.driver.sent)[1] == {T0: False, T1: True}

    def test_an_empty_zookeeper_gets_what_a_broker_would_create(self) -> None:
        world = cluster()
        for path in reversed(paths.PERSISTENT_PATHS):
            world.delete(path)
        world.fail_over()
        assert all(world.exists(path) for path in paths.PERSISTENT_PATHS)

    def test_a_missing_path_that_cannot_be_created_is_an_error(self) -> None:
        """It could not be watched: a controller would never hear of what appears below it."""
        world = World()
        world.start_broker(1)
        world.delete("/admin")
        world.outsider.multi([Create("/admin", ephemeral=True)])
        with pytest.raises(UnexpectedZooKeeperError, match=paths.DELETE_TOPICS):
            world.fail_over()

    def test_malformed_nodes_are_skipped_and_everything_else_is_served(self) -> None:
        world = cluster(1, 2)
        world.put(paths.broker_id(7), b"garbage")
        world.put(paths.topic("broken"), b"\xff")
        world.put(paths.topic("half"), b'{"version":2,"partitions":{"0":[1],"x":[2]}}')
        world.create_topic("t", {0: (1, 2), 1: (2, 1)})
        world.set_state(T0, 1, (1, 2), leader_epoch=5)
        world.put(paths.partition_state(T1), b'{"leader":"two"}')
        world.put(paths.FEATURE, b"[]")
        world.put(paths.broker_config(None), b"[]")
        active = world.fail_over()
        context = active.context
        assert list(context.cluster.brokers) == [1, 2]
        assert list(context.cluster.topics) == ["half", "t"]
        assert context.partition_state(T0) is PartitionState.ONLINE
        assert context.partition_state(T1) is PartitionState.OFFLINE
        assert context.offline_partition_count == 1
        assert context.partition_state(TopicPartition("half", 0)) is PartitionState.ONLINE
        errors = str([r.fields for r in world.log.records if r.level == "error"])
        for path in (
            paths.broker_id(7),
            paths.topic("broken"),
            paths.topic("half"),
            paths.partition_state(T1),
            paths.FEATURE,
            paths.broker_config(None),
        ):
            assert path in errors

    @pytest.mark.parametrize(
        ("static", "dynamic", "expected"),
        [(False, None, False), (True, None, True), (False, "true", True), (True, "false", False)],
    )
    def test_the_dynamic_default_wins_over_the_settings(
        self, static: bool, dynamic: str | None, expected: bool
    ) -> None:
        world = cluster(unclean_leader_election_enable=static)
        if dynamic is not None:
            config = f'{{"version":1,"config":{{"{UNCLEAN}":"{dynamic}"}}}}'
            world.put(paths.broker_config(None), config.encode())
        assert world.fail_over().context.cluster.unclean_leader_election_default is expected


class TestDeletions:
    def test_a_deletion_that_ended_at_the_topics_node_is_completed(self) -> None:
        """Kafka's controllers remove node, configuration and marker one after the other."""
        world = cluster(1)
        world.put(paths.topic_config("t"), encode_entity_config({"retention.ms": "1"}))
        world.mark_for_deletion("t")
        world.fail_over()
        assert not world.exists(paths.topic_config("t"))
        assert not world.exists(paths.delete_topic("t"))

    @pytest.mark.parametrize(("marked", "again"), [(["t"], []), (["t", "new"], [TopicDeletion()])])
    def test_a_marker_of_an_unknown_topic_is_looked_at_once_more(
        self, marked: list[str], again: list[TopicDeletion]
    ) -> None:
        """The topic may have been created and marked since the topics were read."""
        world = cluster(1)
        world.create_topic("t", {0: (1,)})
        world.mark_for_deletion(*marked)
        world.fail_over()
        assert world.driver.enqueued == again

    def test_a_marked_topic_is_deleted_where_the_predecessor_stopped(self) -> None:
        world = cluster(1, 2)
        world.create_topic("t", {0: (1, 2)})
        world.set_state(T0, -1, (2,), leader_epoch=7)
        world.mark_for_deletion("t")
        context = world.fail_over().context
        assert {s[0] for s in stop_replica(world.driver.sent) if s[3]} == {1, 2}
        assert context.replica_state(1, T0) is ReplicaState.DELETION_STARTED
        assert context.offline_partition_count == 0
