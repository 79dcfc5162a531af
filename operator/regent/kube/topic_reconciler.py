"""Carries out the plans for KafkaTopics: one look at one resource at a time.

A look reads the newest version of the object and the newest view, asks ``plan_topic`` what to do,
does it, and asks again with the outcomes, until nothing is left to be sent. Only then is the status
written: it says what came of it, and mostly there is one write per change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from regent.controller.commands import (
    Accepted,
    AlterTopicConfig,
    Command,
    CreateTopic,
    DescribeTopicConfigs,
)
from regent.controller.view import ClusterView
from regent.kube.command_batcher import CommandBatcher
from regent.kube.event_recorder import EventRecorder
from regent.kube.object_cache import CachedObject, ObjectCache, ObjectKey
from regent.kube.settings import KubeSettings
from regent.kube.status_writer import StatusWriter, WriteResult
from regent.kube.topic_configs import TopicConfigs
from regent.kube.topic_memory import TopicMemory
from regent.reconcile.plan import FinalizerAction, Plan, PlannedEvent, TopicRequest
from regent.reconcile.significance import is_significant
from regent.reconcile.topic_commands import accepted_event
from regent.reconcile.topics import plan_topic
from regent.reconcile.transitions import transition_events
from regent.reconcile.unreadable import plan_unreadable
from regent.resources.kafka_topic import KafkaTopic
from regent.resources.kafka_topic_status import KafkaTopicStatus

logger = logging.getLogger(__name__)

_ROUNDS_MAX: Final = 4
"""Rounds of commands in one look. Reading the configuration and changing it take two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerParts:
    """What a reconciler works with.

    Attributes:
        view: Returns the newest view of the cluster.
        now: Returns the present, aware.
        jitter: Returns numbers from 0 to 1 that spread retries.
    """

    cache: ObjectCache
    configs: TopicConfigs
    batcher: CommandBatcher
    writer: StatusWriter
    recorder: EventRecorder
    settings: KubeSettings
    view: Callable[[], ClusterView]
    now: Callable[[], datetime]
    jitter: Callable[[], float]


class TopicReconciler:
    """Looks at KafkaTopics.

    Attributes:
        looks: How many so far.
    """

    def __init__(self, parts: ReconcilerParts) -> None:
        self._parts = parts
        self._memories: dict[ObjectKey, TopicMemory] = {}
        self.looks = 0

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Look at one resource; in how many seconds to look again, None if there is no need.

        Raises:
            KubeError: If the API server does not answer or refuses. Looking again is safe.
        """
        self.looks += 1
        known = self._parts.cache.get(key)
        if known is None:
            self._memories.pop(key, None)
            return None
        memory = self._memory_of(known)
        events: list[PlannedEvent] = []
        for _ in range(_ROUNDS_MAX):
            known = self._parts.cache.get(key)
            if known is None:
                return None
            plan, request = self._plan(known, memory)
            if plan.finalizer is FinalizerAction.ADD:
                result = await self._parts.writer.add_finalizer(key, known.uid)
                if result is not WriteResult.WRITTEN:
                    # It is being deleted or gone: everything has to be thought over.
                    return 0.0
            if plan.status_first and plan.status is not None:
                await self._parts.writer.write_status(key, known.uid, plan.status)
            events.extend(plan.events)
            if not plan.commands or request is None:
                return await self._finish(known, plan, memory, events)
            events.extend(await self._send(request, plan.commands, memory))
        return 0.0

    def _memory_of(self, known: CachedObject) -> TopicMemory:
        generation = int(known.body["metadata"].get("generation", 0))
        now = self._parts.now()
        memory = self._memories.get(known.key)
        if memory is None or memory.uid != known.uid:
            memory = TopicMemory(uid=known.uid, generation=generation, seen_at=now)
            self._memories[known.key] = memory
        memory.see(generation, now=now)
        return memory

    def _plan(self, known: CachedObject, memory: TopicMemory) -> tuple[Plan, TopicRequest | None]:
        parts = self._parts
        resource = known.parse()
        if not isinstance(resource, KafkaTopic):
            return plan_unreadable(resource, now=parts.now()), None
        request = TopicRequest(
            resource=resource,
            view=parts.view(),
            config=parts.configs.get(known.topic),
            claims=parts.cache.claims(known.topic),
            seen_at=memory.seen_at,
            now=parts.now(),
            attempts=tuple(memory.attempts),
        )
        return plan_topic(request), request

    async def _send(
        self, request: TopicRequest, commands: tuple[Command, ...], memory: TopicMemory
    ) -> list[PlannedEvent]:
        """Send commands and take note of the outcomes; the events that tell of them."""
        parts = self._parts
        as_of = parts.configs.clock
        outcomes = await parts.batcher.submit(commands)
        events: list[PlannedEvent] = []
        for command, outcome in zip(commands, outcomes, strict=True):
            memory.note(
                command,
                outcome,
                controller_epoch=request.view.controller_epoch,
                now=parts.now(),
                settings=parts.settings,
                jitter=parts.jitter,
            )
            if isinstance(outcome, Accepted):
                self._learn(command, outcome, as_of=as_of)
                event = accepted_event(request, command)
                events.extend(() if event is None else (event,))
        return events

    def _learn(self, command: Command, outcome: Accepted, *, as_of: int) -> None:
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
        self,
        known: CachedObject,
        plan: Plan,
        memory: TopicMemory,
        events: list[PlannedEvent],
    ) -> float | None:
        """Write the status, record the events, let go of the finalizer."""
        delays = [] if plan.requeue_after_s is None else [plan.requeue_after_s]
        if plan.status is not None:
            held_s = self._held_back_s(known, plan.status, memory)
            if held_s is None:
                await self._write_status(known, plan.status, memory)
            else:
                delays.append(held_s)
        for event in events:
            self._parts.recorder.record(known, event)
        if plan.finalizer is FinalizerAction.REMOVE:
            await self._parts.writer.remove_finalizer(known.key, known.uid)
        return min(delays) if delays else None

    async def _write_status(
        self, known: CachedObject, status: KafkaTopicStatus, memory: TopicMemory
    ) -> None:
        result = await self._parts.writer.write_status(known.key, known.uid, status)
        if result is not WriteResult.WRITTEN:
            return
        memory.written_at = asyncio.get_running_loop().time()
        # Told only by the one who stored it, so neither a restart nor a second replica repeats it.
        for event in transition_events(known.parse().status.conditions, status.conditions):
            self._parts.recorder.record(known, event)

    def _held_back_s(
        self, known: CachedObject, status: KafkaTopicStatus, memory: TopicMemory
    ) -> float | None:
        """Seconds until a mere detail may be written; None: write now, or nothing to write.

        While brokers restart, in-sync replicas come and go by the thousand. People look at
        conditions; the rest may be some seconds old.
        """
        if memory.written_at is None:
            return None
        resource = known.parse()
        age_s = asyncio.get_running_loop().time() - memory.written_at
        left_s = self._parts.settings.status_detail_interval_s - age_s
        if left_s <= 0 or is_significant(resource.status, status):
            return None
        return left_s if resource.status.to_api() != status.to_api() else None
