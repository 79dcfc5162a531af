"""What is known about a BrokerDrain when it is reconciled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from regent.controller.view import PartitionView, TopicView
from regent.model.partition import TopicPartition
from regent.reconcile.drains.claims import DrainClaim
from regent.reconcile.reassignments.copies import CopyLedger
from regent.reconcile.reassignments.request import RefusedMove, SentMove
from regent.reconcile.request import ResourceRequest
from regent.resources.broker_drain import BrokerDrain
from regent.resources.broker_drain_status import Remaining


class Hosted(NamedTuple):
    """A partition that has a replica on one of the brokers."""

    topic: TopicView
    partition: PartitionView

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic.name, self.partition.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequest(ResourceRequest[BrokerDrain]):
    """Everything that is known about a BrokerDrain.

    Attributes:
        hosted_topics: Names of the topics that have replicas on one of the brokers.
        configs: Explicit configurations of topics, as far as they were read.
        moving: All partitions of the cluster that are being reassigned, by whomever.
        sent: What was sent for any resource and does not show yet.
        refused: What was refused for this one.
        moved_by_others: Partitions that a PartitionReassignment moves, each with its name.
        claims: Of all BrokerDrains that have one of the brokers, this one included.
        copies: What the brokers have said about copies.
    """

    hosted_topics: tuple[str, ...]
    configs: Mapping[str, Mapping[str, str]]
    moving: Mapping[TopicPartition, PartitionView]
    sent: Mapping[TopicPartition, SentMove]
    refused: Mapping[TopicPartition, RefusedMove]
    moved_by_others: Mapping[TopicPartition, str] = field(default_factory=dict)
    claims: tuple[DrainClaim, ...] = ()
    copies: CopyLedger = field(default_factory=CopyLedger)

    @property
    def brokers(self) -> frozenset[int]:
        """The brokers that are drained."""
        return frozenset(self.resource.spec.brokers)

    @property
    def is_cordoned(self) -> bool:
        """Whether the controller places no new replicas on them."""
        return self.brokers <= frozenset(self.view.cordoned)

    def hosted(self) -> Iterator[Hosted]:
        """The partitions that have replicas on them, in the order of topics and partitions."""
        brokers = self.brokers
        for name in sorted(self.hosted_topics):
            topic = self.view.topics.get(name)
            for partition in () if topic is None else topic.partitions:
                if topic is not None and not brokers.isdisjoint(partition.replicas):
                    yield Hosted(topic, partition)

    def is_usable(self, broker_id: int) -> bool:
        """Whether a broker is alive, stays so, is reached by the controller, and is not one of
        those that are drained."""
        view = self.view
        return (
            broker_id in view.brokers
            and broker_id not in view.shutting_down
            and broker_id not in view.unreached
            and broker_id not in self.resource.spec.brokers
        )


def remaining(request: DrainRequest) -> Remaining:
    """What the brokers still have."""
    leaders = replicas = 0
    brokers = request.brokers
    for _, partition in request.hosted():
        replicas += sum(replica in brokers for replica in partition.replicas)
        leaders += partition.leader in brokers or partition.replicas[0] in brokers
    return Remaining(leaders=leaders, replicas=replicas)
