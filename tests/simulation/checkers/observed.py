"""What the checkers remember of the past: more than ZooKeeper has."""

from __future__ import annotations

from dataclasses import dataclass, field

from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition

BY_HAND = -1
"""Stands for the controller epoch under which something was deleted by somebody else."""


@dataclass
class Observed:
    """What has been observed so far.

    Attributes:
        is_epoch_rewritten: Whether somebody has ever written another epoch into its node.
        assignments: As the topic nodes have them, or had them when they were last readable.
        history: Every state of a partition since its creation; the index is the version.
        set_back_from: Version that the state of a partition had when somebody created it again.
        announced: Partition and leader epoch -> the leader that brokers were sent.
        deleted_under: Topic -> controller epoch under which its node was deleted, or ``BY_HAND``.
        configured_at: Topic -> line of the trace at which its configuration was last written.
        meant_by_marker: Marked topic -> czxid of the node that the marker names, 0: none.
        misplaced: Partitions whose state was decided for a topic that somebody replaced before it
            was written. So it is that of the next one, of which perhaps nobody can lead it.
        left: Replicas that left by a reassignment under another controller than Regent.
    """

    epoch: int = 0
    is_epoch_rewritten: bool = False
    last_zxid: int = 0
    assignments: dict[TopicPartition, ReplicaAssignment] = field(default_factory=dict)
    history: dict[TopicPartition, list[LeaderAndIsr]] = field(default_factory=dict)
    set_back_from: dict[TopicPartition, int] = field(default_factory=dict)
    announced: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    ever_created: dict[str, None] = field(default_factory=dict)
    deleted_under: dict[str, int] = field(default_factory=dict)
    configured_at: dict[str, int] = field(default_factory=dict)
    default_configured_at: int = -1
    removed_by_hand: dict[str, None] = field(default_factory=dict)
    meant_by_marker: dict[str, int] = field(default_factory=dict)
    misplaced: dict[TopicPartition, None] = field(default_factory=dict)
    unregistered_by_hand: dict[int, None] = field(default_factory=dict)
    left: dict[tuple[int, TopicPartition], None] = field(default_factory=dict)

    def replicas(self, tp: TopicPartition) -> tuple[int, ...] | None:
        """The assigned replicas, None of an unknown partition."""
        assignment = self.assignments.get(tp)
        return None if assignment is None else assignment.replicas

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return [tp for tp in self.assignments if tp.topic == topic]

    def forget_topic(self, topic: str) -> None:
        """The topic is deleted, or created again."""
        for tp in self.partitions_of(topic):
            del self.assignments[tp]
        for tp in [tp for tp in self.history if tp.topic == topic]:
            del self.history[tp]
        self.announced = {k: v for k, v in self.announced.items() if k[0].topic != topic}
