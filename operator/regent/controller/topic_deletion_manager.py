"""Topic deletion: from the marker in ``/admin/delete_topics`` until nothing is left.

A topic is deleted replica by replica: Offline, DeletionStarted (StopReplica with deletion),
DeletionSuccessful when its broker confirms. When all are, the znodes go. A replica that cannot be
deleted now (its broker is down, or it refused) makes its topic ineligible until the broker returns.

Source: ``TopicDeletionManager.scala``; all eligible topics go together (KAFKA-9499).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from regent.controller.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.context import ControllerContext
from regent.controller.effects import PublishView
from regent.controller.log import ControllerLog
from regent.controller.partition_state_machine import PartitionStateMachine
from regent.controller.replica_state_machine import ReplicaStateMachine, by_broker
from regent.controller.states import PartitionState, ReplicaState
from regent.controller.topic_node_removal import remove_topic_nodes
from regent.model.partition import TopicPartition


class TopicDeletionManager:
    """Drives queued topics towards their end. Its state is in the context."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        log: ControllerLog,
    ) -> None:
        self._context = context
        self._partitions = partitions
        self._replicas = replicas
        self._log = log

    async def enqueue(self, topics: Iterable[str]) -> None:
        """Queue topics and start what can be started."""
        for topic in topics:
            self._context.queue_topic_for_deletion(topic)
        await self.resume()

    def mark_ineligible(self, topics: Iterable[str], reason: str) -> None:
        """Put queued topics off until :meth:`resume_for` names them."""
        for topic in topics:
            if self._context.is_topic_queued_for_deletion(topic):
                self._context.topics_ineligible_for_deletion[topic] = None
                self._log.info("Topic deletion put off", topic=topic, reason=reason)

    async def resume_for(self, topics: Iterable[str]) -> None:
        """Try again for topics whose obstacle may be gone."""
        queued = [t for t in topics if self._context.is_topic_queued_for_deletion(t)]
        for topic in queued:
            self._context.topics_ineligible_for_deletion.pop(topic, None)
        if queued:
            await self.resume()

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
        await self.resume()

    async def complete_replicas(self, replicas: Mapping[int, Iterable[TopicPartition]]) -> None:
        """Brokers confirm that replicas are gone."""
        await self._replicas.handle_state_changes(replicas, ReplicaState.DELETION_SUCCESSFUL)
        await self.resume()

    async def resume(self) -> None:
        """Take every queued topic one step further, if it can take one."""
        context = self._context
        finished: list[str] = []
        startable: list[str] = []
        retry: list[str] = []
        for topic in context.topics_to_be_deleted:
            if self._all_in_state(topic, ReplicaState.DELETION_SUCCESSFUL):
                finished.append(topic)
                continue
            if context.replicas_of_topic_in_state(topic, ReplicaState.DELETION_STARTED):
                continue
            if context.replicas_of_topic_in_state(topic, ReplicaState.DELETION_INELIGIBLE):
                retry.append(topic)
            if topic not in context.topics_ineligible_for_deletion:
                startable.append(topic)
        if finished:
            await self._complete(finished)
        for topic in retry:
            await self._replicas.handle_state_changes(
                context.replicas_of_topic_in_state(topic, ReplicaState.DELETION_INELIGIBLE),
                ReplicaState.OFFLINE,
            )
        if startable:
            await self._start(startable)

    def _all_in_state(self, topic: str, state: ReplicaState) -> bool:
        context = self._context
        return all(
            context.replica_state(broker_id, tp) is state
            for tp, assignment in context.partitions_of(topic).items()
            for broker_id in assignment.replicas
        )

    async def _start(self, topics: list[str]) -> None:
        context = self._context
        partitions = [tp for topic in topics for tp in context.partitions_of(topic)]
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
        live = {
            b: [tp for tp in tps if context.is_replica_online(b, tp)]
            for b, tps in undeleted.items()
        }
        dead = {
            b: [tp for tp in tps if not context.is_replica_online(b, tp)]
            for b, tps in undeleted.items()
        }
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

    async def _complete(self, topics: Sequence[str]) -> None:
        """Every replica is gone: remove the znodes and forget the topics.

        A topic whose nodes cannot all be removed (somebody wrote below them just now) keeps its
        marker and its place in the queue, else it would be taken for a new one.
        """
        context = self._context
        for topic in topics:
            await self._replicas.handle_state_changes(
                context.replicas_of_topic_in_state(topic, ReplicaState.DELETION_SUCCESSFUL),
                ReplicaState.NON_EXISTENT,
            )
        removed = await remove_topic_nodes(context, topics, self._log)
        for topic in removed:
            context.remove_topic(topic)
            self._log.info("Topic deleted", topic=topic)
        await PublishView(frozenset(removed))
