"""Topic deletion: from the marker in ``/admin/delete_topics`` until nothing is left.

A topic is deleted replica by replica: Offline, DeletionStarted (StopReplica with deletion),
DeletionSuccessful when its broker confirms. When all are, the znodes go. A replica that its broker
refuses to delete makes its topic ineligible until that broker returns. Replicas whose broker or
disk is down do not hold the others up: they are noted, and deleted when the broker is back
(``stray_replicas.py``).

Source: ``TopicDeletionManager.scala``; all eligible topics go together (KAFKA-9499).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

from regent.controller.effects import PublishView
from regent.controller.state.causes import CauseKind
from regent.controller.state.context import ControllerContext
from regent.controller.state.deletion_progress import TopicDeletionProgress
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.topics.stray_replica_notes import remember
from regent.controller.topics.topic_node_removal import remove_topic_nodes
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.partition_state_machine import PartitionStateMachine
from regent.controller.transitions.replica_state_machine import ReplicaStateMachine, by_broker
from regent.model.log import StructuredLog, examples
from regent.model.partition import TopicPartition


class TopicDeletionManager:
    """Drives queued topics towards their end. Its state is in the context."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        log: StructuredLog,
        waits_for_brokers: bool,
    ) -> None:
        self._context = context
        self._partitions = partitions
        self._replicas = replicas
        self._log = log
        self._waits_for_brokers = waits_for_brokers

    async def enqueue(self, topics: Iterable[str]) -> None:
        """Queue topics and start what can be started."""
        topics = list(topics)
        for topic in topics:
            self._context.queue_topic_for_deletion(topic)
        await self.resume(topics)

    def mark_ineligible(self, topics: Iterable[str], reason: str) -> None:
        """Put queued topics off until :meth:`resume_for` names them."""
        waiting = [t for t in topics if self._context.is_topic_queued_for_deletion(t)]
        if waiting:
            self._context.topics_ineligible_for_deletion.update(dict.fromkeys(waiting))
            self._log.info(
                "Deletion of topics waits",
                topics=len(waiting),
                examples=examples(waiting),
                reason=reason,
            )

    async def resume_for(self, topics: Iterable[str]) -> None:
        """Try again for topics whose obstacle may be gone."""
        queued = [t for t in topics if self._context.is_topic_queued_for_deletion(t)]
        for topic in queued:
            self._context.topics_ineligible_for_deletion.pop(topic, None)
        if queued:
            await self.resume(queued)

    async def fail_replicas(self, replicas: Mapping[int, Iterable[TopicPartition]]) -> None:
        """Replicas could not be deleted: their topics wait."""
        failed = {
            broker_id: [
                tp for tp in partitions if self._context.is_topic_queued_for_deletion(tp.topic)
            ]
            for broker_id, partitions in replicas.items()
        }
        if not any(failed.values()):
            return
        await self._replicas.handle_state_changes(failed, ReplicaState.DELETION_INELIGIBLE)
        topics = dict.fromkeys(tp.topic for members in failed.values() for tp in members)
        self.mark_ineligible(topics, "a replica could not be deleted")
        await self.resume(topics)

    async def complete_replicas(self, replicas: Mapping[int, Iterable[TopicPartition]]) -> None:
        """Brokers confirm that replicas are gone."""
        replicas = {broker_id: list(partitions) for broker_id, partitions in replicas.items()}
        await self._replicas.handle_state_changes(replicas, ReplicaState.DELETION_SUCCESSFUL)
        await self.resume(
            dict.fromkeys(tp.topic for partitions in replicas.values() for tp in partitions)
        )

    async def resume(self, topics: Iterable[str] | None = None) -> None:
        """Take queued topics one step further, if they can take one: those that something has
        changed for, or all.

        Topics whose nodes could not be removed are tried again each time: nothing else ever happens
        to them.
        """
        context = self._context
        queued = context.topics_to_be_deleted
        chosen = queued if topics is None else chain(topics, context.topics_not_removed)
        finished: list[str] = []
        startable: list[str] = []
        retry: dict[int, list[TopicPartition]] = {}
        for topic in dict.fromkeys(chosen):
            if topic not in queued:
                continue
            progress = context.deletion_progress(topic)
            if progress.is_complete or self._can_leave_the_rest(topic, progress):
                finished.append(topic)
                continue
            if progress.started:
                continue
            if progress.ineligible:
                _merge(retry, self._in_state(topic, ReplicaState.DELETION_INELIGIBLE))
            if topic not in context.topics_ineligible_for_deletion:
                startable.append(topic)
        with context.trail.because(CauseKind.TOPIC_DELETION):
            if finished:
                await self._complete(finished)
            if retry:
                await self._replicas.handle_state_changes(retry, ReplicaState.OFFLINE)
            if startable:
                await self._start(startable)

    def _can_leave_the_rest(self, topic: str, progress: TopicDeletionProgress) -> bool:
        """Whether everything that is not deleted yet is out of reach."""
        context = self._context
        if self._waits_for_brokers or progress.started:
            return False
        if topic not in context.topics_with_deletion_started:
            return False
        return not any(
            context.is_replica_online(broker_id, tp, include_shutting_down=True)
            for broker_id, partitions in self._undeleted(topic).items()
            for tp in partitions
        )

    def _undeleted(self, topic: str) -> dict[int, list[TopicPartition]]:
        context = self._context
        return by_broker(
            context,
            context.cluster.partitions_of(topic),
            lambda b, tp: context.replica_state(b, tp) is not ReplicaState.DELETION_SUCCESSFUL,
        )

    def _in_state(self, topic: str, state: ReplicaState) -> dict[int, list[TopicPartition]]:
        return self._context.replicas_of_topic_in_state(topic, state)

    async def _start(self, topics: list[str]) -> None:
        context = self._context
        partitions = [tp for topic in topics for tp in context.cluster.partitions_of(topic)]
        existing = [
            tp
            for tp in partitions
            if context.partition_state(tp) is not PartitionState.NON_EXISTENT
        ]
        await self._partitions.handle_state_changes(existing, PartitionState.OFFLINE)
        await self._partitions.handle_state_changes(existing, PartitionState.NON_EXISTENT)
        context.topics_with_deletion_started.update(dict.fromkeys(topics))
        batch = ControllerBrokerRequestBatch(context)
        batch.add_update_metadata(partitions)
        await batch.send()
        undeleted = by_broker(
            context,
            partitions,
            lambda b, tp: context.replica_state(b, tp) is not ReplicaState.DELETION_SUCCESSFUL,
        )
        online = partial(context.is_replica_online, include_shutting_down=True)
        live = {b: [tp for tp in tps if online(b, tp)] for b, tps in undeleted.items()}
        dead = {b: [tp for tp in tps if not online(b, tp)] for b, tps in undeleted.items()}
        stopped = {
            b: [tp for tp in tps if context.replica_state(b, tp) is not ReplicaState.OFFLINE]
            for b, tps in dead.items()
        }
        await self._replicas.handle_state_changes(stopped, ReplicaState.OFFLINE)
        await self._replicas.handle_state_changes(dead, ReplicaState.DELETION_INELIGIBLE)
        await self._replicas.handle_state_changes(live, ReplicaState.OFFLINE)
        await self._replicas.handle_state_changes(live, ReplicaState.DELETION_STARTED)
        self.mark_ineligible(
            dict.fromkeys(tp.topic for tps in dead.values() for tp in tps),
            "a broker that hosts a replica is down",
        )
        if self._waits_for_brokers:
            return
        nothing_to_wait_for = [
            topic
            for topic in topics
            if self._can_leave_the_rest(topic, context.deletion_progress(topic))
        ]
        if nothing_to_wait_for:
            await self._complete(nothing_to_wait_for)

    async def _complete(self, topics: Sequence[str]) -> None:
        """Every replica is gone or noted: remove the znodes and forget the topics.

        A topic whose nodes cannot all be removed (somebody wrote below them just now) keeps its
        marker and its place in the queue, else it would be taken for a new one.
        """
        context = self._context
        deleted: dict[int, list[TopicPartition]] = {}
        strays: dict[int, list[TopicPartition]] = {}
        for topic in topics:
            _merge(deleted, self._in_state(topic, ReplicaState.DELETION_SUCCESSFUL))
            _merge(strays, self._undeleted(topic))
        context.topics_not_removed.update(dict.fromkeys(topics))
        blocked = await remember(context, strays, self._log)
        noted = [(b, tp) for b, tps in strays.items() for tp in tps if tp.topic not in blocked]
        if noted:
            self._log.info(
                "Replicas are deleted when their broker is back",
                brokers=sorted({broker_id for broker_id, _ in noted}),
                replicas=len(noted),
            )
        topics = [topic for topic in topics if topic not in blocked]
        await self._replicas.handle_state_changes(deleted, ReplicaState.NON_EXISTENT)
        removed = await remove_topic_nodes(context, topics, self._log)
        for topic in removed:
            context.cluster.former_partitions.add(context.cluster.partitions_of(topic))
            context.remove_topic(topic)
        if removed:
            self._log.info("Topics deleted", topics=len(removed), examples=examples(removed))
        await PublishView(frozenset(removed))


def _merge(
    into: dict[int, list[TopicPartition]], replicas: Mapping[int, Iterable[TopicPartition]]
) -> None:
    for broker_id, partitions in replicas.items():
        into.setdefault(broker_id, []).extend(partitions)
