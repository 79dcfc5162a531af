"""Carries out the plans for KafkaTopics, one reconciliation of a resource at a time.

A reconciliation reads the newest version of the object and the newest view, asks ``plan_topic``
what to do, does it, and asks again with the outcomes, until nothing is left to be sent. Only then
is the status written: it says what came of it, and mostly there is one write per change.

What has to be stored before a command is sent, the finalizer or an intent, is stored in a round of
its own: the object may have changed by then, and if it cannot be stored nothing is sent.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from regent.controller.commands import (
    Accepted,
    AlterTopicConfig,
    CreateTopic,
    DescribeTopicConfigs,
    TopicCommand,
)
from regent.controller.view import ClusterView
from regent.kube.command_batcher import CommandBatcher
from regent.kube.event_recorder import EventRecorder
from regent.kube.metrics import ResourceMetrics
from regent.kube.object_cache import CachedObject, ObjectCache, ObjectKey
from regent.kube.settings import KubeSettings
from regent.kube.status_writer import StatusWriter, WriteResult
from regent.kube.topic_configs import TopicConfigs
from regent.kube.topic_memory import Outranked, TopicMemory
from regent.reconcile.plan import FinalizerAction
from regent.reconcile.request import Absence
from regent.reconcile.topics.commands import accepted_event
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.request import TopicRequest
from regent.reconcile.topics.significance import is_significant
from regent.reconcile.topics.transitions import is_foreign_deletion_news, transition_events
from regent.reconcile.topics.unreadable import plan_unreadable
from regent.resources.kafka_topic import KafkaTopic
from regent.resources.kafka_topic_status import KafkaTopicStatus

logger = logging.getLogger(__name__)

_ROUNDS_MAX: Final = 6
"""Rounds in one look. Storing the finalizer and an intent, creating the topic and saying so take
four; so do reading the configuration and changing it behind a finalizer."""

_CONTESTS_REPORTED: Final = 5
"""So many times in a row a status was overwritten by somebody else: that is no edit by hand."""

_OUTRANKED_RETRY_S: Final = 10.0
"""When to requeue a resource that belongs to a newer controller, in case it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerParts:
    """What a reconciler works with.

    Attributes:
        view: Returns the newest view of the cluster.
        now: Returns the present, aware.
        jitter: Returns numbers from 0 to 1 that spread retries.
        new_topic_id: Draws the id of a topic to be created.
        absence: Returns for how long this process has not been the controller.
    """

    cache: ObjectCache
    configs: TopicConfigs
    batcher: CommandBatcher
    writer: StatusWriter
    recorder: EventRecorder
    metrics: ResourceMetrics
    settings: KubeSettings
    view: Callable[[], ClusterView]
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    new_topic_id: Callable[[], uuid.UUID]
    absence: Callable[[], Absence] = Absence


