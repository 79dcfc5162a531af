"""Brokers come, go, bounce and change their registrations."""

from __future__ import annotations

from typing import Any

import pytest

from regent.controller import effects
from regent.controller.active_controller import ActiveController
from regent.controller.brokers.answers import process_update_metadata_response
from regent.controller.brokers.broker_changes import (
    process_broker_change,
    process_broker_modifications,
)
from regent.controller.events import BrokerChange
from regent.controller.state.causes import ChangeKind
from regent.controller.state.states import PartitionState, ReplicaState
from regent.model.partition import LeaderAndIsr
from regent.protocol.control_requests import UpdateMetadataResponse
from regent.simulation.broker_znodes import encode_broker
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from tests.unit.controller.world import T0, T1, World, leader_and_isr, make_broker


def cluster(
    assignments: dict[int, tuple[int, ...]] | None = None, *, live: tuple[int, ...] = (1, 2, 3)
) -> tuple[World, ActiveController]:
    """Partitions led by their first replica at leader epoch 5, everything in sync."""
    world = World()
    world.start_broker(*live)
    if assignments is not None:
        world.create_led_topic("t", assignments)
    return world, world.lead()


class TestStartup:
    def test_the_others_learn_of_it_first_then_it_learns_everything(self) -> None:
        world, active = cluster({0: (1, 2), 1: (2, 3)}, live=(1, 2))
        world.start_broker(3, seen_by=active)
        to_others, to_new, replicas = world.driver.sent
        assert to_others.update_metadata_receivers == (1, 2)
        assert tuple(to_others.partitions) == ()
        assert list(to_others.brokers) == [1, 2, 3]
        assert to_new.update_metadata_receivers == (3,)
        assert set(to_new.partitions) == {T0, T1}
        assert replicas.leader_and_isr == {3: {T1: False}}

    def test_its_channel_opens_before_anything_is_sent(self) -> None:
        world, active = cluster({0: (1, 2)}, live=(1,))
        world.driver.performed.clear()
        world.start_broker(2, seen_by=active)
        kinds = [type(e) for e in world.driver.performed]
        assert kinds.index(effects.UpdateChannels) < kinds.index(effects.SendRequests)
        (channels,) = world.driver.channels
        assert [b.broker_id for b in channels.opened] == [2]
        assert list(channels.closed) == []
        assert channels.epoch_zk_version == active.context.term.epoch_zk_version

    def test_a_leaderless_partition_whose_isr_it_is_in_gets_its_leader_back(self) -> None:
        world, active = cluster({0: (2,)}, live=(1,))
        assert active.context.partition_state(T0) is PartitionState.OFFLINE
        before = world.state_of(T0)
        world.start_broker(2, seen_by=active)
        assert world.state(T0) == LeaderAndIsr(
            2, before.leader_epoch + 1, (2,), 1, before.partition_epoch + 1
        )
        assert active.context.offline_partition_count == 0

    def test_a_partition_that_waited_to_be_born_is_born(self) -> None:
        world, active = cluster(live=(1,))
        world.create_topic("t", {0: (2,)})
        active = world.lead()
        world.start_broker(2, seen_by=active)
        assert world.state(T0) == LeaderAndIsr(2, 0, (2,), 2, 0)
        assert leader_and_isr(world.driver.sent) == {2: {T0: True}}


class TestFailure:
    def test_a_follower_takes_over_one_leader_epoch_on(self) -> None:
        world, active = cluster({0: (1, 2, 3)})
        world.stop_broker(1, seen_by=active)
        assert world.state(T0) == LeaderAndIsr(2, 6, (2, 3), 1, 1)
        assert leader_and_isr(world.driver.sent) == {2: {T0: False}, 3: {T0: False}}
        assert active.context.partition_state(T0) is PartitionState.ONLINE
        assert active.context.replica_state(1, T0) is ReplicaState.OFFLINE
        assert world.driver.views == [frozenset()]

    def test_a_dead_follower_leaves_the_isr(self) -> None:
        world, active = cluster({0: (1, 2, 3)})
        world.stop_broker(3, seen_by=active)
        assert world.state(T0) == LeaderAndIsr(1, 6, (1, 2), 1, 1)
        assert leader_and_isr(world.driver.sent) == {1: {T0: False}, 2: {T0: False}}

    def test_the_only_replica_leaves_the_partition_leaderless_but_remembered(self) -> None:
        world, active = cluster({0: (1,)})
        world.stop_broker(1, seen_by=active)
        assert world.state(T0) == LeaderAndIsr(-1, 6, (1,), 1, 1)
        assert active.context.partition_state(T0) is PartitionState.OFFLINE
        assert active.context.offline_partition_count == 1

    def test_a_topic_being_deleted_gets_no_new_leader(self) -> None:
        world, active = cluster({0: (1, 2)})
        active.context.queue_topic_for_deletion("t")
        active.deletions.mark_ineligible(["t"], "a test")
        world.stop_broker(1, seen_by=active)
        assert world.state(T0) == LeaderAndIsr(1, 5, (1, 2), 0, 0)
        assert world.log.errors("Illegal replica transition") == []


