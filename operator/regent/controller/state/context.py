"""Everything the controller knows of the cluster while it is active.

Owned by the event loop: one event at a time reads and changes it, so it has no locks. Loading it
for 100,000 partitions is on the path of every failover; that decides its shape:

- a :class:`TopicPartition` exists once and is the key everywhere (tuples hash in C);
- replica states are kept by broker, because transitions arrive by broker and because "the
  partitions on broker 3" must be a lookup;
- counts, the partitions without a leader, and the topics that have changed are kept as things
  change, not computed: an event costs what it changes, whatever the size of the cluster.

Insertion order is the only order anything iterates in, so that a simulation replays exactly.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping

from regent.cluster.announced_controller import announced_controller
from regent.cluster.known_broker_facts import KnownBrokerFacts
from regent.controller.state.answered_leaders import AnsweredLeaders
from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.deletion_progress import DeletionProgress, TopicDeletionProgress
from regent.controller.state.leader_balance import LeaderBalance
from regent.controller.state.refusal_repairs import RefusalRepairs
from regent.controller.state.refusals import Refusals
from regent.controller.state.replica_states import ReplicaStates
from regent.controller.state.state_change_trail import StateChangeTrail
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.state.term import Term
from regent.controller.state.throttles import Throttles
from regent.controller.state.unassigned_replicas import UnassignedReplicas
from regent.model.cluster import Broker
from regent.model.partition import KnownEpochs, LeaderAndIsr, ReplicaAssignment, TopicPartition

_WITHOUT_LEADER = (PartitionState.NEW, PartitionState.OFFLINE)


class ControllerContext:
    """The cluster as the active controller sees it.

    What is read of the cluster is read from ``cluster``. Brokers and assignments are changed, and
    topics removed, through the methods here, since counts and refusals follow from them.

    Attributes:
        term: Our term: controller id, epoch and the fence of every write.
        cluster: Brokers, topics, assignments and leadership as ZooKeeper has them.
        unclean_leader_elections: Unclean elections since this controller was elected.
        restored_topic_ids: Topic ids written back since then, because somebody had dropped or
            replaced them.
        seen_config_changes: Notifications of config changes that need not be looked at any more.
        config_changes: How often notifications have said in this term that the configuration of a
            topic has changed; topics without any are not among them.
        broker_facts: What brokers have said about themselves.
        refusals: What brokers refuse to do.
        refusal_repairs: What of it is sent again, and when.
        balance: Partitions that are not led by their preferred replica.
        trail: How leadership has changed in this term, and why.
        elections_to_repeat: Partitions whose election failed for another reason than the want of
            an eligible replica: an unreadable znode, for instance. No watch reports its end.
        unwatched_topics: Topics that were not read from ZooKeeper, and so are not watched yet, each
            with the mzxid of the node as it is known.
        topics_not_removed: Topics without replicas whose znodes could not all be deleted.
        stray_replicas: By broker and topic, replicas that are noted as to be deleted and that the
            broker was asked to delete, each with the leader epoch of that request: see
            :mod:`regent.controller.topics.stray_replicas`.
        confirmed_strays: By broker, topics of which the broker has confirmed every deletion, but
            not yet that it sees all of its log directories.
        doubtful_replicas: By broker, replicas that may be of a former topic of the same name.
        is_registered: Whether the controller itself has a registration: see
            :mod:`regent.controller.brokers.own_registration`.
        unserved_listeners: Listeners of brokers, with their security protocols, that have been
            reported as not served.
        unknown_listeners: Names of listeners that have an address in the settings and that no
            broker has, as far as they have been reported.
        unassigned_replicas: Replicas that brokers have, and that are not assigned to them.
        throttles: How partitions that move are throttled.
        unannounced_isr_changes: Partitions whose ISRs have been changed as their leaders asked, and
            that are to be announced: see :mod:`regent.controller.partitions.isr_announcements`.
        halted_reassignments: Partitions whose reassignment could not be completed though they are
            in sync, with their states after the attempt: see
            :func:`regent.controller.reassignment.reassignments.complete`.
        unread_states: Partitions whose state may have changed and could not be read.
        waiting_leaders: Partitions whose leader waits for higher epochs than these, which it knows:
            they could not be written, or nothing has needed them yet.
        answered_leaders: Leaders whose ISR changes were answered lately, and which of the answers
            may have been overtaken by a higher leader epoch.
        deposed_controllers: Brokers whose own controllers were deposed, each with its epoch then:
            see :mod:`regent.controller.term.deposed_controllers`.
        cordoned_brokers: Brokers that get no new replicas as long as there are enough others.
        highest_epoch: The highest controller epoch of states that were therefore left as they are;
            -1: there were none.
        unconfirmed_shutdowns: Brokers that shut down for longer than that takes: each was sent a
            request, and one that answers has given it up.
    """

    def __init__(self, term: Term, cluster: ClusterState | None = None) -> None:
        self.term = term
        self.cluster = ClusterState() if cluster is None else cluster
        self.unclean_leader_elections = 0
        self.restored_topic_ids = 0
        self.seen_config_changes: dict[str, None] = {}
        self.config_changes: dict[str, int] = {}
        self.unwatched_topics: deque[tuple[str, int]] = deque()
        self.refusals = Refusals()
        self.refusal_repairs = RefusalRepairs()
        # Part of no cycle, a context is freed as soon as its term ends: what it knows of a large
        # cluster takes as much memory as what the next term loads.
        weakly = weakref.proxy(self)
        self.balance = LeaderBalance(
            self.cluster, leaves_out=lambda topic: weakly.is_topic_queued_for_deletion(topic)
        )
        self.trail = StateChangeTrail()
        self.cluster.recorder = self.trail
        self._announced: tuple[Mapping[int, Broker], Broker | None] = ({}, None)
        self.broker_facts = KnownBrokerFacts(
            self.cluster, has_replicas=lambda broker_id: weakly.has_replicas_on(broker_id)
        )
        self.is_registered = False
        self.highest_epoch = -1
        self.unserved_listeners: Mapping[str, str] = {}
        self.unknown_listeners: tuple[str, ...] = ()
        self.deposed_controllers: dict[int, int] = {}
        self.cordoned_brokers: tuple[int, ...] = ()
        self.unconfirmed_shutdowns: dict[int, None] = {}
        self.unassigned_replicas = UnassignedReplicas()
        self.throttles = Throttles()
        self._offline_dirs: dict[int, dict[TopicPartition, None]] = {}
        self._partition_states: dict[TopicPartition, PartitionState] = {}
        self._without_leader: dict[TopicPartition, None] = {}
        self._replica_states = ReplicaStates()
        self._deletions = DeletionProgress()
        self._offline_partition_count = 0
        self._new_partition_count = 0
        self.topics_to_be_deleted: dict[str, None] = {}
        self.topics_with_deletion_started: dict[str, None] = {}
        self.topics_ineligible_for_deletion: dict[str, None] = {}
        self.topics_not_removed: dict[str, None] = {}
        self.stray_replicas: dict[int, dict[str, dict[TopicPartition, int]]] = {}
        self.confirmed_strays: dict[int, dict[str, None]] = {}
        self.doubtful_replicas: dict[int, dict[TopicPartition, None]] = {}
        self.elections_to_repeat: dict[TopicPartition, None] = {}
        self.unannounced_isr_changes: dict[TopicPartition, None] = {}
        self.halted_reassignments: dict[TopicPartition, LeaderAndIsr] = {}
        self.unread_states: dict[TopicPartition, None] = {}
        self.waiting_leaders: dict[TopicPartition, KnownEpochs] = {}
        self.answered_leaders = AnsweredLeaders()

    def note_epoch_above(self, epoch: int) -> None:
        """The state of a partition has that controller epoch, which is above ours."""
        self.highest_epoch = max(self.highest_epoch, epoch)

    # Brokers

    @property
    def announced(self) -> Broker | None:
        """How the controller itself appears among the live brokers."""
        made_for, announced = self._announced
        brokers = self.cluster.brokers
        if made_for is not brokers:
            term = self.term
            announced = announced_controller(
                term.controller_id,
                brokers,
                term.served,
                term.announced_listeners,
                addresses=term.listener_addresses,
            )
            self._announced = (brokers, announced)
        return announced

    @property
    def live_broker_ids(self) -> tuple[int, ...]:
        """Live brokers without those that are shutting down."""
        return tuple(b for b in self.cluster.brokers if b not in self.cluster.shutting_down)

    @property
    def live_broker_count(self) -> int:
        brokers = self.cluster.brokers
        return len(brokers) - sum(b in brokers for b in self.cluster.shutting_down)

    @property
    def shutting_down_broker_ids(self) -> Collection[int]:
        return self.cluster.shutting_down.keys()

    def add_live_brokers(self, brokers: Iterable[Broker]) -> None:
        """Add brokers or replace their registrations."""
        self.cluster.add_brokers(brokers)
        self.broker_facts.brokers_changed()

    def remove_live_brokers(self, broker_ids: Iterable[int]) -> None:
        gone = list(broker_ids)
        self.cluster.remove_brokers(gone)
        self.broker_facts.brokers_changed()
        for broker_id in gone:
            self.refusals.forget_broker(broker_id)
            self.refusal_repairs.forget_broker(broker_id)
            self.unassigned_replicas.forget_broker(broker_id)
            self.stray_replicas.pop(broker_id, None)
            self.confirmed_strays.pop(broker_id, None)
            self.doubtful_replicas.pop(broker_id, None)
            self.unconfirmed_shutdowns.pop(broker_id, None)

    def mark_shutting_down(self, broker_id: int) -> None:
        self.cluster.shutting_down[broker_id] = None
        self.unconfirmed_shutdowns.pop(broker_id, None)

    def clear_shutting_down(self, broker_id: int) -> None:
        self.cluster.shutting_down.pop(broker_id, None)
        self.unconfirmed_shutdowns.pop(broker_id, None)

    def is_broker_online(self, broker_id: int, *, include_shutting_down: bool = False) -> bool:
        return broker_id in self.cluster.brokers and (
            include_shutting_down or broker_id not in self.cluster.shutting_down
        )

    def is_replica_online(
        self, broker_id: int, tp: TopicPartition, *, include_shutting_down: bool = False
    ) -> bool:
        """Whether the broker is live and the replica is not on a failed log directory."""
        if not self.is_broker_online(broker_id, include_shutting_down=include_shutting_down):
            return False
        return tp not in self._offline_dirs.get(broker_id, ())

    def live_replicas(self, tp: TopicPartition, replicas: Iterable[int]) -> tuple[int, ...]:
        """Those of ``replicas`` whose broker is live, or is shutting down, and that are not on a
        failed log directory."""
        brokers = self.cluster.brokers
        live = tuple([r for r in replicas if r in brokers])
        if self._offline_dirs:
            live = tuple(r for r in live if tp not in self._offline_dirs.get(r, ()))
        return live

    @property
    def has_offline_replicas(self) -> bool:
        """Whether any broker reported a failed log directory."""
        return bool(self._offline_dirs)

    @property
    def all_hosts_are_online(self) -> bool:
        """Whether every broker that hosts a known replica is live with all its log directories."""
        return not self._offline_dirs and all(
            map(self.is_broker_online, self._replica_states.hosts())
        )

    def replicas_on_offline_dirs(self, broker_id: int) -> Collection[TopicPartition]:
        return self._offline_dirs.get(broker_id, {}).keys()

    def on_offline_dirs(self, tp: TopicPartition, replicas: Iterable[int]) -> tuple[int, ...]:
        """Those of ``replicas`` that are on a failed log directory."""
        if not self._offline_dirs:
            return ()
        return tuple(r for r in replicas if tp in self._offline_dirs.get(r, ()))

    def set_replicas_on_offline_dirs(
        self, broker_id: int, partitions: Iterable[TopicPartition]
    ) -> None:
        known, replicas = self._offline_dirs.pop(broker_id, {}), dict.fromkeys(partitions)
        if replicas:
            self._offline_dirs[broker_id] = replicas
        for tp in (*known, *replicas):
            self.cluster.note_change(tp.topic)

    def change_replicas_on_offline_dirs(
        self,
        broker_id: int,
        *,
        failed: Iterable[TopicPartition],
        recovered: Iterable[TopicPartition],
    ) -> None:
        replicas = self._offline_dirs.setdefault(broker_id, {})
        changed = [tp for tp in failed if tp not in replicas]
        replicas.update(dict.fromkeys(changed))
        changed += [tp for tp in recovered if replicas.pop(tp, replicas) is None]
        if not replicas:
            del self._offline_dirs[broker_id]
        for tp in changed:
            self.cluster.note_change(tp.topic)

    # Assignments and topics

    def set_assignment(self, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
        self.set_assignments(tp.topic, {tp: assignment})

    def set_assignments(
        self, topic: str, assignments: Mapping[TopicPartition, ReplicaAssignment]
    ) -> None:
        """Set the assignments of many partitions of one topic."""
        if topic in self._deletions:
            for tp, assignment in assignments.items():
                before, now = self.cluster.replicas(tp), assignment.replicas
                self._count_replicas_to_delete(tp, [r for r in before if r not in now], -1)
                self._count_replicas_to_delete(tp, [r for r in now if r not in before], 1)
        self.cluster.set_assignments(topic, assignments)

    def _count_replicas_to_delete(
        self, tp: TopicPartition, replicas: Iterable[int], change: int
    ) -> None:
        for broker_id in replicas:
            self._deletions.count(tp.topic, self.replica_state(broker_id, tp), change)

    def remove_topic(self, topic: str) -> None:
        """Forget a topic and everything about its partitions."""
        partitions = self.cluster.partitions_of(topic)
        self._deletions.end(topic)
        self.refusals.forget_partitions(partitions)
        self.trail.forget_topic(topic, partitions)
        for doubtful in self.doubtful_replicas.values():
            for tp in [tp for tp in doubtful if tp.topic == topic]:
                del doubtful[tp]
        for tp, assignment in partitions.items():
            self.set_partition_state(tp, PartitionState.NON_EXISTENT)
            self.elections_to_repeat.pop(tp, None)
            self.halted_reassignments.pop(tp, None)
            self.unread_states.pop(tp, None)
            for broker_id in assignment.replicas:
                self._replica_states.remove(broker_id, tp)
        for broker_id in list(self._offline_dirs):
            self.change_replicas_on_offline_dirs(broker_id, failed=(), recovered=partitions)
        self.cluster.remove_topic(topic)
        self.topics_to_be_deleted.pop(topic, None)
        self.topics_with_deletion_started.pop(topic, None)
        self.topics_ineligible_for_deletion.pop(topic, None)
        self.topics_not_removed.pop(topic, None)
        self.config_changes.pop(topic, None)

    def note_config_change(self, topic: str) -> None:
        """A notification says that the configuration of a topic has changed."""
        self.config_changes[topic] = self.config_changes.get(topic, 0) + 1

    # Partition states

    @property
    def partition_states(self) -> Mapping[TopicPartition, PartitionState]:
        return self._partition_states

    def partition_state(self, tp: TopicPartition) -> PartitionState:
        return self._partition_states.get(tp, PartitionState.NON_EXISTENT)

    def set_partition_state(self, tp: TopicPartition, state: PartitionState) -> None:
        before = self.partition_state(tp)
        if before is state:
            return
        self.cluster.note_change(tp.topic)
        if state in _WITHOUT_LEADER:
            self._without_leader[tp] = None
        else:
            self._without_leader.pop(tp, None)
        if state is PartitionState.NON_EXISTENT:
            del self._partition_states[tp]
        else:
            self._partition_states[tp] = state
        self._new_partition_count += (state is PartitionState.NEW) - (before is PartitionState.NEW)
        if state is PartitionState.OFFLINE:
            self._count_offline(tp, 1)
        elif before is PartitionState.OFFLINE:
            self._count_offline(tp, -1)

    def load_partition_states(self, states: dict[TopicPartition, PartitionState]) -> None:
        """Set the initial states of all partitions at once. Nobody else has ``states``."""
        self._partition_states = states
        values = list(states.values())
        self._without_leader = {}
        if values.count(PartitionState.ONLINE) < len(values):
            self._without_leader.update(
                (tp, None) for tp, state in states.items() if state in _WITHOUT_LEADER
            )
        self._new_partition_count = values.count(PartitionState.NEW)
        self._offline_partition_count = values.count(PartitionState.OFFLINE) - sum(
            self.partition_state(tp) is PartitionState.OFFLINE
            for topic in self.topics_to_be_deleted
            for tp in self.cluster.partitions_of(topic)
        )

    @property
    def partitions_without_leader(self) -> Collection[TopicPartition]:
        """New and Offline partitions, in the order in which they became so."""
        return self._without_leader.keys()

    @property
    def offline_partition_count(self) -> int:
        """``OfflinePartitionsCount``: partitions that lost their leader. Those of topics that are
        being deleted do not count."""
        return self._offline_partition_count

    @property
    def new_partition_count(self) -> int:
        """Partitions that never had a leader; upstream does not count them anywhere."""
        return self._new_partition_count

    def _count_offline(self, tp: TopicPartition, change: int) -> None:
        if tp.topic not in self.topics_to_be_deleted:
            self._offline_partition_count += change

    def queue_topic_for_deletion(self, topic: str) -> None:
        """Mark a topic; its offline partitions no longer count as offline. Idempotent."""
        if topic in self.topics_to_be_deleted:
            return
        self._offline_partition_count -= sum(
            self.partition_state(tp) is PartitionState.OFFLINE
            for tp in self.cluster.partitions_of(topic)
        )
        self.topics_to_be_deleted[topic] = None
        self.balance.note(self.cluster.partitions_of(topic))
        self.cluster.note_change(topic)
        self._deletions.begin(
            topic,
            (
                self.replica_state(broker_id, tp)
                for tp, assignment in self.cluster.partitions_of(topic).items()
                for broker_id in assignment.replicas
            ),
        )

    def is_topic_queued_for_deletion(self, topic: str) -> bool:
        return topic in self.topics_to_be_deleted

    def deletion_progress(self, topic: str) -> TopicDeletionProgress:
        """Progress of a topic that is queued for deletion."""
        return self._deletions.of(topic)

    @property
    def replicas_to_delete_count(self) -> int:
        """``ReplicasToDeleteCount``: replicas of queued topics that are not deleted yet."""
        return self._deletions.replicas_to_delete

    @property
    def replicas_ineligible_to_delete_count(self) -> int:
        """``ReplicasIneligibleToDeleteCount``: of those the ones that cannot be deleted now."""
        return self._deletions.ineligible_replicas

    # Replica states

    def replica_states_on(self, broker_id: int) -> Mapping[TopicPartition, ReplicaState]:
        """State of every known replica on a broker."""
        return self._replica_states.on(broker_id)

    def has_replicas_on(self, broker_id: int) -> bool:
        """Whether any replica on a broker is known."""
        return self._replica_states.has_some_on(broker_id)

    def replica_state(self, broker_id: int, tp: TopicPartition) -> ReplicaState:
        return self.replica_states_on(broker_id).get(tp, ReplicaState.NON_EXISTENT)

    def set_replica_state(self, broker_id: int, tp: TopicPartition, state: ReplicaState) -> None:
        if state is not ReplicaState.NON_EXISTENT:
            self.set_replica_states(broker_id, (tp,), state)
            return
        self._count_deletions(broker_id, (tp,), state)
        self._replica_states.remove(broker_id, tp)

    def set_replica_states(
        self, broker_id: int, partitions: Collection[TopicPartition], state: ReplicaState
    ) -> None:
        """Put many replicas of one broker into one state (not NON_EXISTENT)."""
        self._count_deletions(broker_id, partitions, state)
        self._replica_states.set(broker_id, partitions, state)

    def load_replica_states(
        self, broker_id: int, partitions: Collection[TopicPartition], state: ReplicaState
    ) -> None:
        """Set the initial states of all replicas of one broker at once (not NON_EXISTENT). Nobody
        changes ``partitions`` any more."""
        self._count_deletions(broker_id, partitions, state)
        self._replica_states.load(broker_id, partitions, state)

    def tabulate_replica_states(self, most: int) -> bool:
        """See :meth:`ReplicaStates.tabulate_some`."""
        return self._replica_states.tabulate_some(most)

    def _count_deletions(
        self, broker_id: int, partitions: Collection[TopicPartition], state: ReplicaState
    ) -> None:
        """Replicas of topics that are being deleted are about to change into ``state``."""
        queued = self._deletions
        if not queued:
            return
        changes: Counter[tuple[str, ReplicaState]] = Counter(
            (tp[0], self.replica_state(broker_id, tp))
            for tp in dict.fromkeys(partitions)
            if tp[0] in queued and broker_id in self.cluster.replicas(tp)
        )
        for (topic, before), replicas in changes.items():
            queued.count(topic, before, -replicas)
            queued.count(topic, state, replicas)

    def replicas_of_topic_in_state(
        self, topic: str, state: ReplicaState
    ) -> dict[int, list[TopicPartition]]:
        """Replicas of a topic that are in ``state``, by broker."""
        found: dict[int, list[TopicPartition]] = {}
        for tp, assignment in self.cluster.partitions_of(topic).items():
            for broker_id in assignment.replicas:
                if self.replica_state(broker_id, tp) is state:
                    found.setdefault(broker_id, []).append(tp)
        return found
