"""Elections through the partition state machine: what is read, written and sent."""

from __future__ import annotations

import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.transitions import election
from regent.controller.transitions.election import ElectionStrategy
from regent.controller.transitions.missing_states import RESTORED
from regent.model.errors import ZooKeeperUnavailableError
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from regent.zk_data.operations import Check, SetData
from tests.unit.controller.driving import once, raising
from tests.unit.controller.world import World, leader_and_isr

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


def go_online(
    world: World,
    active: ActiveController,
    *partitions: TopicPartition,
    strategy: ElectionStrategy = election.OFFLINE,
) -> dict[TopicPartition, str]:
    return world.run(
        active.partitions.handle_state_changes(partitions, PartitionState.ONLINE, strategy)
    )


def world_with_new_partition(replicas: tuple[int, ...], *, live: tuple[int, ...]) -> World:
    world = World()
    world.start_broker(*live)
    world.create_topic("t", {0: replicas})
    return world


def world_with_leader(
    replicas: tuple[int, ...] = (1, 2),
    *,
    live: tuple[int, ...] = (2,),
    isr: tuple[int, ...] = (1, 2),
    leader_epoch: int = 5,
    controller_epoch: int = 0,
) -> World:
    world = World()
    world.start_broker(*live)
    world.create_topic("t", {0: replicas})
    world.set_state(TP, isr[0], isr, leader_epoch=leader_epoch, controller_epoch=controller_epoch)
    return world


class TestFirstLeader:
    def test_a_broker_that_is_shutting_down_is_not_among_the_first_replicas(self) -> None:
        world = world_with_new_partition((1, 2), live=(1, 2))
        active = world.load()
        active.context.mark_shutting_down(1)
        go_online(world, active, TP)
        assert world.state(TP) == LeaderAndIsr(2, 0, (2,), 1, 0)

    def test_a_topic_that_vanishes_meanwhile_gets_no_leader(self) -> None:
        world = world_with_new_partition((1,), live=(1,))
        active = world.load()
        world.delete(paths.topic("t"))
        assert "NONODE" in go_online(world, active, TP)[TP]
        assert active.context.partition_state(TP) is PartitionState.NEW
        assert TP not in active.context.cluster.leadership
        assert world.driver.sent == []


