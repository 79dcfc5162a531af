"""Topics come and grow: what a change of the list or of a node leads to."""

from __future__ import annotations

import uuid

import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.topics.topic_changes import (
    process_partition_modifications,
    process_topic_change,
    process_topic_deletion,
)
from regent.model.partition import LeaderAndIsr, ReplicaAssignment
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.deletion_marker import encode_deletion_marker
from regent.zk_data.operations import WatchedEvent
from tests.unit.controller.driving import once
from tests.unit.controller.world import T0, T1, World, leader_and_isr

SKIPPED = "Malformed topics or partitions of topics skipped"


def cluster(**settings: object) -> tuple[World, ActiveController]:
    """Three brokers and a controller that has loaded everything."""
    world = World(**settings)
    world.start_broker(1, 2, 3)
    return world, world.lead()


def watched(world: World) -> list[WatchedEvent]:
    return [w for w in world.driver.client.take_events() if isinstance(w, WatchedEvent)]


class TestNewTopics:
    def test_a_new_topic_gets_leaders(self) -> None:
        world, active = cluster()
        world.create_topic("t", {0: (1, 2), 1: (9, 3)}, seen_by=active)
        assert world.state(T0) == LeaderAndIsr(1, 0, (1, 2), 1, 0)
        assert world.state(T1) == LeaderAndIsr(3, 0, (3,), 1, 0)
        assert active.context.partition_state(T0) is PartitionState.ONLINE
        assert active.context.replica_state(2, T0) is ReplicaState.ONLINE
        assert leader_and_isr(world.driver.sent) == {
            1: {T0: True},
            2: {T0: True},
            3: {T1: True},
        }
        assert world.driver.views == [frozenset({"t"})]

    def test_a_topic_without_a_live_replica_waits_as_new(self) -> None:
        world, active = cluster()
        world.create_topic("t", {0: (8, 9)}, seen_by=active)
        assert active.context.partition_state(T0) is PartitionState.NEW
        assert world.state(T0) is None
        assert world.driver.sent == []
        assert active.context.offline_partition_count == 0

    def test_a_change_that_is_none_leads_to_nothing(self) -> None:
        world, active = cluster()
        world.run(process_topic_change(active))
        assert world.driver.sent == []
        assert world.driver.views == []

    def test_a_malformed_topic_does_not_keep_the_others_from_being_born(self) -> None:
        world, active = cluster()
        world.put(paths.topic("broken"), b"[1")
        world.create_topic("t", {0: (1,)}, seen_by=active)
        assert world.state(T0) is not None
        assert not active.context.cluster.has_topic("broken")
        (reported,) = world.log.errors(SKIPPED)
        assert reported["znodes"] == 1
        assert f"{paths.topic('broken')}: " in str(reported["examples"])
        assert active.context.cluster.unreadable_topics.keys() == {"broken"}

    def test_a_malformed_topic_that_goes_is_not_unreadable_any_more(self) -> None:
        world, active = cluster()
        world.put(paths.topic("broken"), b"[1")
        world.run(process_topic_change(active))
        world.delete(paths.topic("broken"))
        world.run(process_topic_change(active))
        assert active.context.cluster.unreadable_topics == {}
        assert world.driver.views[-1] == frozenset({"broken"})

    @pytest.mark.parametrize("content", [b"[1", b'{"version":2,"partitions":{"0":["x"]}}'])
    def test_a_topic_that_becomes_malformed_is_unreadable_and_stays_known(
        self, content: bytes
    ) -> None:
        world, active = cluster()
        world.create_topic("t", {0: (1,)}, seen_by=active)
        world.put(paths.topic("t"), content)
        world.run(process_partition_modifications(active, ["t"]))
        assert active.context.cluster.unreadable_topics.keys() == {"t"}
        assert list(active.context.cluster.partitions_of("t")) == [T0]
        assert len(world.driver.views) == 2

    def test_a_topic_with_a_name_that_no_directory_can_have_is_kept_from_the_brokers(self) -> None:
        world, active = cluster()
        endless = 300 * "a"
        world.create_topic(endless, {0: (1,)})
        world.create_topic("t", {0: (1,)}, seen_by=active)
        assert world.state(T0) is not None
        assert not active.context.cluster.has_topic(endless)
        (reported,) = world.log.errors(SKIPPED)
        assert f"{paths.topic(endless)}: " in str(reported["examples"])

    def test_a_mended_topic_is_born_when_its_node_changes(self) -> None:
        world, active = cluster()
        world.put(paths.topic("t"), b"[1")
        world.run(process_topic_change(active))
        watched(world)
        world.create_topic("t", {0: (1,)})
        assert len(watched(world)) == 1
        world.run(process_partition_modifications(active, ["t"]))
        assert world.state(T0) == LeaderAndIsr(1, 0, (1,), 1, 0)
        assert world.driver.views[-1] == frozenset({"t"})
        assert active.context.cluster.unreadable_topics == {}


