"""Reassignments by command and by Kafka's tools: what is refused, and who wins."""

from __future__ import annotations

import pytest

from regent.admin.commands import Accepted
from regent.controller.commands import ListPartitionReassignments
from regent.controller.reassignment.reassignment_changes import process_zk_partition_reassignment
from regent.controller.topics.topic_commands import process_commands
from regent.model.partition import FoundPartition, ReplicaAssignment, TopicPartition
from regent.zk_data import paths
from regent.zk_data.operations import WatchedEvent
from tests.unit.controller.reassignment.moving import Cluster, Targets
from tests.unit.controller.world import CONTROLLER_ID, T0, T1

U0 = TopicPartition("u", 0)


class TestCommands:
    @pytest.mark.parametrize(
        ("targets", "code", "message"),
        [
            ({T0: ()}, 39, "empty"),
            ({T0: (2, 2)}, 39, "twice"),
            ({T0: (2, -3)}, 39, "negative"),
            ({T0: (2, 9)}, 39, "on brokers [9], which are not live; live are [1, 2, 3, 4, 5]"),
            ({T0: None}, 85, "t-0 is not being reassigned"),
            ({U0: (1, 2)}, 3, "does not exist"),
            ({U0: None}, 3, "does not exist"),
            ({TopicPartition("t", 7): (1, 2)}, 3, "does not exist"),
        ],
    )
    def test_a_refusal_says_why_and_disturbs_no_other(
        self, targets: Targets, code: int, message: str
    ) -> None:
        cluster = Cluster((1, 2), (1, 2)).start()
        results = cluster.alter({**targets, T1: (2, 3)})
        (refused,) = targets
        assert results[refused].error_code == code
        assert message in results[refused].message
        assert results[T1].error_code == 0
        assert cluster.stored(0) == ReplicaAssignment((1, 2))
        assert cluster.stored(1) == ReplicaAssignment((2, 3, 1), (3,), (1,))

    def test_a_partition_that_somebody_else_moves_by_now_is_left_alone(self) -> None:
        cluster = Cluster((1, 2), (1, 2)).start()
        found = {tp: FoundPartition(0, ReplicaAssignment((1, 2))) for tp in (T0, T1)}
        cluster.move(4, 5)
        results = cluster.alter({T0: (1, 3), T1: (1, 3)}, found)
        assert results[T0].error_code == 39
        assert "changed at the same moment" in results[T0].message
        assert cluster.stored(0).target_replicas == (4, 5)
        assert results[T1].error_code == 0

    def test_what_is_asked_for_again_stays_on_its_way(self) -> None:
        cluster = Cluster((1, 2)).start()
        found = {T0: FoundPartition(0, ReplicaAssignment((1, 2)))}
        cluster.move(1, 3)
        assert cluster.alter({T0: (1, 3)}, found)[T0].error_code == 0
        assert cluster.stored().target_replicas == (1, 3)

    def test_another_topic_of_the_same_name_is_not_moved(self) -> None:
        cluster = Cluster((1, 2)).start()
        czxid = cluster.active.context.cluster.topic_czxids["t"]
        found = FoundPartition(czxid - 1, ReplicaAssignment((1, 2)))
        assert cluster.alter({T0: (1, 3)}, {T0: found})[T0].error_code == 3
        assert cluster.stored() == ReplicaAssignment((1, 2))
        assert cluster.alter({T0: (1, 3)}, {T0: found._replace(czxid=czxid)})[T0].error_code == 0

    def test_what_is_being_moved_is_listed(self) -> None:
        cluster = Cluster((1, 2), (1, 2), (1, 2)).start()
        cluster.alter({T0: (2, 3), T1: (2, 3)})

        def listed(*partitions: TopicPartition) -> object:
            command = ListPartitionReassignments(partitions or None)
            (outcome,) = cluster.world.run(process_commands(cluster.active, [command]))
            assert isinstance(outcome, Accepted)
            return outcome.result

        moving = ReplicaAssignment((2, 3, 1), (3,), (1,))
        assert listed() == {T0: moving, T1: moving}
        assert listed(T1, TopicPartition("t", 2), U0) == {T1: moving}

    def test_the_last_word_counts_over_the_request_node(self) -> None:
        cluster = Cluster((1, 2), (1, 2)).start()
        cluster.ask({T0: (2, 3), T1: (2, 3)})
        cluster.move(2, 4)
        assert cluster.requested() == {T1: (2, 3)}
        assert cluster.stored().target_replicas == (2, 4)