class TestLaterLeader:
    def test_the_state_read_from_zookeeper_decides_and_not_the_cached_one(self) -> None:
        world = world_with_leader(live=(2,))
        active = world.load()
        world.set_state(TP, 1, (1,), leader_epoch=6)
        assert "finds no leader" in go_online(world, active, TP)[TP]
        assert world.state(TP) == LeaderAndIsr(1, 6, (1,), 0, 1)

    def test_writes_are_conditional_and_guarded_by_the_controller_epoch(self) -> None:
        world = world_with_leader(live=(2,))
        active = world.load()
        world.driver.performed.clear()
        go_online(world, active, TP)
        (write,) = [e for e in world.driver.performed if isinstance(e, zk_effects.Write)]
        (operation,) = write.operations
        assert write.guard == Check(paths.CONTROLLER_EPOCH, active.context.term.epoch_zk_version)
        assert isinstance(operation, SetData)
        assert (operation.path, operation.version) == (paths.partition_state(TP), 0)
        assert active.context.cluster.leadership[TP].partition_epoch == 1

    def test_a_conflicting_change_is_read_and_decided_anew(self) -> None:
        world = world_with_leader((1, 2, 3), live=(2, 3), isr=(1, 2))
        active = world.load()

        def leader_expands_the_isr() -> None:
            world.set_state(TP, 1, (1, 3), leader_epoch=5)

        world.driver.before = once(zk_effects.Write, leader_expands_the_isr)
        assert go_online(world, active, TP) == {}
        assert world.state(TP) == LeaderAndIsr(3, 6, (3,), 1, 2)
        assert active.context.cluster.leadership[TP] == world.state(TP)
        assert leader_and_isr(world.driver.sent) == {2: {TP: False}, 3: {TP: False}}

    def test_a_state_of_a_later_controller_is_left_alone(self) -> None:
        world = world_with_leader(live=(2,), controller_epoch=2)
        active = world.load()
        assert "controller epoch 2, ours is 1" in go_online(world, active, TP)[TP]
        assert world.state(TP) == LeaderAndIsr(1, 5, (1, 2), 2, 0)
        assert active.context.partition_state(TP) is PartitionState.OFFLINE

    def test_malformed_and_missing_states_do_not_disturb_the_others(self) -> None:
        world = world_with_leader(live=(2,))
        world.create_topic("t", dict.fromkeys(range(3), (1, 2)))
        world.set_state(TopicPartition("t", 2), 1, (1, 2))
        active = world.load()
        partitions = list(active.context.cluster.partitions_of("t"))
        for tp in partitions:
            active.context.set_partition_state(tp, PartitionState.OFFLINE)
        world.put(paths.partition_state(partitions[2]), b"{")
        failures = go_online(world, active, *partitions)
        assert "does not exist" in failures[partitions[1]]
        assert "malformed" in failures[partitions[2]]
        assert active.context.partition_state(partitions[0]) is PartitionState.ONLINE
        assert active.context.partition_state(partitions[1]) is PartitionState.OFFLINE
        assert active.context.partition_state(partitions[2]) is PartitionState.OFFLINE
        (reported,) = world.log.errors("Malformed partition states skipped")
        assert reported["znodes"] == 1
        assert paths.partition_state(partitions[2]) in str(reported["examples"])

    def test_a_state_that_vanishes_between_reading_and_writing_is_created_again(self) -> None:
        world = world_with_leader(live=(2,))
        active = world.load()
        changes = [
            lambda: world.delete(paths.partition_state(TP)),
            lambda: world.set_state(TP, 1, (2, 1), leader_epoch=5),
        ]

        def disturb(effect: zk_effects.Effect[object]) -> None:
            if isinstance(effect, zk_effects.Write) and changes:
                changes.pop()()

        world.driver.before = disturb
        before = active.context.cluster.leadership[TP]
        assert go_online(world, active, TP) == {}
        state = world.state_of(TP)
        assert (state.leader, state.leader_epoch) == (2, before.leader_epoch + 1)
        # else a leader that writes ISRs itself, and is ahead, overwrites the election
        assert state.partition_epoch > before.partition_epoch + 4
        (warned,) = world.log.warnings(RESTORED)
        assert warned["examples"] == [str(TP)]

    def test_a_deleted_state_is_not_created_again_where_nobody_in_sync_is_alive(self) -> None:
        world = world_with_leader(live=(3,))
        active = world.load()
        world.delete(paths.partition_state(TP))
        assert "does not exist" in go_online(world, active, TP)[TP]
        assert world.state(TP) is None

    @pytest.mark.parametrize("again", [True, False])
    def test_a_deleted_state_is_not_created_again_below_another_topic(self, again: bool) -> None:
        world = world_with_leader(live=(2,))
        active = world.load()
        for path in (
            paths.partition_state(TP),
            paths.topic_partition(TP),
            paths.topic_partitions("t"),
            paths.topic("t"),
        ):
            world.delete(path)
        if again:
            world.create_topic("t", {0: (2, 1)})
        assert "does not exist" in go_online(world, active, TP)[TP]
        assert world.state(TP) is None

    def test_a_failure_in_the_middle_leaves_no_requests_behind_for_the_next_batch(self) -> None:
        world = world_with_leader(live=(2,))
        world.create_topic("t", {0: (1, 2), 1: (2,)})
        active = world.load()
        error = ZooKeeperUnavailableError("no server")
        # Partition 1 is new and already in the batch when the election of partition 0 fails.
        world.driver.before = once(zk_effects.Write, raising(error), skip=3)
        with pytest.raises(ZooKeeperUnavailableError):
            go_online(world, active, TP, OTHER)
        assert active.context.partition_state(OTHER) is PartitionState.ONLINE
        go_online(world, active, TP)
        (requests,) = world.driver.sent
        assert tuple(requests.partitions) == (TP,)

    def test_what_the_known_state_does_not_allow_is_read_before_it_fails(self) -> None:
        world = world_with_leader((1, 2), live=(2,), isr=(1,))
        active = world.load()
        world.set_state(TP, 1, (1, 2), leader_epoch=5)
        assert go_online(world, active, TP) == {}
        assert world.state(TP) == LeaderAndIsr(2, 6, (2,), 1, 2)


