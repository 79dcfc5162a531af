"""A cluster in which partitions are moved, for the tests of reassignments."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from regent.admin.commands import Accepted, AlterPartitionReassignments, PartitionResult
from regent.controller.active_controller import ActiveController
from regent.controller.partitions.isr_changes import process_isr_change_notification
from regent.controller.reassignment.reassignment_changes import (
    process_partition_reassignment_isr_change,
    process_zk_partition_reassignment,
)
from regent.controller.topics.topic_commands import process_commands
from regent.model.partition import FoundPartition, LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.operations import SetData
from regent.zk_data.reassign_partitions import (
    decode_reassign_partitions,
    encode_reassign_partitions,
)
from regent.zk_data.topics import encode_partition_state
from tests.support.broker_znodes import encode_isr_change_notification
from tests.unit.controller.world import T0, World

EPOCH = 5
Targets = Mapping[TopicPartition, tuple[int, ...] | None]


class Cluster:
    """Brokers 1 to 5, a topic, and a controller that has loaded everything."""

    def __init__(
        self,
        *assignments: tuple[int, ...] | ReplicaAssignment,
        isr: tuple[int, ...] | None = None,
        leader: int | None = None,
        brokers: tuple[int, ...] = (1, 2, 3, 4, 5),
    ) -> None:
        self.world = World()
        self.world.driver.inter_broker_protocol = (2, 6)
        self.world.start_broker(*brokers)
        self.world.create_topic("t", dict(enumerate(assignments)))
        for partition, assignment in enumerate(assignments):
            full = assignment if isinstance(assignment, tuple) else assignment.replicas
            members = isr or full
            self.world.set_state(
                TopicPartition("t", partition), leader or members[0], members, leader_epoch=EPOCH
            )

    def fail_over(self) -> ActiveController:
        """Elect and load; what it sent for its own sake is forgotten."""
        self.active = self.world.fail_over()
        return self.active

    def start(self) -> Cluster:
        """Fail over and forget what that has led to."""
        self.fail_over()
        self.forget()
        return self

    def forget(self) -> None:
        self.world.forget()

    def alter(
        self,
        targets: Targets,
        found: Mapping[TopicPartition, FoundPartition] | None = None,
        *,
        throttle: int | None = None,
    ) -> dict[TopicPartition, PartitionResult]:
        """Ask by command. The result of each partition."""
        command = AlterPartitionReassignments(targets, found or {}, throttle)
        (outcome,) = self.world.run(process_commands(self.active, [command]))
        assert isinstance(outcome, Accepted), outcome
        results: dict[TopicPartition, PartitionResult] = outcome.result
        return results

    def move(self, *target: int, partition: int = 0) -> None:
        """Ask by command; it must be accepted."""
        tp = TopicPartition("t", partition)
        assert self.alter({tp: target}) == {tp: PartitionResult()}

    def ask(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Ask as Kafka's tool does, and let the controller hear of it."""
        self.world.put(paths.REASSIGN_PARTITIONS, encode_reassign_partitions(targets))
        self.world.run(process_zk_partition_reassignment(self.active))

    def requested(self) -> dict[TopicPartition, tuple[int, ...]] | None:
        """What the request node still asks for; None if there is no node."""
        node = self.world.zookeeper.get(paths.REASSIGN_PARTITIONS)
        return None if node is None else decode_reassign_partitions(node.data).targets

    def change_isr(self, *isr: int, tp: TopicPartition = T0) -> None:
        """The leader changes the ISR in ZooKeeper."""
        state = self.state(tp)
        self.world.put(
            paths.partition_state(tp),
            encode_partition_state(msgspec.structs.replace(state, isr=isr)),
        )

    def sync(self, *isr: int, tp: TopicPartition = T0) -> None:
        """The leader changes the ISR, and a watch reports it."""
        self.change_isr(*isr, tp=tp)
        self.world.run(process_partition_reassignment_isr_change(self.active, [tp]))

    def notify(self, *partitions: TopicPartition) -> None:
        """A leader has notified of ISR changes."""
        self.world.put(
            paths.isr_change_notification("isr_change_0000000001"),
            encode_isr_change_notification(partitions),
        )
        self.world.run(process_isr_change_notification(self.active))

    def start_broker(self, *broker_ids: int) -> None:
        self.world.start_broker(*broker_ids, seen_by=self.active)

    def stop_broker(self, *broker_ids: int) -> None:
        self.world.stop_broker(*broker_ids, seen_by=self.active)

    def state(self, tp: TopicPartition = T0) -> LeaderAndIsr:
        return self.world.state_of(tp)

    def leadership(self, tp: TopicPartition = T0) -> tuple[int, tuple[int, ...], int]:
        """Leader, ISR, and how far the leader epoch has risen."""
        state = self.state(tp)
        return state.leader, state.isr, state.leader_epoch - EPOCH

    def stored(self, partition: int = 0) -> ReplicaAssignment:
        """The assignment in the topic node, which the context must share."""
        stored = self.world.topic("t").assignments[partition]
        known = self.active.context.cluster.assignment(TopicPartition("t", partition))
        assert known == stored
        return stored


def writes(cluster: Cluster) -> list[str]:
    """Paths of the nodes that the controller has changed, in order."""
    return [
        operation.path
        for effect in cluster.world.driver.performed
        if isinstance(effect, zk_effects.Write)
        for operation in effect.operations
        if isinstance(operation, SetData)
    ]
