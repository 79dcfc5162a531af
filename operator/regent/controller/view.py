"""The immutable picture of the cluster that everything outside the controller works from."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from regent.model.active_regent import ActiveRegent
from regent.model.cluster import Broker
from regent.model.topic_config import BrokerFacts


class PartitionHealth(enum.StrEnum):
    """State of a partition in the partition state machine, for people."""

    NEW = "New"
    ONLINE = "Online"
    OFFLINE = "Offline"


class UnassignedReplica(NamedTuple):
    """A replica that a broker has, and that is not assigned to it.

    Attributes:
        size: Bytes on disk.
    """

    topic: str
    partition: int
    broker_id: int
    size: int


class RefusedReplica(NamedTuple):
    """A broker does not lead, follow or delete a partition as requested.

    Attributes:
        error: Kafka's name of the error that it answered.
    """

    topic: str
    partition: int
    broker_id: int
    error: str


class PartitionView(msgspec.Struct, frozen=True, gc=False):
    """One partition.

    Attributes:
        leader: Broker id, -1 if there is none.
        isr: Empty if the partition never had a leader.
        refusals: Brokers that refuse a request about this partition, each with the name
            of the error.
        throttle: Bytes a second to which Regent throttles its copies; None: it does not, or has
            removed the throttle.
        uninformed: Replicas whose brokers have been out of reach for a while, and have not been
            informed of the leadership.
        on_failed_dirs: Replicas whose brokers are live, and that are on a log directory which has
            failed.
    """

    partition: int
    state: str
    replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    refusals: tuple[tuple[int, str], ...] = ()
    throttle: int | None = None
    uninformed: tuple[int, ...] = ()
    on_failed_dirs: tuple[int, ...] = ()

    @property
    def has_leader(self) -> bool:
        return self.leader >= 0

    @property
    def does_leader_obey(self) -> bool:
        """Whether its leader, if it has one, has been informed and has not refused, as far as is
        known."""
        return self.leader not in self.uninformed and not any(
            broker_id == self.leader for broker_id, _ in self.refusals
        )

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replicas it has once a reassignment under way is over."""
        if not self.removing_replicas:
            return self.replicas
        return tuple(r for r in self.replicas if r not in self.removing_replicas)

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica that stays is missing from the ISR."""
        return any(r not in self.isr for r in self.replicas if r not in self.adding_replicas)


class TopicView(msgspec.Struct, frozen=True):
    """One topic with its partitions in order of their index.

    Attributes:
        deletion_waits_for: Brokers that have not confirmed yet that they deleted their replicas,
            sorted; empty unless the topic is being deleted.
        czxid: Transaction that created the topic's node; 0 if it is not known.
        config_changes: How often its configuration has been changed in this term; nobody counts
            where a broker is the controller.
        batch: Brokers are informed of what is here by batches up to this number.
    """

    name: str
    topic_id: uuid.UUID | None
    partitions: tuple[PartitionView, ...]
    is_being_deleted: bool = False
    deletion_waits_for: tuple[int, ...] = ()
    czxid: int = 0
    config_changes: int = 0
    batch: int = 0

    def is_announced_since(self, batch: int) -> bool:
        """Whether a batch, or a later one, may say what is here: who has not answered it may not
        know that."""
        return batch <= self.batch

    @property
    def replication_factor(self) -> int:
        """The largest number of replicas of any partition, not counting those being added."""
        return max((len(p.replicas) - len(p.adding_replicas) for p in self.partitions), default=0)

    @property
    def is_throttled(self) -> bool:
        """Whether Regent throttles the copies of a partition."""
        return any(p.throttle is not None for p in self.partitions)

    @property
    def leaderless(self) -> int:
        return sum(not p.has_leader for p in self.partitions)

    @property
    def under_replicated(self) -> int:
        return sum(p.is_under_replicated for p in self.partitions)

    @property
    def refused(self) -> tuple[RefusedReplica, ...]:
        """Replicas that their brokers refuse."""
        return tuple(
            RefusedReplica(self.name, p.partition, broker_id, error)
            for p in self.partitions
            for broker_id, error in p.refusals
        )


BrokerIds = tuple[int, ...]


class ClusterView(msgspec.Struct, frozen=True):
    """The cluster as the controller last published it.

    Topics are added to a view after failover piece by piece: ``is_complete`` turns True once all of
    them are in. A view of a process that is not the controller is empty and not active.

    Attributes:
        is_active: Whether this process is the controller.
        controller_id: Id of the active controller as far as known, -1 if there is none.
        controller_epoch: Epoch under which this view was taken; 0 before the first election.
        brokers: Live brokers by id, also those that are shutting down.
        shutting_down: Brokers of those that have asked to be shut down.
        topics: Topics by name, in no order.
        unreadable_topics: Why the nodes of topics cannot be read, wholly or in part, by topic. They
            exist, and may have partitions that ``topics`` does not have.
        broker_facts: What is known of each live broker, and of those that are down and have
            replicas, as far as topic configurations depend on it.
        cluster_id: Id of the Kafka cluster (``/cluster/id``); None if it is not known. What is said
            about a topic holds for this cluster only.
        cordoned: Brokers that get no new replicas as long as there are enough others.
        unreached: Live brokers that have been out of the controller's reach for a while.
        silent: Live brokers that have not answered this controller yet, or do not answer it now.
            What they do is not known, and may be known in a moment.
        unanswered: Brokers that have not answered a request about leadership, each
            with the number of the oldest batch that this was in.
        is_client: Whether a broker is the controller, and this process asks it. What only a
            controller knows is missing then: refusals, brokers that are shutting down.
        active_regent: Another Regent that is the controller, as far as known; None: this process
            is, a broker, or nobody.
    """

    is_active: bool = False
    is_complete: bool = False
    controller_id: int = -1
    controller_epoch: int = 0
    brokers: Mapping[int, Broker] = {}
    topics: Mapping[str, TopicView] = {}
    unreadable_topics: Mapping[str, str] = {}
    cluster_id: str | None = None
    broker_facts: tuple[BrokerFacts, ...] = ()
    shutting_down: tuple[int, ...] = ()
    cordoned: tuple[int, ...] = ()
    unreached: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    unanswered: Mapping[int, int] = {}
    is_client: bool = False
    active_regent: ActiveRegent | None = None

    def knows(self, topic: str) -> bool:
        """Whether ``topics`` has all that there is of a topic. So it does not exist if it is not
        there."""
        return self.is_complete and topic not in self.unreadable_topics

    def is_leader_awaited(self, topic: TopicView, partition: PartitionView) -> bool:
        """Whether the leader of a partition may not have answered yet that it leads it, or has not
        answered anything at all."""
        leader = partition.leader
        oldest = self.unanswered.get(leader)
        return leader in self.silent or (oldest is not None and topic.is_announced_since(oldest))

    @property
    def available_brokers(self) -> frozenset[int]:
        """Brokers that may get replicas: those that are alive and do not shut down."""
        return frozenset(self.brokers).difference(self.shutting_down)

    @property
    def brokers_for_new_replicas(self) -> frozenset[int]:
        """Available brokers that are not cordoned."""
        return self.available_brokers.difference(self.cordoned)

    @property
    def placement_terms(
        self,
    ) -> tuple[
        frozenset[tuple[int, int, bool]], BrokerIds, BrokerIds, BrokerIds, tuple[BrokerFacts, ...]
    ]:
        """What resources may wait for of the brokers: the live ones, each with its epoch and
        whether it gets new replicas; those that are cordoned, alive or not; those that are not
        reached, or do not answer; and what they have said about themselves."""
        hosts = self.brokers_for_new_replicas
        live = frozenset((b, broker.epoch, b in hosts) for b, broker in self.brokers.items())
        return live, self.cordoned, self.unreached, self.silent, self.broker_facts

    @property
    def may_act(self) -> bool:
        """Whether the cluster can be seen here and commands for it are carried out: this process is
        its controller, or a client of it."""
        return self.is_active or self.is_client