class TestUncleanElection:
    def world(self, *, own: str | None, default: bool = False) -> tuple[World, ActiveController]:
        world = world_with_leader(live=(2,), isr=(1,))
        if own is not None:
            config = {"unclean.leader.election.enable": own}
            world.create_topic("t", {0: (1, 2)}, config=config)
        if default:
            allowed = encode_entity_config({"unclean.leader.election.enable": "true"})
            world.put(paths.broker_config(None), allowed)
        return world, world.load()

    @pytest.mark.parametrize(
        ("own", "default", "elected"),
        [
            (None, False, False),
            (None, True, True),
            ("true", False, True),
            (" TRUE ", False, True),
            ("false", True, False),
        ],
    )
    def test_the_topic_decides_and_without_an_opinion_the_cluster(
        self, own: str | None, default: bool, elected: bool
    ) -> None:
        world, active = self.world(own=own, default=default)
        failures = go_online(world, active, TP)
        assert (failures == {}) == elected
        assert active.context.unclean_leader_elections == int(elected)
        if elected:
            assert world.state(TP) == LeaderAndIsr(2, 6, (2,), 1, 1, leader_recovery_state=1)

    def test_an_unreadable_topic_configuration_allows_no_election(self) -> None:
        world, active = self.world(own=None, default=True)
        world.put(paths.topic_config("t"), b"not json")
        assert go_online(world, active, TP) == {TP: "the configuration of its topic cannot be read"}
        assert world.state(TP) == LeaderAndIsr(1, 5, (1,), 0, 0)

    def test_below_protocol_3_2_the_state_says_nothing_of_recovery(self) -> None:
        world, active = self.world(own="true")
        active.context.cluster.inter_broker_protocol = (3, 1)
        go_online(world, active, TP)
        assert world.state(TP) == LeaderAndIsr(2, 6, (2,), 1, 1, leader_recovery_state=0)


@pytest.mark.parametrize("traced", [True, False])
def test_changes_of_state_are_reported_to_a_log_that_wants_them(traced: bool) -> None:
    world = world_with_leader(live=(2,))
    world.log.traces_state_changes = traced
    active = world.load()
    go_online(world, active, TP)
    world.run(active.replicas.handle_state_changes({2: [TP]}, ReplicaState.ONLINE))
    expected = [("t-0", "OFFLINE", "ONLINE"), ("t-0 on broker 2", "ONLINE", "ONLINE")]
    assert world.log.changes == (expected if traced else [])


def test_startup_states_follow_from_leadership_and_liveness() -> None:
    world = World()
    world.start_broker(1)
    world.create_topic("t", {0: (1,), 1: (2,), 2: (1,), 3: (1, 2)})
    world.set_state(TopicPartition("t", 0), 1, (1,))
    world.set_state(TopicPartition("t", 1), 2, (2,))
    world.set_state(TopicPartition("t", 3), -1, (1,))
    context = world.load().context
    states = [context.partition_state(TopicPartition("t", p)).name for p in range(4)]
    assert states == ["ONLINE", "OFFLINE", "NEW", "OFFLINE"]
    assert context.offline_partition_count == 2
