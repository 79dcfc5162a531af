"""What is known about a PartitionReassignment when it is reconciled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from regent.controller.view import PartitionView
from regent.model.partition import TopicPartition
from regent.model.topic_name_rules import TopicNameRules
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentRequest(ResourceRequest[PartitionReassignment]):
    """Everything that is known about a PartitionReassignment.

    Attributes:
        topics: Names of the topics that it is about.
        configs: Explicit configurations of topics, as far as they were read.
        moving: All partitions of the cluster that are being reassigned, by whomever.
        sent: What was sent for any PartitionReassignment and does not show yet.
        refused: What was refused for this one.
        name_rules: Which namespaces may declare, and so move, which topics.
    """

    topics: tuple[str, ...]
    configs: Mapping[str, Mapping[str, str]]
    moving: Mapping[TopicPartition, PartitionView]
    sent: Mapping[TopicPartition, SentMove]
    refused: Mapping[TopicPartition, RefusedMove]
    name_rules: TopicNameRules = field(default_factory=TopicNameRules)

    def is_sent(self, tp: TopicPartition, target: tuple[int, ...]) -> bool:
        """Whether this change was sent a moment ago."""
        sent = self.sent.get(tp)
        return sent is not None and sent.target == target and sent.until > self.monotonic_s
