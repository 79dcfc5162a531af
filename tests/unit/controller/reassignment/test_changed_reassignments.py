"""Reassignments that get another target, are cancelled, or whose topic changes meanwhile."""

from __future__ import annotations

from regent.controller.brokers.answers import (
    process_describe_log_dirs_response,
    process_stop_replica_responses,
)
from regent.controller.state.states import ReplicaState
from regent.model.partition import ReplicaAssignment
from regent.protocol.control_requests import (
    DescribeLogDirsResponse,
    StopReplicaPartition,
    StopReplicaResponse,
)
from regent.zk_data import paths
from regent.zk_data.stray_replicas import strays_of
from tests.unit.controller.closed_client import Right, take_rights
from tests.unit.controller.reassignment.moving import Cluster, writes
from tests.unit.controller.world import T0, leader_and_isr, stop_replica


class TestChangeOfMind:
    def test_cancelled_the_new_replica_leaves_the_isr_and_is_deleted(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.move(3, 4)
        cluster.sync(1, 2, 3)
        cluster.forget()
        assert cluster.alter({T0: None})[T0].error_code == 0
        assert cluster.stored() == ReplicaAssignment((1, 2))
        assert cluster.leadership() == (1, (1, 2), 2)
        sent = cluster.world.driver.sent
        assert [(b, e, d) for b, _, e, d in stop_replica(sent)] == [
            (3, 7, False),
            (4, 7, False),
            (3, 7, True),
            (4, 7, True),
        ], "with an epoch that brokers have not been sent: brokers refuse one that they know"
        assert leader_and_isr(sent) == {1: {T0: False}, 2: {T0: False}}
        assert writes(cluster) == [paths.partition_state(T0), paths.topic("t")]

    def test_the_answer_to_an_earlier_deletion_says_nothing_about_a_later_one(self) -> None:
        """A replica is created again before its broker's answer comes, and leaves again."""
        cluster = Cluster((1,)).start()
        deletions = []
        for _ in range(2):
            cluster.move(3)
            cluster.forget()
            assert cluster.alter({T0: None})[T0].error_code == 0
            (asked,) = (s for s in stop_replica(cluster.world.driver.sent) if s[3])
            deletions.append(asked)
        for (broker_id, tp, epoch, _), is_noted in zip(deletions, (True, False), strict=True):
            deleted = {tp: StopReplicaPartition(epoch, delete=True)}
            answer = StopReplicaResponse(broker_id, 0, {}, deleted)
            cluster.world.run(process_stop_replica_responses(cluster.active, [answer]))
            disks = DescribeLogDirsResponse(broker_id, 0, {"/data": 0})
            cluster.world.run(process_describe_log_dirs_response(cluster.active, disks))
            assert cluster.world.exists(strays_of(3, "t")) is is_noted

    def test_the_only_replica_in_sync_is_not_deleted(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.move(3, 4)
        cluster.world.set_state(T0, 3, (3,), leader_epoch=9)
        cluster.forget()
        before = cluster.world.zookeeper.dump()
        refused = cluster.alter({T0: None})[T0]
        assert refused.error_code == 39
        assert "none of the replicas that would stay is in sync" in refused.message
        assert cluster.world.zookeeper.dump() == before
        assert cluster.world.driver.sent == []
        assert cluster.stored() == ReplicaAssignment((3, 4, 1, 2), (3, 4), (1, 2))

    def test_the_only_live_leader_is_not_taken_away(self) -> None:
        cluster = Cluster((1, 9)).start()
        cluster.move(3, 4)
        cluster.world.set_state(T0, 3, (9, 3), leader_epoch=9)
        refused = cluster.alter({T0: None})[T0]
        assert refused.error_code == 39
        assert "is live" in refused.message
        assert cluster.state().leader == 3

    def test_another_target_removes_what_was_added_for_the_first(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.move(3, 4)
        cluster.forget()
        cluster.move(4, 5)
        assert cluster.stored() == ReplicaAssignment((4, 5, 1, 2), (4, 5), (1, 2))
        sent = cluster.world.driver.sent
        assert [(b, delete) for b, _, _, delete in stop_replica(sent)] == [(3, False), (3, True)]
        assert leader_and_isr(sent) == {
            1: {T0: False},
            2: {T0: False},
            4: {T0: True},
            5: {T0: True},
        }
        assert cluster.leadership() == (1, (1, 2), 2)
        context = cluster.active.context
        assert context.replica_state(3, T0) is ReplicaState.NON_EXISTENT

    def test_what_cannot_be_stored_goes_on_to_its_former_target(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.move(3, 4)
        good = cluster.world.node(paths.topic("t"))
        cluster.world.put(paths.topic("t"), b'{"partitions":{"0":[1],"1":["x"]}}')
        assert cluster.alter({T0: None})[T0].error_code == -1
        cluster.world.put(paths.topic("t"), good.data)
        assert cluster.stored() == ReplicaAssignment((3, 4, 1, 2), (3, 4), (1, 2))
        cluster.sync(1, 2, 3, 4)
        stored = cluster.world.topic("t").assignments
        assert stored == {0: ReplicaAssignment((3, 4))}


class TestTopicNode:
    def test_a_write_whose_answer_was_lost_is_recognized(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.move(2, 3)
        cluster.change_isr(1, 2, 3)
        cluster.world.create_topic("t", {0: ReplicaAssignment((2, 3))})
        cluster.notify(T0)
        assert cluster.stored() == ReplicaAssignment((2, 3))

    def test_another_topic_of_that_name_is_left_as_it_is(self) -> None:
        """Somebody has deleted the node and created another one, which the controller learns of
        later. Its version says nothing: it begins at 0, as that of the former one did."""
        cluster = Cluster((1, 2)).start()
        cluster.world.delete(paths.topic("t"))
        cluster.world.create_topic("t", {0: (3, 4)})
        result = cluster.alter({T0: (2, 3)})[T0]
        assert result.error_code != 0
        assert "another one of its name" in str(result.message)
        stored = cluster.world.topic("t").assignments
        assert stored == {0: ReplicaAssignment((3, 4))}

    def test_one_that_may_not_be_read_is_no_other_topic(self) -> None:
        cluster = Cluster((1, 2)).start()
        take_rights(cluster.world, (paths.topic("t"), Right.READ))
        result = cluster.alter({T0: (2, 3)})[T0]
        assert result.error_code != 0
        assert "the right to read it is missing" in str(result.message)


class TestDeletion:
    def test_a_topic_that_is_to_be_deleted_is_not_moved_any_further(self) -> None:
        cluster = Cluster((1,), brokers=(1, 2)).start()
        cluster.ask({T0: (2, 9)})
        cluster.forget()
        cluster.world.mark_for_deletion("t", seen_by=cluster.active)
        context = cluster.active.context
        assert not context.cluster.partitions_being_reassigned
        assert cluster.requested() is None
        deleted = [b for b, _, _, delete in stop_replica(cluster.world.driver.sent) if delete]
        assert deleted == [2, 1], "what was being added, too"
        assert context.deletion_progress("t").replicas == 3
        cluster.sync(1, 2)
        assert context.cluster.replicas(T0) == (2, 9, 1)

    def test_an_answer_about_a_replica_that_was_moved_away_does_not_count(self) -> None:
        """It came back, and is now deleted with its topic."""
        cluster = Cluster((1, 2)).start()
        cluster.move(1)
        late = stop_replica(cluster.world.driver.take_sent())[-1]
        cluster.move(1, 2)
        cluster.world.mark_for_deletion("t", seen_by=cluster.active)
        assert cluster.active.context.replica_state(2, T0) is ReplicaState.DELETION_STARTED
        broker_id, tp, epoch, delete = late
        response = StopReplicaResponse(broker_id, 0, {}, {tp: StopReplicaPartition(epoch, delete)})
        cluster.world.run(process_stop_replica_responses(cluster.active, [response]))
        assert cluster.active.context.replica_state(2, T0) is ReplicaState.DELETION_STARTED