class TestBounce:
    def test_a_bounced_broker_fails_and_starts_though_nobody_saw_it_absent(self) -> None:
        world, active = cluster({0: (1, 2)})
        world.bounce_broker(1, seen_by=active)
        assert world.state(T0) == LeaderAndIsr(2, 6, (2,), 1, 1)
        (channels,) = world.driver.channels
        assert [b.broker_id for b in channels.opened] == list(channels.closed) == [1]
        received = leader_and_isr(world.driver.sent)
        assert received == {2: {T0: False}, 1: {T0: False}}
        last = world.driver.sent[-1]
        assert last.brokers[1].epoch > 1

    def test_the_only_replica_loses_the_leadership_and_gets_it_back_two_epochs_on(self) -> None:
        world, active = cluster({0: (1,)})
        world.bounce_broker(1, seen_by=active)
        assert world.state(T0) == LeaderAndIsr(1, 7, (1,), 1, 2)
        assert leader_and_isr(world.driver.sent) == {1: {T0: False}}
        assert active.context.partition_state(T0) is PartitionState.ONLINE

    def test_brokers_that_bounce_together_stay_in_sync_with_each_other(self) -> None:
        world, active = cluster({0: (1, 2)})
        world.bounce_broker(1)
        world.bounce_broker(2, seen_by=active)
        assert world.led(T0) == (1, (1, 2))
        assert active.context.replica_state(1, T0) is ReplicaState.ONLINE

    def test_its_failed_log_dirs_and_its_shutdown_belong_to_its_former_life(self) -> None:
        world, active = cluster({0: (1, 2)})
        active.context.set_replicas_on_offline_dirs(1, [T0])
        active.context.mark_shutting_down(1)
        world.bounce_broker(1, seen_by=active)
        assert active.context.is_replica_online(1, T0)
        assert 1 in active.context.live_broker_ids

    def test_no_change_at_all_is_no_reason_to_say_anything(self) -> None:
        world, active = cluster({0: (1, 2)})
        world.run(process_broker_change(active))
        assert world.driver.sent == []
        assert world.driver.channels == []
        assert world.driver.views == []


class TestModifications:
    def test_a_changed_endpoint_is_announced_to_everybody(self) -> None:
        world, active = cluster({0: (1, 2)})
        world.start_broker(1, port=9999)
        world.run(process_broker_modifications(active, 1))
        (requests,) = world.driver.sent
        assert tuple(requests.partitions) == ()
        assert requests.update_metadata_receivers == (1, 2, 3)
        assert requests.brokers[1].endpoints[0].port == 9999

    def test_its_channel_learns_a_changed_endpoint_before_anything_is_sent(self) -> None:
        """It is no bounce: nothing would say again what waits for the broker."""
        world, active = cluster({0: (1, 2)})
        world.start_broker(1, port=9999)
        world.driver.performed.clear()
        world.run(process_broker_modifications(active, 1))
        kinds = [type(effect) for effect in world.driver.performed]
        told = kinds.index(effects.ReaddressChannels)
        assert told < kinds.index(effects.SendRequests)
        effect = world.driver.performed[told]
        assert isinstance(effect, effects.ReaddressChannels)
        assert list(effect.brokers) == [active.context.cluster.brokers[1]]
        assert effects.UpdateChannels not in kinds

    def test_a_registration_that_was_malformed_from_the_start_and_is_mended_brings_its_broker_in(
        self,
    ) -> None:
        world, active = cluster()
        world.put(paths.broker_id(4), b"{")
        world.run(process_broker_change(active))
        assert not active.context.is_broker_online(4)
        world.put(paths.broker_id(4), encode_broker(make_broker(4), timestamp_ms=0))
        world.run(process_broker_modifications(active, 4))
        assert active.context.is_broker_online(4)

    @pytest.mark.parametrize("seen_by", ["its own watch", "the change of another broker"])
    def test_a_registration_that_was_overwritten_leaves_its_broker_as_it_is_known(
        self, seen_by: str
    ) -> None:
        """Its ephemeral node exists in the same life, so its session lives."""
        world, active = cluster({0: (1, 2)})
        before = active.context.cluster.brokers[1]
        world.put(paths.broker_id(1), b"{")
        if seen_by == "its own watch":
            world.run(process_broker_modifications(active, 1))
        else:
            world.stop_broker(3, seen_by=active)
        assert active.context.cluster.brokers[1] == before
        assert world.state_of(T0).leader == 1
        (reported,) = world.log.errors("Malformed broker registration kept")
        assert reported["path"] == paths.broker_id(1)

    def test_another_life_whose_registration_is_malformed_does_not_keep_the_former_alive(
        self,
    ) -> None:
        world, active = cluster({0: (1, 2)})
        world.stop_broker(1)
        world.put(paths.broker_id(1), b"{")
        world.run(process_broker_modifications(active, 1))
        world.run(process_broker_change(active))
        assert not active.context.is_broker_online(1)
        assert active.context.cluster.leadership[T0].leader == 2


