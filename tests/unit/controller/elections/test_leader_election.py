"""Elections on request: an outcome with Kafka's error code for each partition."""

from __future__ import annotations

import pytest

from regent.admin.commands import Accepted, ElectionType, ElectLeaders, PartitionResult
from regent.controller.active_controller import ActiveController
from regent.controller.state.states import PartitionState
from regent.controller.topics.topic_commands import process_commands
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from tests.unit.controller.world import World, leader_and_isr

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN
T0, T1, T2 = (TopicPartition("t", p) for p in range(3))
ELECTED = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC_EXCEPTION = 17
PREFERRED_LEADER_NOT_AVAILABLE = 80
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTION_NOT_NEEDED = 84


def cluster() -> tuple[World, ActiveController]:
    """T0 is led by its second replica; T1 by its first; T2 by nobody, as only 9 was in sync."""
    world = World()
    world.start_broker(1, 2, 3)
    world.create_topic("t", {0: (1, 2, 3), 1: (2, 3), 2: (9, 3)})
    world.set_state(T0, 2, (2, 3, 1), leader_epoch=5)
    world.set_state(T1, 2, (2, 3), leader_epoch=5)
    world.set_state(T2, 9, (9,), leader_epoch=5)
    return world, world.lead()


def elect(
    world: World,
    active: ActiveController,
    election_type: ElectionType,
    *partitions: TopicPartition,
) -> dict[TopicPartition, PartitionResult]:
    """Of all partitions if none is named."""
    command = ElectLeaders(election_type, partitions or None)
    (outcome,) = world.run(process_commands(active, [command]))
    assert isinstance(outcome, Accepted)
    results: dict[TopicPartition, PartitionResult] = outcome.result
    return results


def code_of(
    world: World, active: ActiveController, election_type: ElectionType, tp: TopicPartition
) -> int:
    ((named, result),) = elect(world, active, election_type, tp).items()
    assert named == tp
    assert bool(result.message) == bool(result.error_code)
    return result.error_code


class TestPreferred:
    def test_the_first_replica_leads_one_epoch_on_and_the_isr_stays(self) -> None:
        world, active = cluster()
        assert code_of(world, active, PREFERRED, T0) == ELECTED
        assert world.state(T0) == LeaderAndIsr(1, 6, (2, 3, 1), 1, 1)
        assert active.context.cluster.leadership[T0] == world.state(T0)
        (requests,) = world.driver.sent
        named = {T0: False}
        assert leader_and_isr([requests]) == {1: named, 2: named, 3: named}
        assert requests.update_metadata_receivers == (1, 2, 3)
        assert world.driver.views == [frozenset({"t"})]

    def test_a_partition_led_by_its_first_replica_needs_no_election(self) -> None:
        world, active = cluster()
        assert code_of(world, active, PREFERRED, T1) == ELECTION_NOT_NEEDED
        assert world.driver.sent == []

    def test_one_whose_first_replica_is_not_in_sync_keeps_its_leader(self) -> None:
        world, active = cluster()
        world.set_state(T0, 2, (2, 3), leader_epoch=5)  # as its leader has just written
        assert code_of(world, active, PREFERRED, T0) == PREFERRED_LEADER_NOT_AVAILABLE
        assert world.state(T0) == LeaderAndIsr(2, 5, (2, 3), 0, 1)
        assert active.context.partition_state(T0) is PartitionState.ONLINE
        assert world.log.errors("No leader elected") == []
        assert not active.context.elections_to_repeat

    def test_one_whose_first_replica_is_down_is_not_even_read(self) -> None:
        world, active = cluster()
        assert code_of(world, active, PREFERRED, T2) == PREFERRED_LEADER_NOT_AVAILABLE
        assert world.driver.performed == []

    def test_of_all_partitions_only_those_with_something_to_change_are_named(self) -> None:
        world, active = cluster()
        results = elect(world, active, PREFERRED)
        assert {tp: result.error_code for tp, result in results.items()} == {
            T0: ELECTED,
            T2: PREFERRED_LEADER_NOT_AVAILABLE,
        }


class TestUnclean:
    def test_a_live_replica_leads_although_it_is_not_in_sync(self) -> None:
        world, active = cluster()
        assert code_of(world, active, UNCLEAN, T2) == ELECTED
        state = world.state_of(T2)
        assert (state.leader, state.isr, state.leader_recovery_state) == (3, (3,), 1)
        assert active.context.unclean_leader_elections == 1

    def test_a_partition_with_a_live_leader_needs_no_election(self) -> None:
        world, active = cluster()
        assert code_of(world, active, UNCLEAN, T0) == ELECTION_NOT_NEEDED
        assert world.driver.sent == []

    def test_without_a_live_replica_nobody_is_eligible(self) -> None:
        world, active = cluster()
        world.create_topic("dead", {0: (8, 9)})
        dead = TopicPartition("dead", 0)
        world.set_state(dead, 9, (9,), leader_epoch=5)
        active = world.lead()
        assert code_of(world, active, UNCLEAN, dead) == ELIGIBLE_LEADERS_NOT_AVAILABLE
        assert active.context.partition_state(dead) is PartitionState.OFFLINE


class TestRefusals:
    @pytest.mark.parametrize("election_type", ElectionType)
    def test_an_unknown_partition(self, election_type: ElectionType) -> None:
        world, active = cluster()
        for unknown in (TopicPartition("t", 7), TopicPartition("nobody", 0)):
            assert code_of(world, active, election_type, unknown) == UNKNOWN_TOPIC_OR_PARTITION

    @pytest.mark.parametrize("election_type", ElectionType)
    def test_a_topic_that_is_being_deleted(self, election_type: ElectionType) -> None:
        world, active = cluster()
        active.context.queue_topic_for_deletion("t")
        for tp in (T0, T1, T2):
            assert code_of(world, active, election_type, tp) == INVALID_TOPIC_EXCEPTION
        assert elect(world, active, election_type) == {}
        assert world.driver.sent == []

    @pytest.mark.parametrize(
        ("election_type", "code"),
        [(PREFERRED, PREFERRED_LEADER_NOT_AVAILABLE), (UNCLEAN, ELIGIBLE_LEADERS_NOT_AVAILABLE)],
    )
    def test_a_partition_that_never_had_a_leader_is_not_electable(
        self, election_type: ElectionType, code: int
    ) -> None:
        world, active = cluster()
        world.create_topic("unborn", {0: (8, 9)})
        active = world.lead()
        unborn = TopicPartition("unborn", 0)
        assert code_of(world, active, election_type, unborn) == code
        assert world.state(unborn) is None

    def test_a_refused_preferred_election_does_not_end_the_wait_for_a_leader(self) -> None:
        """An election that failed for an unreadable state is repeated; that goes on."""
        world = World()
        world.start_broker(1, 2)
        world.create_topic("t", {0: (1, 2)})
        world.put(paths.partition_state(T0), b"{")
        active = world.lead()
        assert list(active.context.elections_to_repeat) == [T0]
        world.set_state(T0, 2, (2,), leader_epoch=5)
        assert code_of(world, active, PREFERRED, T0) == PREFERRED_LEADER_NOT_AVAILABLE
        assert list(active.context.elections_to_repeat) == [T0]
        world.run(active.partitions.trigger_online_for([]))
        assert active.context.partition_state(T0) is PartitionState.ONLINE
        assert not active.context.elections_to_repeat
