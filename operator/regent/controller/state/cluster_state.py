"""The facts of the cluster, and the knowledge that a controller keeps from term to term.

:class:`ControllerContext` has the knowledge of one term: states of partitions and replicas,
deletions, refusals of brokers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Protocol, Self

from regent.cluster.facts import ClusterFacts
from regent.controller.state.announced_states import AnnouncedStates
from regent.controller.state.causes import ChangeKind
from regent.controller.state.former_partitions import FormerPartitions
from regent.controller.state.given_producer_ids import GivenProducerIds
from regent.controller.state.hosted_replicas import Hosted
from regent.controller.state.vanished_partitions import VanishedPartitions
from regent.model.partition import LeaderAndIsr, TopicPartition

_NO_LEADERSHIP: Mapping[TopicPartition, LeaderAndIsr] = MappingProxyType({})


class LeadershipRecorder(Protocol):
    """Records changes of leadership: the trail of an active controller."""

    def record(
        self,
        kind: ChangeKind,
        changes: Mapping[TopicPartition, LeaderAndIsr | None],
        *,
        known: Mapping[TopicPartition, LeaderAndIsr],
    ) -> None:
        """Leadership is about to change from ``known`` to ``changes``."""
        ...


class ClusterState(ClusterFacts):
    """See the module.

    Attributes:
        inter_broker_protocol: Lowest inter.broker.protocol.version of the brokers, (major, minor).
        unclean_leader_election_default: Cluster-wide default of unclean.leader.election.enable, as
            far as this process has been told.
        static_unclean_leader_election_default: What holds as long as there is no dynamic default.
        announced_states: The values of partitions as brokers are sent them, with their bytes.
        shutting_down: Brokers that have asked to be shut down (ControlledShutdown), in that order.
            Each is registered in the life in which it asked.
        hosted: The partitions of each broker that has any, as they are, if somebody has collected
            them. None once an assignment changes.
        former_partitions: Of topics that were deleted.
        vanished_partitions: Of topics whose nodes somebody else removed.
        given_producer_ids: Which producer ids this process has given away.
        recorder: Is given every change of leadership before it takes place; None: nobody is.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inter_broker_protocol = (0, 0)
        self.unclean_leader_election_default = False
        self.static_unclean_leader_election_default = False
        self.recorder: LeadershipRecorder | None = None
        self.announced_states = AnnouncedStates()
        self.former_partitions = FormerPartitions()
        self.vanished_partitions = VanishedPartitions()
        self.given_producer_ids = GivenProducerIds()
        self.shutting_down: dict[int, None] = {}
        self.hosted: Hosted | None = None
        self._changed_partitions: dict[TopicPartition, None] | None = None
        self._reassigned_topics: dict[str, None] | None = None

    def remove_brokers(self, broker_ids: Collection[int]) -> None:
        super().remove_brokers(broker_ids)
        for broker_id in broker_ids:
            self.shutting_down.pop(broker_id, None)

    # Changes

    def _note_partitions(self, partitions: Collection[TopicPartition]) -> None:
        if self._changed_partitions is not None:
            self._changed_partitions.update(dict.fromkeys(partitions))
        self.announced_states.drop(partitions)

    def _note_reassigned(self, topic: str) -> None:
        self.hosted = None
        self.announced_states.forget_entries(topic)
        if self._reassigned_topics is not None:
            self._reassigned_topics[topic] = None

    def take_changed_partitions(self) -> Collection[TopicPartition] | None:
        """Partitions whose assignment or leadership has changed since this was last called; None,
        the first time: all of them."""
        changed, self._changed_partitions = self._changed_partitions, {}
        return None if changed is None else changed.keys()

    @property
    def changed_partition_count(self) -> int:
        """How many :meth:`take_changed_partitions` would return; 0 if that is None."""
        return len(self._changed_partitions or ())

    @property
    def has_changed_partitions(self) -> bool:
        """Whether :meth:`take_changed_partitions` would return something, or None."""
        return self._changed_partitions is None or bool(self._changed_partitions)

    def expect_all_partitions_changed(self) -> None:
        """As before :meth:`take_changed_partitions` was first called."""
        self._changed_partitions = None

    def take_reassigned_topics(self) -> Collection[str] | None:
        """Topics with other assignments since this was last called, and those that are gone; None,
        the first time: all of them."""
        changed, self._reassigned_topics = self._reassigned_topics, {}
        return None if changed is None else changed.keys()

    @property
    def has_reassigned_topics(self) -> bool:
        """Whether :meth:`take_reassigned_topics` would return something, or None."""
        return self._reassigned_topics is None or bool(self._reassigned_topics)

    def expect_all_topics_reassigned(self) -> None:
        """As before :meth:`take_reassigned_topics` was first called."""
        self._reassigned_topics = None

    def take_hosted(self) -> Hosted | None:
        """What is ``hosted``, which is not kept."""
        taken, self.hosted = self.hosted, None
        return taken

    def take_topics(self, source: Self) -> None:
        super().take_topics(source)
        self.announced_states = source.announced_states
        self.hosted = source.hosted
        self.expect_all_partitions_changed()
        self.expect_all_topics_reassigned()

    # Leadership

    def set_leadership(
        self,
        changes: Mapping[TopicPartition, LeaderAndIsr],
        kind: ChangeKind = ChangeKind.WRITTEN,
        *,
        based_on: Mapping[TopicPartition, LeaderAndIsr] = _NO_LEADERSHIP,
    ) -> None:
        """Leadership has changed.

        Args:
            kind: How it was changed.
            based_on: The states that were read in ZooKeeper for the decision. They may be others
                than were known: an ISR that its leader has changed meanwhile.
        """
        if self.recorder is not None:
            known = self.leadership.get
            surprises = {
                tp: read
                for tp, read in based_on.items()
                if (before := known(tp)) is not read and before != read and tp in changes
            }
            if surprises:
                self.recorder.record(ChangeKind.OBSERVED, surprises, known=self.leadership)
            self.recorder.record(kind, changes, known=self.leadership)
        self.load_leadership(changes)

    def forget_leadership(self, tp: TopicPartition) -> None:
        if self.recorder is not None:
            self.recorder.record(ChangeKind.UNREADABLE, {tp: None}, known=self.leadership)
        super().forget_leadership(tp)
