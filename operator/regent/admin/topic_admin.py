"""Knowledge for writing topics, and the condition on which ZooKeeper accepts the writes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from regent.admin.replica_assignment import BrokerRack
from regent.cluster.facts import ClusterFacts
from regent.cluster.known_broker_facts import KnownBrokerFacts
from regent.model.log import StructuredLog
from regent.zk_data.operations import Check


class Chance:
    """Randomness that is passed in, so that a simulation replays.

    Attributes:
        below: Returns a number from 0 up to, but not including, its argument.
        topic_id: Returns a new topic id.
    """

    def __init__(self, below: Callable[[int], int], topic_id: Callable[[], uuid.UUID]) -> None:
        self.below = below
        self.topic_id = topic_id


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAdmin:
    """Made for each batch of commands, by a controller or by a client of one.

    Attributes:
        guard: Begins each transaction. If this check fails, another process has taken over.
        inter_broker_protocol: Lowest inter.broker.protocol.version of the brokers, (major, minor).
        live: Live brokers, without those that are shutting down.
        cordoned: Brokers that get no new replicas as long as there are enough others.
        deleting: Topics that are being deleted.
        throttled: Topics of which a throttled move owns the lists of throttled replicas.
        default_replication_factor: For topics that ask for none.
        jute_max_buffer: ``jute.maxbuffer`` of the ZooKeeper servers, in bytes.
    """

    cluster: ClusterFacts
    broker_facts: KnownBrokerFacts
    guard: Check
    inter_broker_protocol: tuple[int, int]
    live: Sequence[int]
    cordoned: Collection[int]
    deleting: Collection[str]
    throttled: Collection[str]
    default_replication_factor: int
    jute_max_buffer: int
    chance: Chance
    log: StructuredLog

    def brokers_for_new_replicas(self, *, replication_factor: int) -> list[BrokerRack]:
        """Live brokers that new partitions are placed on.

        Cordoned ones are among them only where the others are too few for the replication factor: a
        topic that cannot be created costs more than a replica that must move later.
        """
        live = broker_racks(self.cluster, self.live)
        others = [broker for broker in live if broker.broker_id not in self.cordoned]
        return others if others and len(others) >= replication_factor else live


def broker_racks(cluster: ClusterFacts, broker_ids: Sequence[int]) -> list[BrokerRack]:
    """Registered brokers with their racks."""
    return [BrokerRack(b, cluster.brokers[b].rack) for b in broker_ids]
