"""The way of a partition to new replicas: each step, its order, and the epochs it costs."""

from __future__ import annotations

from regent.controller.reassignment.reassignment_changes import (
    process_partition_reassignment_isr_change,
)
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.term.watch_check import process_watch_check
from regent.model.partition import ReplicaAssignment
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.operations import WatchedEvent, WatchedEventType
from tests.unit.controller.closed_client import Right, take_rights
from tests.unit.controller.driving import once
from tests.unit.controller.reassignment.moving import Cluster, writes
from tests.unit.controller.world import T0, leader_and_isr, stop_replica


class TestBeginning:
    def test_the_assignment_is_stored_the_leader_told_and_the_replica_created(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.move(2, 3)
        assert cluster.stored() == ReplicaAssignment((2, 3, 1), (3,), (1,))
        assert cluster.leadership() == (1, (1, 2), 1)
        told, created = cluster.world.driver.take_sent()
        assert leader_and_isr([told]) == {1: {T0: False}, 2: {T0: False}}
        assert leader_and_isr([created]) == {3: {T0: True}}
        assert told.partitions[T0].assignment == cluster.stored()
        assert writes(cluster) == [paths.topic("t"), paths.partition_state(T0)]
        assert cluster.active.context.replica_state(3, T0) is ReplicaState.NEW
        assert list(cluster.active.context.cluster.partitions_being_reassigned) == [T0]

    def test_the_same_list_costs_one_epoch_and_nothing_else(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.move(1, 2)
        assert cluster.leadership() == (1, (1, 2), 1)
        assert writes(cluster) == [paths.partition_state(T0)]

    def test_the_same_target_again_changes_nothing(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.move(2, 3)
        cluster.forget()
        cluster.move(2, 3)
        assert writes(cluster) == []
        assert cluster.world.driver.sent == []

    def test_a_failed_log_directory_does_not_keep_a_replica_from_being_created_anew(self) -> None:
        """A replica that is being added and exists already is announced as new until in sync."""
        cluster = Cluster(ReplicaAssignment((2, 3, 1), (2, 3), (1,)), isr=(1, 2), leader=1)
        cluster.start()
        cluster.stop_broker(3)
        cluster.forget()
        cluster.start_broker(3)
        last = cluster.world.driver.sent[-1]
        assert leader_and_isr([last]) == {1: {T0: False}, 2: {T0: False}, 3: {T0: True}}

    def test_a_partition_that_never_had_a_leader_is_born_on_its_target(self) -> None:
        cluster = Cluster(brokers=(1, 2))
        cluster.world.create_topic("t", {0: (8, 9)})
        cluster.start()
        cluster.move(1, 2)
        assert cluster.stored() == ReplicaAssignment((1, 2))
        state = cluster.state()
        assert (state.leader, state.isr) == (1, (1, 2))
        assert cluster.active.context.partition_state(T0) is PartitionState.ONLINE


class TestCompletion:
    def test_the_leader_moves_the_others_leave_and_are_deleted(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.move(3, 4)
        cluster.forget()
        cluster.sync(1, 2, 3, 4)
        assert cluster.stored() == ReplicaAssignment((3, 4))
        assert cluster.leadership() == (3, (3, 4), 4)  # A1, B3, and B4 for each that leaves
        sent = cluster.world.driver.sent
        assert [(b, delete) for b, _, _, delete in stop_replica(sent)] == [
            (1, False),
            (2, False),
            (1, True),
            (2, True),
        ]
        assert leader_and_isr(sent).keys() == {3, 4}
        first = sent[0].partitions[T0]
        assert first.assignment == ReplicaAssignment((3, 4))
        assert (first.leader_and_isr.leader, first.leader_and_isr.isr) == (3, (1, 2, 3, 4))
        context = cluster.active.context
        assert {b: context.replica_state(b, T0) for b in (1, 2, 3, 4)} == {
            1: ReplicaState.NON_EXISTENT,
            2: ReplicaState.NON_EXISTENT,
            3: ReplicaState.ONLINE,
            4: ReplicaState.ONLINE,
        }
        assert not context.cluster.partitions_being_reassigned

    def test_with_its_target_down_it_waits_and_takes_four_epochs_in_all(self) -> None:
        cluster = Cluster((1,), brokers=(1, 3)).start()
        cluster.ask({T0: (2,)})
        assert cluster.leadership() == (1, (1,), 1)
        cluster.start_broker(2)
        assert cluster.leadership() == (1, (1,), 2)
        cluster.sync(1, 2)
        assert cluster.leadership() == (2, (2,), 4)
        assert cluster.requested() is None

    def test_a_shrink_needs_no_waiting(self) -> None:
        cluster = Cluster((1, 2, 3)).start()
        cluster.move(1, 2)
        assert cluster.stored() == ReplicaAssignment((1, 2))
        assert cluster.leadership() == (1, (1, 2), 2)
        assert writes(cluster)[0] == paths.topic("t"), "a successor must find what was begun"

    def test_the_state_znode_is_watched_as_long_as_it_lasts(self) -> None:
        cluster = Cluster((1,)).start()
        cluster.move(2)
        cluster.world.driver.client.take_events()
        cluster.sync(1)
        changed = WatchedEvent(WatchedEventType.NODE_DATA_CHANGED, paths.partition_state(T0))
        assert changed in cluster.world.driver.client.take_events()
        cluster.change_isr(1, 2)
        assert changed in cluster.world.driver.client.take_events()

    def test_where_leaders_ask_the_controller_no_state_znode_is_watched(self) -> None:
        cluster = Cluster((1,))
        cluster.world.driver.inter_broker_protocol = (2, 8)
        cluster.start()
        cluster.move(2)
        cluster.world.driver.client.take_events()
        cluster.change_isr(1, 2)
        assert cluster.world.driver.client.take_events() == []

    def test_as_long_as_no_target_replica_can_lead_nothing_is_removed(self) -> None:
        cluster = Cluster((1,)).start()
        cluster.move(2)
        cluster.change_isr(1, 2)
        cluster.world.stop_broker(2)  # of which the controller has heard
        cluster.active.context.remove_live_brokers([2])
        cluster.notify(T0)
        assert cluster.stored() == ReplicaAssignment((2, 1), (2,), (1,))
        assert cluster.leadership() == (1, (1, 2), 1)
        assert stop_replica(cluster.world.driver.sent) == []
        cluster.start_broker(2)
        assert cluster.stored() == ReplicaAssignment((2,))

    def test_a_leader_that_drops_a_target_at_the_last_moment_is_heeded(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.move(2, 3)
        cluster.change_isr(1, 2, 3)
        cluster.world.driver.before = once(zk_effects.Write, lambda: cluster.change_isr(1, 2))
        cluster.world.run(process_partition_reassignment_isr_change(cluster.active, [T0]))
        assert cluster.stored().is_being_reassigned
        assert cluster.leadership() == (1, (1, 2), 1)
        assert stop_replica(cluster.world.driver.sent) == []

    def test_an_isr_that_cannot_be_read_keeps_the_replicas(self) -> None:
        cluster = Cluster((1,)).start()
        cluster.move(2)
        cluster.change_isr(1, 2)
        state = cluster.world.node(paths.partition_state(T0))
        cluster.active.context.cluster.set_leadership({T0: cluster.state()})
        cluster.world.put(paths.partition_state(T0), b"{")
        cluster.notify(T0)
        assert cluster.stored().is_being_reassigned
        assert stop_replica(cluster.world.driver.sent) == []
        cluster.world.put(paths.partition_state(T0), state.data)
        cluster.notify(T0)
        assert cluster.stored() == ReplicaAssignment((2,))

    def test_what_cannot_be_noted_costs_one_epoch_a_minute_until_it_can(self) -> None:
        """The watch on the state reports each attempt: it must not lead to the next one."""
        cluster = Cluster((1, 2)).start()
        client = take_rights(cluster.world, ("/regent", Right.CREATE))
        cluster.move(2, 3)
        cluster.sync(1, 2, 3)
        cluster.world.run(process_partition_reassignment_isr_change(cluster.active, [T0]))
        assert cluster.leadership() == (2, (2, 3), 3)
        assert cluster.stored().is_being_reassigned
        client.missing.clear()
        cluster.world.run(process_watch_check(cluster.active))
        assert cluster.stored() == ReplicaAssignment((2, 3))