class TestAnswersToUpdateMetadata:
    def answer(self, error_code: int) -> World:
        world, active = cluster()
        response = UpdateMetadataResponse(1, error_code)
        world.run(process_update_metadata_response(active, response))
        return world

    def test_a_stale_broker_epoch_makes_us_look_at_the_brokers(self) -> None:
        assert self.answer(77).driver.enqueued == [BrokerChange()]
        assert self.answer(31).driver.enqueued == []


def test_a_replica_that_a_dead_leader_takes_in_after_the_election_leads() -> None:
    """The election has found nobody in sync; the ISR without the dead has somebody."""
    world, active = cluster({0: (1, 2)})
    world.set_state(T0, 1, (1,), leader_epoch=5)
    world.stop_broker(1)
    read = 0

    def take_in(effect: zk_effects.Effect[Any]) -> None:
        nonlocal read
        if effect == zk_effects.ReadData([paths.partition_state(T0)]):
            read += 1
            if read == 1:
                world.set_state(T0, 1, (1, 2), leader_epoch=5)

    world.driver.after = take_in
    world.run(process_broker_change(active))
    assert world.led(T0) == (2, (2,))
    assert active.context.partition_state(T0) is PartitionState.ONLINE


# All members of an ISR are gone, for good or for a moment: who of them returns leads.


UNCLEAN = encode_entity_config({"unclean.leader.election.enable": "true"})


class TestNobodyIsLeft:
    """Nobody leads without the members of an ISR that are gone: each has every committed record."""

    def test_brokers_that_fail_together_stay_in_the_isr(self) -> None:
        world, active = cluster({0: (1, 2, 3), 1: (3, 1, 2)})
        world.stop_broker(1, 2, 3, seen_by=active)
        assert world.state(T0) == LeaderAndIsr(-1, 6, (1, 2, 3), 1, 1)
        assert world.state(T1) == LeaderAndIsr(-1, 6, (3, 1, 2), 1, 1)


class TestManyChangesAtOnce:
    """As when Regent has not looked for a while."""

    def test_one_that_bounced_leads_if_all_others_are_dead(self) -> None:
        world, active = cluster({0: (1, 2, 3)})
        world.bounce_broker(1)
        world.stop_broker(2, 3, seen_by=active)
        assert world.led(T0) == (1, (1,))
        assert active.context.partition_state(T0) is PartitionState.ONLINE

    def out_of_sync(self) -> tuple[World, ActiveController]:
        """Broker 1 leads, and 2 lacks records that it may lose."""
        world, active = cluster({0: (1, 2)})
        world.put(paths.topic_config("t"), UNCLEAN)
        world.set_state(T0, 1, (1,), leader_epoch=6)
        state = LeaderAndIsr(1, 6, (1,), 0, 1)
        active.context.cluster.set_leadership({T0: state}, ChangeKind.OBSERVED)
        return world, active

    def test_one_that_bounced_and_alone_was_in_sync_leads_whatever_others_may_do(self) -> None:
        world, active = self.out_of_sync()
        world.bounce_broker(1, seen_by=active)
        assert world.led(T0) == (1, (1,))
        assert active.context.unclean_leader_elections == 0

    def test_if_it_does_not_come_back_another_one_leads_where_that_is_allowed(self) -> None:
        world, active = self.out_of_sync()
        world.stop_broker(1, seen_by=active)
        assert world.led(T0) == (2, (2,))