class TestTopicIds:
    def test_a_conflicting_change_of_the_node_is_read_once_more(self) -> None:
        world, active = cluster()
        world.create_topic("t", {0: (1,)})

        def grow() -> None:
            world.create_topic("t", {0: (1,), 1: (2,)})

        world.driver.before = once(zk_effects.Write, grow)
        world.run(process_topic_change(active))
        assert list(world.topic("t").assignments) == [0, 1]
        assert world.topic("t").topic_id == active.context.cluster.topic_ids["t"]

    def test_an_id_that_somebody_else_gives_meanwhile_is_taken_over(self) -> None:
        world, active = cluster()
        world.create_topic("t", {0: (1,)})
        theirs = uuid.UUID(int=99)
        world.driver.before = once(
            zk_effects.Write, lambda: world.create_topic("t", {0: (1,)}, topic_id=theirs)
        )
        world.run(process_topic_change(active))
        assert active.context.cluster.topic_ids == {"t": theirs}
        assert world.topic("t").topic_id == theirs

    def test_a_node_that_cannot_be_read_in_full_is_not_written_back(self) -> None:
        world, active = cluster()
        content = b'{"version":2,"partitions":{"0":[1],"1":["x"]}}'
        world.put(paths.topic("t"), content)
        world.run(process_topic_change(active))
        assert world.node(paths.topic("t")).data == content
        assert active.context.cluster.topic_ids == {}


class TestGrowth:
    def grown(self) -> tuple[World, ActiveController]:
        world, active = cluster()
        world.create_topic("t", {0: (1, 2)}, seen_by=active)
        world.forget()
        return world, active

    def test_new_partitions_get_leaders_and_old_ones_are_left_alone(self) -> None:
        world, active = self.grown()
        world.create_topic("t", {0: (1, 2), 1: (2, 3)})
        world.run(process_partition_modifications(active, ["t"]))
        assert world.state(T1) == LeaderAndIsr(2, 0, (2, 3), 1, 0)
        assert leader_and_isr(world.driver.sent) == {2: {T1: True}, 3: {T1: True}}
        assert world.driver.views == [frozenset({"t"})]

    def test_another_assignment_of_an_existing_partition_is_ignored(self) -> None:
        world, active = self.grown()
        world.create_topic("t", {0: (3, 1)})
        world.run(process_partition_modifications(active, ["t"]))
        assert active.context.cluster.replicas(T0) == (1, 2)
        assert world.driver.sent == []
        assert world.driver.views == []

    def test_only_the_growth_of_a_topic_being_deleted_is_undone(self) -> None:
        world, active = self.grown()
        topic_id = active.context.cluster.topic_ids["t"]
        active.context.queue_topic_for_deletion("t")
        moving = ReplicaAssignment((1, 2, 3), (3,), (2,))
        world.create_topic("t", {0: moving, 1: (2, 3)}, topic_id=topic_id)
        world.run(process_partition_modifications(active, ["t"]))
        assert world.topic("t").assignments == {0: moving}

    def test_a_topic_being_deleted_that_grows_and_vanishes_is_not_written_back(self) -> None:
        world, active = self.grown()
        active.context.queue_topic_for_deletion("t")
        world.create_topic("t", {0: (1, 2), 1: (2, 3)})
        gone = once(zk_effects.ReadData, lambda: world.delete(paths.topic("t")), skip=1)
        world.driver.before = gone
        world.run(process_partition_modifications(active, ["t"]))
        assert not world.exists(paths.topic("t"))

    def test_a_topic_that_is_gone_meanwhile_is_forgotten(self) -> None:
        """Its watch is used up, and there may be another of that name when topics are listed."""
        world, active = self.grown()
        world.delete(paths.topic("t"))
        world.run(process_partition_modifications(active, ["t"]))
        assert not active.context.cluster.has_topic("t")
        assert world.driver.sent == []


class TestDeletionRequests:
    def test_markers_of_unknown_topics_are_removed(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("nobody", seen_by=active)
        assert not world.exists(paths.delete_topic("nobody"))

    def test_a_topic_created_and_marked_at_once_is_deleted_and_not_kept(self) -> None:
        world, active = cluster()
        world.create_topic("t", {0: (1, 2)})
        world.mark_for_deletion("t", seen_by=active)
        assert world.exists(paths.delete_topic("t"))
        assert active.context.is_topic_queued_for_deletion("t")

    @pytest.mark.parametrize("is_known", [True, False])
    def test_a_marker_that_means_a_former_topic_of_the_name_is_removed(
        self, is_known: bool
    ) -> None:
        """Whether or not the controller has seen yet that the topic was created again."""
        world, active = cluster()
        world.create_topic("t", {0: (1, 2)}, seen_by=active)
        former = world.node(paths.topic("t")).czxid
        world.delete(paths.topic("t"))
        world.create_topic("t", {0: (1, 2)}, seen_by=active if is_known else None)
        world.put(paths.delete_topic("t"), encode_deletion_marker(former))
        world.run(process_topic_deletion(active))
        assert not world.exists(paths.delete_topic("t"))
        assert not active.context.is_topic_queued_for_deletion("t")
        assert world.log.warnings(
            "Topics were created again before their deletion, markers removed"
        )

    def test_a_marker_that_means_the_present_topic_is_obeyed(self) -> None:
        world, active = cluster()
        world.create_topic("t", {0: (1, 2)}, seen_by=active)
        czxid = world.node(paths.topic("t")).czxid
        world.put(paths.delete_topic("t"), encode_deletion_marker(czxid))
        world.run(process_topic_deletion(active))
        assert active.context.is_topic_queued_for_deletion("t")

    def test_the_marker_of_a_topic_that_cannot_be_read_waits_until_it_is_mended(self) -> None:
        world, active = cluster()
        world.put(paths.topic("t"), b"[1")
        world.mark_for_deletion("t", seen_by=active)
        assert world.exists(paths.delete_topic("t"))
        assert world.log.errors("Topics to be deleted cannot be read, markers left")
        world.create_topic("t", {0: (1, 2)})
        world.run(process_partition_modifications(active, ["t"]))
        assert active.context.is_topic_queued_for_deletion("t")
