"""KafkaTopics as the reconciler sees them: requests, commands and what is learnt from outcomes."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from regent.admin.commands import (
    Accepted,
    AlterTopicConfig,
    DescribeTopicConfigs,
    ReassignTopic,
    ResourceCommand,
)
from regent.controller.view import ClusterView
from regent.kube.claim_index import ClaimIndex
from regent.kube.command_batcher import CommandBatcher
from regent.kube.metrics import ResourceMetrics
from regent.kube.moving_partitions import MovingPartitions
from regent.kube.object_cache import CachedObject, ObjectKey
from regent.kube.settings import KubeSettings
from regent.kube.topic_configs import TopicConfigs
from regent.kube.topic_memory import TopicMemory
from regent.model.topic import metric_name
from regent.reconcile.dispatch import taken_name
from regent.reconcile.plan import DEFINITION_ASKED_AGAIN_S, PlannedEvent
from regent.reconcile.request import Absence
from regent.reconcile.topics.claims import Claim
from regent.reconcile.topics.commands import accepted_event
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.replication_factor import waits_for_room
from regent.reconcile.topics.request import TopicRequest, may_speak_of
from regent.reconcile.topics.transitions import is_foreign_deletion_news, transition_events
from regent.reconcile.topics.unreadable import UnreadableRequest, plan_unreadable
from regent.resources.kafka_topic import KafkaTopic, UnreadableTopic
from regent.resources.kafka_topic_status import KafkaTopicStatus

AnyTopicRequest = TopicRequest | UnreadableRequest
TopicIndex = ClaimIndex[KafkaTopic | UnreadableTopic, Claim]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopics:
    """A :class:`~regent.kube.reconciler.ReconciledKind`.

    Attributes:
        index: Who claims which topic.
        configs: What is known of the configurations of topics.
        moving: What moves in the cluster.
        view: Returns the newest view of the cluster.
        now: Returns the present, aware.
        jitter: Returns numbers from 0 to 1 that spread retries.
        new_topic_id: Draws the id of a topic to be created.
        absence: Returns for how long this process has not been the controller, and whether an
            object is to be left to another one.
        waiting: Those whose partitions wait until others have arrived.
        without_name: Those that were refused because of their topics' names, with the name in
            metrics that others have.
        unreadable: Returns the namespaces that cannot be read any more.
        is_with_definition: Returns whether a KafkaTopic that is deleted since then is deleted
            together with its definition, by an answer that may have that age in seconds.
    """

    index: TopicIndex
    configs: TopicConfigs
    moving: MovingPartitions
    batcher: CommandBatcher
    metrics: ResourceMetrics
    settings: KubeSettings
    view: Callable[[], ClusterView]
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    new_topic_id: Callable[[], uuid.UUID]
    is_with_definition: Callable[[datetime, float], Awaitable[bool]]
    absence: Callable[[Mapping[str, Any]], Absence] = lambda _: Absence()
    unreadable: Callable[[], Collection[str]] = tuple
    waiting: dict[ObjectKey, None] = field(default_factory=dict)
    without_name: dict[ObjectKey, str] = field(default_factory=dict)

    def take_waiting(self) -> frozenset[ObjectKey]:
        """Those that waited: there may be room for them now."""
        keys = frozenset(self.waiting)
        self.waiting.clear()
        return keys

    def take_without_name(self, topics: frozenset[str]) -> frozenset[ObjectKey]:
        """Those that were refused because of the name of one of these topics, which have changed:
        it may be free now."""
        if not self.without_name:
            return frozenset()
        changed = {metric_name(topic) for topic in topics}
        keys = frozenset(key for key, name in self.without_name.items() if name in changed)
        for key in keys:
            del self.without_name[key]
        return keys

    def forget(self, key: ObjectKey) -> None:
        """There is no such object any more, and nothing that it waits for."""
        self.waiting.pop(key, None)
        self.without_name.pop(key, None)

    def remember(self, known: CachedObject, *, at: float) -> TopicMemory:
        """See :class:`~regent.kube.reconciler.ReconciledKind`, as for the others."""
        return TopicMemory(
            uid=known.uid,
            generation=known.generation,
            seen_at=at,
            spare_topic_id=self.new_topic_id(),
        )

    def request(self, known: CachedObject, memory: TopicMemory) -> AnyTopicRequest:
        resource = KAFKA_TOPIC.parse(known.body)
        if not isinstance(resource, KafkaTopic):
            is_looked_after = self.absence(known.body).is_looked_after
            return UnreadableRequest(
                resource, self.now(), is_looked_after, memory.goes_with_definition
            )
        at, view = asyncio.get_running_loop().time(), self.view()
        if may_speak_of(resource.status, view.cluster_id):
            memory.settle(resource.status)
        memory.recognise(view.topics.get(resource.topic_name))
        request = TopicRequest(
            resource=resource,
            view=view,
            config=self.configs.get_as_of(view, resource.topic_name),
            claims=self.index.claims(resource.topic_name),
            seen_at=memory.seen_at,
            monotonic_s=at,
            now=self.now(),
            attempts=tuple(memory.attempts),
            created=memory.created,
            created_as=memory.created_as,
            spare_topic_id=memory.spare_topic_id,
            absence=self.absence(known.body),
            name_rules=self.settings.topic_name_rules,
            moving_elsewhere=self.moving.elsewhere(resource.topic_name, at=at),
            goes_with_definition=memory.goes_with_definition,
            unreadable_namespaces=self.unreadable(),
        )
        if request.config is None and request.created is not None and request.is_as_created:
            config = request.created.config
            self.configs.put(resource.topic_name, config, as_of=self.configs.clock)
            request = dataclasses.replace(request, config=config)
        if waits_for_room(request):
            self.waiting[known.key] = None
        for attempt in memory.attempts:
            name = taken_name(attempt.command, attempt.outcome)
            if name is not None:
                self.without_name[known.key] = name
        return request

    def plan(self, request: AnyTopicRequest) -> TopicPlan:
        if isinstance(request, UnreadableRequest):
            return plan_unreadable(request)
        return plan_topic(request)

    async def send(
        self,
        request: AnyTopicRequest,
        commands: Sequence[ResourceCommand],
        memory: TopicMemory,
        is_wanted: Callable[[], bool],
    ) -> list[PlannedEvent]:
        events: list[PlannedEvent] = []
        if isinstance(request, UnreadableRequest):
            return events  # it has none
        as_of = self.configs.clock
        now = asyncio.get_running_loop().time
        with self.moving.sending(
            commands, request.view, settle_s=self.settings.accepted_settle_s, now=now
        ):
            outcomes = await self.batcher.submit(commands, is_wanted=is_wanted)
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(command, ReassignTopic) and not isinstance(outcome, Accepted):
                self.moving.take_back(command.by_partition)
            memory.note(
                command,
                outcome,
                view=request.view,
                at=asyncio.get_running_loop().time(),
                settings=self.settings,
                jitter=self.jitter,
                new_topic_id=self.new_topic_id,
                status=request.resource.status,
            )
            if isinstance(outcome, Accepted):
                self._learn(command, outcome, as_of=as_of)
                event = accepted_event(request, command)
                if event is not None:
                    events.append(event)
        return events

    async def ask_about_definition(
        self, request: AnyTopicRequest, memory: TopicMemory, afresh: bool
    ) -> bool:
        """See :class:`~regent.kube.reconciler.ReconcilerParts`."""
        deleted_at = request.resource.metadata.deletion_timestamp
        assert deleted_at is not None, "nobody else has to ask"
        known = memory.goes_with_definition
        memory.goes_with_definition = await self.is_with_definition(
            datetime.fromisoformat(deleted_at), 0.0 if afresh else DEFINITION_ASKED_AGAIN_S
        )
        return memory.goes_with_definition and not known

    def _learn(self, command: ResourceCommand, outcome: Accepted, *, as_of: int) -> None:
        """What an accepted command says about configurations."""
        configs = self.configs
        match command:
            case DescribeTopicConfigs():
                for topic, config in (outcome.result or {}).items():
                    configs.put(topic, config, as_of=as_of)
            case AlterTopicConfig():
                configs.apply(command)
            case _:
                pass

    def status_of(self, known: CachedObject) -> KafkaTopicStatus:
        return KAFKA_TOPIC.parse(known.body).status

    def stored(
        self, status: KafkaTopicStatus, *, over: KafkaTopicStatus, memory: TopicMemory
    ) -> tuple[PlannedEvent, ...]:
        if is_foreign_deletion_news(over, status):
            self.metrics.count_foreign_deletion()
        return transition_events(over, status)
