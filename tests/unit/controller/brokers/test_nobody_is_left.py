"""All members of an ISR are gone, for good or for a moment: who of them returns leads."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.brokers.broker_changes import process_broker_change
from regent.controller.state.causes import ChangeKind
from regent.controller.state.states import PartitionState
from regent.model.partition import LeaderAndIsr
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from tests.unit.controller.brokers.test_broker_changes import cluster
from tests.unit.controller.world import T0, T1, World

UNCLEAN = encode_entity_config({"unclean.leader.election.enable": "true"})


class TestNobodyIsLeft:
    """Nobody leads without the members of an ISR that are gone: each has every committed record."""

    def test_brokers_that_fail_together_stay_in_the_isr(self) -> None:
        world, active = cluster({0: (1, 2, 3), 1: (3, 1, 2)})
        world.stop_broker(1, 2, 3)
        world.run(process_broker_change(active))
        assert world.state(T0) == LeaderAndIsr(-1, 6, (1, 2, 3), 1, 1)
        assert world.state(T1) == LeaderAndIsr(-1, 6, (3, 1, 2), 1, 1)

    def test_the_first_one_that_returns_leads(self) -> None:
        world, active = cluster({0: (1, 2, 3)})
        world.stop_broker(1, 2, 3)
        world.run(process_broker_change(active))
        world.start_broker(2)
        world.run(process_broker_change(active))
        assert world.state(T0) == LeaderAndIsr(2, 7, (2,), 1, 2)

    def test_a_replica_that_was_not_in_sync_does_not_lead(self) -> None:
        world, active = cluster({0: (1, 2, 3)})
        world.stop_broker(3)
        world.run(process_broker_change(active))
        world.stop_broker(1, 2)
        world.run(process_broker_change(active))
        world.start_broker(3)
        world.run(process_broker_change(active))
        assert world.state(T0) == LeaderAndIsr(-1, 7, (1, 2), 1, 2)

    def test_they_stay_at_a_failover_to_which_no_broker_has_come(self) -> None:
        world = World()
        world.create_led_topic("t", {0: (1, 2, 3)})
        world.fail_over()
        assert world.state(T0) == LeaderAndIsr(-1, 6, (1, 2, 3), 1, 1)

    def test_what_leaders_have_written_before_they_failed_counts(self) -> None:
        """Below inter.broker.protocol.version 2.7 it may not be known yet."""
        world, active = cluster({0: (1, 2, 3)})
        world.set_state(T0, 1, (1, 2), leader_epoch=5)
        world.stop_broker(1, 2, 3)
        world.run(process_broker_change(active))
        assert world.led(T0) == (-1, (1, 2))

    def test_a_failed_disk_is_as_a_failed_broker(self) -> None:
        world, active = cluster({0: (1, 2)}, live=(1, 2, 3))
        active.context.set_replicas_on_offline_dirs(2, [T0])
        world.stop_broker(1)
        world.run(process_broker_change(active))
        assert world.state(T0) == LeaderAndIsr(-1, 6, (1, 2), 1, 1)


class TestManyChangesAtOnce:
    """As when Regent has not looked for a while."""

    def test_one_that_bounced_leads_if_all_others_are_dead(self) -> None:
        world, active = cluster({0: (1, 2, 3)})
        world.bounce_broker(1)
        world.stop_broker(2, 3)
        world.run(process_broker_change(active))
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
        world.bounce_broker(1)
        world.run(process_broker_change(active))
        assert world.led(T0) == (1, (1,))
        assert active.context.unclean_leader_elections == 0

    def test_if_it_does_not_come_back_another_one_leads_where_that_is_allowed(self) -> None:
        world, active = self.out_of_sync()
        world.stop_broker(1)
        world.run(process_broker_change(active))
        assert world.led(T0) == (2, (2,))

    def test_one_that_has_started_and_one_that_is_dead_at_once(self) -> None:
        world, active = cluster({0: (1, 2, 3)}, live=(2, 3))
        world.start_broker(1)
        world.stop_broker(2)
        world.run(process_broker_change(active))
        assert world.led(T0) == (3, (3,))
        (first, *_) = world.driver.sent
        assert first.update_metadata_receivers == (3,)
        assert list(first.brokers) == [1, 3]
