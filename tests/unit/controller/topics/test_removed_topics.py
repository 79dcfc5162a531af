"""Nodes of topics are removed by somebody else, and there may be others of their names."""

from __future__ import annotations

import msgspec
import pytest

from regent.controller import events as e
from regent.controller.active_controller import ActiveController
from regent.controller.kafka_controller import KafkaController
from regent.controller.state.causes import ChangeKind
from regent.controller.state.states import PartitionState
from regent.controller.state.vanished_partitions import VanishedPartitions
from regent.controller.topics.topic_changes import (
    process_partition_modifications,
    process_topic_change,
)
from regent.controller.transitions.partition_epochs import LEFT_BEHIND, WRITES_MAX
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.unit.controller.topics.test_topic_changes import cluster
from tests.unit.controller.world import T0, T1, World, active_of


class TestVanishedTopicsOfWhichThereIsAnother:
    """Brokers have the former replicas, and take no leader epoch that is not higher."""

    FORMER = LeaderAndIsr(2, 7, (3, 2), 1, 12)

    def vanished(
        self, *replicas: int, partition_epoch: int = 12, removed: bool = True
    ) -> tuple[World, ActiveController]:
        """``t`` had been led for a while when somebody removed its node."""
        world, active = cluster()
        world.create_topic("t", {0: replicas or (1, 2, 3)}, seen_by=active)
        former = msgspec.structs.replace(self.FORMER, partition_epoch=partition_epoch)
        active.context.cluster.set_leadership({T0: former}, ChangeKind.OBSERVED)
        world.delete(paths.topic("t"))
        if removed:
            world.run(process_topic_change(active))
        world.forget()
        return world, active

    def born(self, world: World, active: ActiveController) -> LeaderAndIsr:
        """The first state of the next ``t``, as it is known and as ZooKeeper has it."""
        known = active.context.cluster.leadership[T0]
        assert world.state(T0) == known
        (requests,) = world.driver.sent
        replicas = active.context.cluster.replicas(T0)
        assert {b for b, sent in requests.leader_and_isr.items() if T0 in sent} == set(replicas)
        return known

    def test_its_epochs_go_on_and_who_was_in_sync_is(self) -> None:
        world, active = self.vanished()
        world.create_topic("t", {0: (1, 2, 3)}, seen_by=active)
        state = self.born(world, active)
        assert (state.leader, state.leader_epoch, state.isr) == (2, 8, (2, 3))
        assert state.partition_epoch > self.FORMER.partition_epoch
        assert active.context.partition_state(T0) is PartitionState.ONLINE

    def test_so_they_do_where_the_node_is_created_again_at_once(self) -> None:
        world, active = self.vanished(removed=False)
        world.create_topic("t", {0: (1, 2, 3)})
        world.run(process_partition_modifications(active, ["t"]))
        state = self.born(world, active)
        assert (state.leader, state.leader_epoch, state.isr) == (2, 8, (2, 3))

    def test_where_it_was_to_be_deleted_all_live_replicas_are_in_sync(self) -> None:
        """The one that was stopped last may have what was to be deleted, and others would copy."""
        world = World()
        world.start_broker(1, 2, 3)
        world.create_topic("t", {0: (1, 2, 3)})
        controller = world.active_controller()
        world.mark_for_deletion("t")
        world.deliver(controller)
        last = world.state_of(T0)
        assert last.isr == (3,)
        world.delete(paths.delete_topic("t"))
        world.delete(paths.topic("t"))
        world.deliver(controller)
        world.create_topic("t", {0: (1, 2, 3)})
        world.deliver(controller)
        state = world.state_of(T0)
        assert (state.leader, state.isr) == (1, (1, 2, 3))
        assert state.leader_epoch == last.leader_epoch + 1

    def test_one_whose_partition_epoch_is_out_of_reach_is_born_and_named(self) -> None:
        world, active = self.vanished(partition_epoch=WRITES_MAX)
        world.create_topic("t", {0: (1, 2, 3)}, seen_by=active)
        assert self.born(world, active).leader_epoch == 8
        (reported,) = world.log.errors(LEFT_BEHIND)
        assert "t-0: version 10000" in str(reported["examples"])

    def test_the_oldest_ones_are_forgotten_first(self) -> None:
        known = VanishedPartitions(limit=2)
        for number in range(3):
            known.note({TopicPartition("t", number): self.FORMER})
        assert known.get(T0) is None
        assert known.get(T1) is self.FORMER
        known.forget([T1, T1])
        assert known.get(T1) is None


@pytest.mark.parametrize("protocol", [(2, 6), (3, 9)])
class TestReplacedTopics:
    """A topic node was deleted and created again before anybody looked."""

    def _replace(self, world: World) -> None:
        world.delete(paths.topic("t"))
        world.create_topic("t", {0: (2, 3), 1: (3, 2)})

    def _active(self, protocol: tuple[int, int]) -> tuple[World, KafkaController]:
        world = World()
        world.driver.inter_broker_protocol = protocol
        world.start_broker(1, 2, 3)
        world.create_led_topic("t", {0: (1, 2)})
        controller = world.active_controller()
        world.forget()
        return world, controller

    def _assert_it_is_the_new_one(self, world: World, controller: KafkaController) -> None:
        cluster = active_of(controller).context.cluster
        node = world.node(paths.topic("t"))
        assert cluster.topic_czxids["t"] == node.czxid
        assert cluster.replicas(T0) == (2, 3)
        assert (cluster.leadership[T0].leader, cluster.leadership[T1].leader) == (2, 3)
        state = world.state_of(T0)
        assert state.leader == 2
        assert state.leader_epoch > 5, "brokers may have the former replicas"
        assert any(view is not None and "t" in view for view in world.driver.views)

    def test_the_deletion_of_its_node_says_so(self, protocol: tuple[int, int]) -> None:
        world, controller = self._active(protocol)
        self._replace(world)
        world.deliver(controller)
        self._assert_it_is_the_new_one(world, controller)

    def test_after_a_disconnection_it_is_found_without_watches(
        self, protocol: tuple[int, int]
    ) -> None:
        world, controller = self._active(protocol)
        self._replace(world)
        world.driver.client.take_events()
        world.process(controller, e.SessionReconnected())
        self._assert_it_is_the_new_one(world, controller)

    def test_what_was_to_be_deleted_is_not_deleted_in_its_place(
        self, protocol: tuple[int, int]
    ) -> None:
        world, controller = self._active(protocol)
        world.mark_for_deletion("t")
        world.deliver(controller)
        world.delete(paths.delete_topic("t"))
        self._replace(world)
        world.deliver(controller)
        self._assert_it_is_the_new_one(world, controller)
        assert not active_of(controller).context.topics_to_be_deleted

    def test_a_deletion_that_is_known_costs_nothing(self, protocol: tuple[int, int]) -> None:
        world, controller = self._active(protocol)
        world.process(controller, e.TopicNodesDeleted(("deleted", "by", "ourselves")))
        assert not [x for x in world.driver.performed if isinstance(x, zk_effects.ReadData)]
