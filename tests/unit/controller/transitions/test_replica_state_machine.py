"""Replicas through their state machine: who is stopped, who is told, what is written."""

from __future__ import annotations

import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.state.states import ReplicaState
from regent.controller.transitions.replica_state_machine import without_replica
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.unit.controller.driving import once
from tests.unit.controller.world import World, leader_and_isr

TP = TopicPartition("t", 0)


def loaded(
    isr: tuple[int, ...] = (1, 2, 3),
    *,
    live: tuple[int, ...] = (1, 2, 3),
    leader: int | None = None,
    controller_epoch: int = 0,
) -> tuple[World, ActiveController]:
    """Partition t-0 on brokers 1, 2 and 3, at leader epoch 5."""
    world = World()
    world.start_broker(*live)
    world.create_topic("t", {0: (1, 2, 3)})
    world.set_state(
        TP,
        isr[0] if leader is None else leader,
        isr,
        leader_epoch=5,
        controller_epoch=controller_epoch,
    )
    return world, world.load()


def stop(world: World, active: ActiveController, *broker_ids: int) -> None:
    replicas = {broker_id: [TP] for broker_id in broker_ids}
    world.run(active.replicas.handle_state_changes(replicas, ReplicaState.OFFLINE))


class TestOffline:
    def test_a_replica_outside_the_isr_changes_nothing_but_is_announced_as_offline(self) -> None:
        world, active = loaded((1, 2), live=(1, 2))
        stop(world, active, 3)
        assert world.state(TP) == LeaderAndIsr(1, 5, (1, 2), 0, 0)
        assert leader_and_isr(world.driver.sent) == {}
        (requests,) = world.driver.sent
        assert tuple(requests.partitions) == (TP,)
        assert requests.offline_replicas == {TP: (3,)}
        assert active.context.replica_state(3, TP) is ReplicaState.OFFLINE

    def test_a_conflicting_change_is_read_and_decided_anew(self) -> None:
        world, active = loaded()
        world.driver.before = once(
            zk_effects.Write, lambda: world.set_state(TP, 1, (3, 1), leader_epoch=5)
        )
        stop(world, active, 3)
        assert world.state(TP) == LeaderAndIsr(1, 6, (1,), 1, 2)

    def test_a_leader_whose_state_cannot_be_read_is_not_sent_back_to_work(self) -> None:
        world, active = loaded()
        world.put(paths.partition_state(TP), b"[1")
        stop(world, active, 1)
        world.driver.take_sent()
        replicas = {1: [TP]}
        world.run(active.replicas.handle_state_changes(replicas, ReplicaState.ONLINE))
        assert leader_and_isr(world.driver.sent) == {}

    @pytest.mark.parametrize("data", [b"", b"{}", b'{"leader":1}'])
    def test_a_malformed_state_is_skipped_and_the_replica_keeps_its_state(
        self, data: bytes
    ) -> None:
        world, active = loaded()
        world.put(paths.partition_state(TP), data)
        stop(world, active, 3)
        assert active.context.replica_state(3, TP) is ReplicaState.ONLINE
        assert len(world.log.errors("Replicas not removed from the ISR")) == 1

    @pytest.mark.parametrize("queued", [True, False])
    def test_a_missing_state_is_created_again_unless_the_topic_is_being_deleted(
        self, queued: bool
    ) -> None:
        world, active = loaded()
        if queued:
            active.context.queue_topic_for_deletion("t")
        world.delete(paths.partition_state(TP))
        stop(world, active, 3)
        assert active.context.replica_state(3, TP) is ReplicaState.OFFLINE
        state = world.state(TP)
        assert (state is None) == queued
        assert state is None or 3 not in state.isr

    def test_two_replicas_of_one_partition_leave_one_after_the_other(self) -> None:
        world, active = loaded()
        stop(world, active, 2, 3)
        assert world.state(TP) == LeaderAndIsr(1, 7, (1,), 1, 2)
        (requests,) = world.driver.sent
        assert requests.partitions[TP].leader_and_isr == world.state(TP)


def test_the_leader_cannot_be_a_new_replica() -> None:
    world, active = loaded()
    active.context.set_replica_state(1, TP, ReplicaState.NON_EXISTENT)
    world.run(active.replicas.handle_state_changes({1: [TP]}, ReplicaState.NEW))
    assert active.context.replica_state(1, TP) is ReplicaState.NON_EXISTENT
    assert world.driver.sent == []
    assert len(world.log.errors("A new replica cannot be the leader")) == 1


def test_leadership_without_a_replica_keeps_all_else() -> None:
    state = LeaderAndIsr(1, 5, (3, 1, 2), 4, 9, leader_recovery_state=1)
    assert without_replica(state, 3, 7) == LeaderAndIsr(1, 6, (1, 2), 7, 9, 1)
    assert without_replica(state, 1, 7) == LeaderAndIsr(-1, 6, (3, 2), 7, 9, 1)
