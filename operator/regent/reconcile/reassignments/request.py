"""What is known about a PartitionReassignment when it is reconciled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from regent.controller.view import PartitionView
from regent.model.partition import TopicPartition
from regent.model.topic_name_rules import TopicNameRules
from regent.planning.orders import PlanningOutcome
from regent.reconcile.reassignments.copies import CopyLedger
from regent.reconcile.reassignments.move_plan import Move
from regent.reconcile.request import ResourceRequest
from regent.resources.partition_reassignment import PartitionReassignment


@dataclass(frozen=True, slots=True)
class SentMove:
    """A change of a partition's replicas that was sent to the controller and does not show in the
    view yet.

    Attributes:
        target: The replicas that were asked for.
        copies: Brokers that get a copy.
        leader: Broker that sends the copies, -1 if none was known.
        until: Monotonic seconds until which it is taken for under way.
    """

    target: tuple[int, ...]
    copies: tuple[int, ...]
    leader: int
    until: float


@dataclass(frozen=True, slots=True)
class RefusedMove:
    """A change of a partition's replicas that the controller has refused.

    Attributes:
        retry_at: Monotonic seconds at which it may be sent again.
        count: How often it was refused in a row.
    """

    target: tuple[int, ...]
    message: str
    retry_at: float
    count: int = 1


@dataclass(frozen=True, slots=True)
class DeclaredReplicas:
    """The replication factor that a KafkaTopic keeps its topic at.

    Attributes:
        by: Namespace and name of the KafkaTopic.
    """

    by: str
    replicas: int


@dataclass(frozen=True, slots=True)
class HeldUp:
    """Another PartitionReassignment that has begun, and does not go on by itself.

    Attributes:
        name: Its namespace and name.
        waits_for: What it waits for, for people.
        partitions: Those of its plan that have not arrived.
    """

    name: str
    waits_for: str
    partitions: tuple[TopicPartition, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """Those of its partitions, each once."""
        return tuple(dict.fromkeys(tp.topic for tp in self.partitions))


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The other PartitionReassignments that are executed, for a plan of the whole cluster.

    Attributes:
        going_on: Names of those that move partitions, or are about to.
        held_up: Those that do not.
    """

    going_on: tuple[str, ...] = ()
    held_up: tuple[HeldUp, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentRequest(ResourceRequest[PartitionReassignment]):
    """Everything that is known about a PartitionReassignment.

    Attributes:
        topics: Names of the topics that it is about.
        configs: Explicit configurations of topics, as far as they were read.
        moving: All partitions of the cluster that are being reassigned, by whomever.
        sent: What was sent for any PartitionReassignment and does not show yet.
        refused: What was refused for this one.
        moved_by_others: Partitions that another PartitionReassignment moves, each with its name.
        under_way: What else is executed; empty unless a plan of the whole cluster is to be made.
        declared: By topic: what a KafkaTopic says of the number of replicas.
        name_rules: Which namespaces may declare, and so move, which topics.
        planned: What has come of the plan that was ordered for it last; None: nothing yet.
        copies: What the brokers have said about copies.
        waits_for_leaders: Whether it is not over before those that lead what has arrived have
            answered that they do.
    """

    topics: tuple[str, ...]
    configs: Mapping[str, Mapping[str, str]]
    moving: Mapping[TopicPartition, PartitionView]
    sent: Mapping[TopicPartition, SentMove]
    refused: Mapping[TopicPartition, RefusedMove]
    moved_by_others: Mapping[TopicPartition, str] = field(default_factory=dict)
    under_way: UnderWay = field(default_factory=UnderWay)
    declared: Mapping[str, DeclaredReplicas] = field(default_factory=dict)
    name_rules: TopicNameRules = field(default_factory=TopicNameRules)
    planned: PlanningOutcome | None = None
    copies: CopyLedger = field(default_factory=CopyLedger)
    waits_for_leaders: bool = True

    def is_sent(self, tp: TopicPartition, target: tuple[int, ...]) -> bool:
        """Whether this change was sent a moment ago."""
        sent = self.sent.get(tp)
        return sent is not None and sent.target == target and sent.until > self.monotonic_s

    def may_ask_for(self, tp: TopicPartition, target: tuple[int, ...]) -> bool:
        """Whether this change was neither sent a moment ago, nor refused."""
        refused = self.refused.get(tp)
        waits = refused is not None and refused.retry_at > self.monotonic_s
        return not waits and not self.is_sent(tp, target)

    def waits_for(self, move: Move) -> str | None:
        """That another PartitionReassignment moves the partition; None: none does."""
        other = self.moved_by_others.get(move.tp)
        if other is None:
            return None
        return f"PartitionReassignment {other} moves it; this one waits until that is over"

    def undone_by(self, move: Move) -> str | None:
        """That a KafkaTopic would restore the number of replicas; None: none would."""
        declared = self.declared.get(move.topic)
        if declared is None or declared.replicas == len(move.target):
            return None
        if len(move.target) == len(move.replicas):
            return None
        return (
            f"KafkaTopic {declared.by} declares {declared.replicas} replicas and would restore "
            f"them; set spec.replicas there instead, or remove the field first"
        )