class TopicReconciler:
    """Reconciles KafkaTopics.

    Attributes:
        reconciliations: How many so far.
    """

    def __init__(self, parts: ReconcilerParts) -> None:
        self._parts = parts
        self._memories: dict[ObjectKey, TopicMemory] = {}
        self.reconciliations = 0

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Reconcile one resource; after how many seconds to requeue it, None for no need.

        Raises:
            KubeError: If the API server does not answer or refuses. Reconciling again is safe.
        """
        self.reconciliations += 1
        known = self._parts.cache.get(key)
        if known is None:
            self._memories.pop(key, None)
            return None
        for _ in range(_ROUNDS_MAX):
            known = self._parts.cache.get(key)
            if known is None:
                return None
            # It may be another generation, or another object, than in the round before.
            memory = self._memory_of(known)
            plan, request = self._plan(known, memory)
            if plan.finalizer is FinalizerAction.ADD:
                if await self._parts.writer.add_finalizer(key, known.uid) is WriteResult.WRITTEN:
                    continue
                # It is being deleted or gone: plan again.
                return 0.0
            if plan.status_first and plan.status is not None:
                result = await self._write_status(known, plan.status, memory, in_full=True)
                if result is WriteResult.OUTRANKED:
                    return _OUTRANKED_RETRY_S
                continue
            if not plan.commands or request is None:
                return await self._finish(known, plan, memory)
            await self._send(known, request, plan.commands, memory)
        return 0.0

    def _memory_of(self, known: CachedObject) -> TopicMemory:
        generation = known.generation
        at = asyncio.get_running_loop().time()
        memory = self._memories.get(known.key)
        if memory is None or memory.uid != known.uid:
            memory = TopicMemory(
                uid=known.uid,
                generation=generation,
                seen_at=at,
                spare_topic_id=self._parts.new_topic_id(),
            )
            self._memories[known.key] = memory
        memory.see(generation, at=at)
        return memory

    def _plan(
        self, known: CachedObject, memory: TopicMemory
    ) -> tuple[TopicPlan, TopicRequest | None]:
        parts = self._parts
        resource = known.parse()
        if not isinstance(resource, KafkaTopic):
            return plan_unreadable(resource, now=parts.now()), None
        memory.settle(resource.status.ownership)
        request = TopicRequest(
            resource=resource,
            view=parts.view(),
            config=parts.configs.get(known.topic),
            claims=parts.cache.claims(known.topic),
            seen_at=memory.seen_at,
            monotonic_s=asyncio.get_running_loop().time(),
            now=parts.now(),
            attempts=tuple(memory.attempts),
            created=memory.created,
            spare_topic_id=memory.spare_topic_id,
            absence=parts.absence(),
        )
        return plan_topic(request), request

    async def _send(
        self,
        known: CachedObject,
        request: TopicRequest,
        commands: tuple[TopicCommand, ...],
        memory: TopicMemory,
    ) -> None:
        """Send commands, remember the outcomes and record the events for them."""
        parts = self._parts
        as_of = parts.configs.clock
        outcomes = await parts.batcher.submit(commands)
        for command, outcome in zip(commands, outcomes, strict=True):
            memory.note(
                command,
                outcome,
                controller_epoch=request.view.controller_epoch,
                at=asyncio.get_running_loop().time(),
                settings=parts.settings,
                jitter=parts.jitter,
                new_topic_id=parts.new_topic_id,
            )
            if isinstance(outcome, Accepted):
                self._learn(command, outcome, as_of=as_of)
                event = accepted_event(request, command)
                if event is not None:
                    parts.recorder.record(known, event)

    def _learn(self, command: TopicCommand, outcome: Accepted, *, as_of: int) -> None:
        """What an accepted command says about configurations."""
        configs = self._parts.configs
        match command:
            case DescribeTopicConfigs():
                for topic, config in (outcome.result or {}).items():
                    configs.put(topic, config, as_of=as_of)
            case AlterTopicConfig():
                configs.apply(command)
            case CreateTopic():
                configs.put(command.topic, command.config, as_of=as_of)
            case _:
                pass

    async def _finish(
        self, known: CachedObject, plan: TopicPlan, memory: TopicMemory
    ) -> float | None:
        """Write the status, remove the finalizer, and record the events once that is done."""
        delays = [] if plan.requeue_after_s is None else [plan.requeue_after_s]
        if plan.status is not None:
            held_s = self._held_back_s(known, plan.status, memory)
            if held_s is not None:
                delays.append(held_s)
            elif await self._write_status(known, plan.status, memory) is WriteResult.OUTRANKED:
                return _OUTRANKED_RETRY_S
        if plan.finalizer is FinalizerAction.REMOVE:
            result = await self._parts.writer.remove_finalizer(
                known.key, known.uid, generation=known.generation
            )
            if result is WriteResult.CHANGED:
                return 0.0
        for event in plan.events:
            self._parts.recorder.record(known, event)
        return min(delays) if delays else None

    async def _write_status(
        self,
        known: CachedObject,
        status: KafkaTopicStatus,
        memory: TopicMemory,
        *,
        in_full: bool = False,
    ) -> WriteResult:
        over = self._overwritable(known, memory)
        result = await self._parts.writer.write_status(
            known.key, known.uid, status, over=over, in_full=in_full
        )
        if result is WriteResult.OUTRANKED:
            self._note_outranked(known, memory)
            return result
        memory.outranked = None
        if result is not WriteResult.WRITTEN:
            return result
        # Only by the process that stored it: neither a restart nor a second replica repeats it.
        before = known.parse().status
        memory.note_written(status, over=before, at=asyncio.get_running_loop().time())
        memory.settle(status.ownership)
        if memory.contests == _CONTESTS_REPORTED:
            logger.warning(
                "The status of a resource is changed again and again by somebody else; it is "
                "written less often now. Two Regents may serve its namespace",
                extra={"resource": str(known.key)},
            )
        for event in transition_events(before, status):
            self._parts.recorder.record(known, event)
        if is_foreign_deletion_news(before, status):
            self._parts.metrics.count_foreign_deletion()
        return result

    def _note_outranked(self, known: CachedObject, memory: TopicMemory) -> None:
        """Remember since when a status is left alone in this term."""
        newest = self._parts.cache.get(known.key)
        version = known.version if newest is None else newest.version
        epoch = self._parts.view().controller_epoch
        before = memory.outranked
        if before is not None and (before.version, before.controller_epoch) == (version, epoch):
            return
        logger.warning(
            "A status written by a newer controller is kept", extra={"resource": str(known.key)}
        )
        memory.outranked = Outranked(version, epoch, asyncio.get_running_loop().time())

    def _overwritable(self, known: CachedObject, memory: TopicMemory) -> str | None:
        """resourceVersion of an object whose status no newer controller can have written; None if
        one can.

        Two controllers are not active for long at the same time. So the epochs started again
        (ZooKeeper was restored from a backup), or the status was edited by hand.
        """
        view, outranked = self._parts.view(), memory.outranked
        if outranked is None or not view.may_act:
            return None
        if outranked.controller_epoch != view.controller_epoch:
            return None
        age_s = asyncio.get_running_loop().time() - outranked.since
        return outranked.version if age_s >= self._parts.settings.outranked_patience_s else None

    def _held_back_s(
        self, known: CachedObject, status: KafkaTopicStatus, memory: TopicMemory
    ) -> float | None:
        """Seconds until a mere detail may be written; None: write now, or nothing to write.

        While brokers restart, in-sync replicas come and go by the thousand. People look at
        conditions; the rest may be some seconds old. So may what somebody else (a Regent of another
        Kafka cluster) overwrites again and again: else both would write without end.
        """
        if memory.written_at is None:
            return None
        resource = known.parse()
        age_s = asyncio.get_running_loop().time() - memory.written_at
        if is_significant(resource.status, status):
            left_s = memory.contest_pause_s(status) - age_s
        else:
            left_s = self._parts.settings.status_detail_interval_s - age_s
        if left_s <= 0:
            return None
        return left_s if resource.status.to_api() != status.to_api() else None