class TestRequestNode:
    def test_partitions_leave_it_one_by_one_and_it_goes_with_the_last(self) -> None:
        cluster = Cluster((1,), (1,)).start()
        cluster.ask({T0: (2,), T1: (3,)})
        assert cluster.requested() == {T0: (2,), T1: (3,)}
        cluster.sync(1, 2)
        assert cluster.requested() == {T1: (3,)}
        cluster.sync(1, 3, tp=T1)
        assert cluster.requested() is None
        assert cluster.stored(0) == ReplicaAssignment((2,))

    def test_the_next_request_is_heard_whatever_happened_to_the_last(self) -> None:
        cluster = Cluster((1,), (1,)).start()

        def heard() -> bool:
            told = cluster.world.driver.client.take_events()
            return any(
                isinstance(event, WatchedEvent) and event.path == paths.REASSIGN_PARTITIONS
                for event in told
            )

        cluster.ask({T0: (2,)})
        assert heard()
        cluster.sync(1, 2)
        assert heard(), "its deletion, by us"
        cluster.world.run(process_zk_partition_reassignment(cluster.active))
        cluster.ask({T1: (2,)})
        assert heard()

    def test_what_is_unknown_malformed_or_being_deleted_is_dropped(self) -> None:
        cluster = Cluster((1, 2), (1, 2))
        cluster.world.create_topic("u", {0: (1, 9)})
        cluster.start()
        cluster.world.mark_for_deletion("u", seen_by=cluster.active)
        nobody = TopicPartition("nobody", 0)
        cluster.ask({nobody: (1,), U0: (1,), T0: (), T1: (2, 3)})
        assert cluster.requested() == {T1: (2, 3)}
        assert [r.message for r in cluster.world.log.records if r.level == "warning"] == [
            "Reassignments refused"
        ]

    def test_a_request_of_nothing_is_removed(self) -> None:
        """Kafka's tools would not begin another reassignment."""
        cluster = Cluster((1, 2)).start()
        cluster.world.put(paths.REASSIGN_PARTITIONS, b'{"version":1,"partitions":[]}')
        cluster.world.run(process_zk_partition_reassignment(cluster.active))
        assert cluster.requested() is None

    def test_a_node_that_cannot_be_read_is_left_alone(self) -> None:
        cluster = Cluster((1, 2))
        cluster.world.put(paths.REASSIGN_PARTITIONS, b"{")
        cluster.start()
        assert cluster.world.log.errors("Malformed reassignment skipped")
        assert cluster.world.exists(paths.REASSIGN_PARTITIONS)
        cluster.move(2, 3)
        cluster.sync(1, 2, 3)
        assert cluster.stored() == ReplicaAssignment((2, 3))
        cluster.world.driver.client.take_events()
        cluster.ask({T0: (3, 4)})
        assert cluster.stored().target_replicas == (3, 4)

    @pytest.mark.parametrize("target", [(99,), (1, 99), (99, 2), (99, 2**31 - 1)])
    def test_a_broker_that_does_not_exist_costs_nothing_but_waiting(
        self, target: tuple[int, ...]
    ) -> None:
        """Kafka's controller accepts it, too: its tools refuse it before they ask. Clients notice
        nothing, it survives a failover, and asking for the former replicas takes it back."""
        cluster = Cluster((1, 2)).start()
        cluster.ask({T0: target})
        cluster.active = cluster.world.fail_over()
        assert cluster.requested() == {T0: target}
        assert cluster.stored().target_replicas == target
        assert cluster.world.led(T0) == (1, (1, 2))
        assert cluster.active.context.offline_partition_count == 0
        cluster.ask({T0: (1, 2)})
        assert cluster.stored() == ReplicaAssignment((1, 2))
        assert cluster.requested() is None
        assert cluster.world.led(T0) == (1, (1, 2))

    def test_the_controller_is_no_target(self) -> None:
        """Without the endpoint, too: the next election would take its id for a broker's, and leave
        the cluster alone for good."""
        cluster = Cluster((1, 2), (1, 2)).start()
        cluster.ask({T0: (1, CONTROLLER_ID), T1: (1, 3)})
        assert cluster.stored() == ReplicaAssignment((1, 2))
        assert cluster.requested() == {T1: (1, 3)}
        (refused,) = cluster.world.log.warnings("Reassignments refused")
        assert "the controller hosts no replicas" in str(refused["examples"])
