"""BrokerDrains as the reconciler sees them: requests, commands, and their outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    DescribeTopicConfigs,
    Outcome,
    ResourceCommand,
)
from regent.controller.view import ClusterView
from regent.kube.claim_index import ClaimIndex
from regent.kube.command_batcher import CommandBatcher
from regent.kube.copy_watch import CopyWatch
from regent.kube.drain_memory import DrainMemory
from regent.kube.hosted_topics import HostedTopics
from regent.kube.moving_partitions import MovingPartitions
from regent.kube.object_cache import CachedObject, ObjectKey
from regent.kube.partition_reassignments import ReassignmentIndex
from regent.kube.settings import KubeSettings
from regent.kube.topic_configs import TopicConfigs
from regent.model.partition import TopicPartition
from regent.reconcile.drains.claims import DrainClaim
from regent.reconcile.drains.kind import BROKER_DRAIN
from regent.reconcile.drains.planning import DrainPlan, plan_drain
from regent.reconcile.drains.request import DrainRequest
from regent.reconcile.drains.transitions import transition_events
from regent.reconcile.drains.unreadable import UnreadableRequest, plan_unreadable
from regent.reconcile.plan import PlannedEvent
from regent.reconcile.reassignments.claims import moved_partitions
from regent.reconcile.reassignments.status import readable_plan
from regent.reconcile.request import Absence
from regent.resources.broker_drain import BrokerDrain, UnreadableDrain
from regent.resources.broker_drain_status import BrokerDrainStatus

AnyDrainRequest = DrainRequest | UnreadableRequest
DrainIndex = ClaimIndex[BrokerDrain | UnreadableDrain, DrainClaim]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDrains:
    """A :class:`~regent.kube.reconciler.ReconciledKind`.

    Attributes:
        index: Who drains which broker.
        configs: What is known of the configurations of topics.
        hosted: Which topics have replicas where.
        moving: What moves in the cluster.
        copies: How far copies are.
        reassignments: Which PartitionReassignment executes what.
        view: Returns the newest view of the cluster.
        now: Returns the present, aware.
        jitter: Returns numbers from 0 to 1 that spread retries.
        absence: Returns for how long this process has not been the controller, and whether an
            object is to be left to another one.
        planned_topics: Topics of the stored plan, by drain: they are of interest also after their
            replicas have left the brokers.
    """

    index: DrainIndex
    configs: TopicConfigs
    hosted: HostedTopics
    moving: MovingPartitions
    copies: CopyWatch
    reassignments: ReassignmentIndex
    batcher: CommandBatcher
    settings: KubeSettings
    view: Callable[[], ClusterView]
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    absence: Callable[[Mapping[str, Any]], Absence] = lambda _: Absence()
    planned_topics: dict[ObjectKey, frozenset[str]] = field(default_factory=dict)

    def remember(self, known: CachedObject, *, at: float) -> DrainMemory:
        """See :class:`~regent.kube.reconciler.ReconciledKind`, as for the others."""
        return DrainMemory(uid=known.uid, generation=known.generation, seen_at=at)

    def request(self, known: CachedObject, memory: DrainMemory) -> AnyDrainRequest:
        resource = BROKER_DRAIN.parse(known.body)
        if not isinstance(resource, BrokerDrain):
            is_looked_after = self.absence(known.body).is_looked_after
            return UnreadableRequest(resource, self.now(), is_looked_after)
        at, view = asyncio.get_running_loop().time(), self.view()
        plan = readable_plan(resource.status.plan)
        planned = frozenset(() if plan is None else plan.topics)
        self.planned_topics[known.key] = planned
        moving = self.moving.partitions
        topics = self.hosted.on(resource.spec.brokers, view)
        configs = {topic: self.configs.get_as_of(view, topic) for topic in topics}
        return DrainRequest(
            resource=resource,
            view=view,
            hosted_topics=topics,
            configs={topic: config for topic, config in configs.items() if config is not None},
            moving=moving,
            copies=self.copies.follow(known.key, plan, moving),
            sent=self.moving.sent(at=at),
            refused=memory.refused,
            moved_by_others=self._moved_by_others({*topics, *planned}, view),
            claims=self._claims(resource),
            seen_at=memory.seen_at,
            monotonic_s=at,
            now=self.now(),
            attempts=tuple(memory.attempts),
            absence=self.absence(known.body),
        )

    def _claims(self, resource: BrokerDrain) -> tuple[DrainClaim, ...]:
        by_uid = {
            claim.uid: claim
            for broker_id in resource.spec.brokers
            for claim in self.index.claims(str(broker_id))
        }
        return tuple(by_uid.values())

    def _moved_by_others(
        self, topics: Iterable[str], view: ClusterView
    ) -> dict[TopicPartition, str]:
        claims = (claim for topic in topics for claim in self.reassignments.claims(topic))
        return moved_partitions(claims, cluster_id=view.cluster_id)

    def plan(self, request: AnyDrainRequest) -> DrainPlan:
        if isinstance(request, UnreadableRequest):
            return plan_unreadable(request)
        return plan_drain(request)

    async def send(
        self,
        request: AnyDrainRequest,
        commands: Sequence[ResourceCommand],
        memory: DrainMemory,
        is_wanted: Callable[[], bool],
    ) -> Sequence[PlannedEvent]:
        if isinstance(request, UnreadableRequest):
            return ()  # it has none
        as_of = self.configs.clock
        now = asyncio.get_running_loop().time
        with self.moving.sending(
            commands, request.view, settle_s=self.settings.accepted_settle_s, now=now
        ):
            outcomes = await self.batcher.submit(commands, is_wanted=is_wanted)
        at = now()
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(command, AlterPartitionReassignments):
                memory.note_moves(command, outcome, at=at, jitter=self.jitter)
                self.moving.take_back(tp for tp in command.targets if tp in memory.refused)
            elif self._is_read(command, outcome, as_of=as_of):
                memory.forget_attempt(command)
            else:
                memory.note_attempt(
                    command,
                    outcome,
                    view=request.view,
                    at=at,
                    settings=self.settings,
                    jitter=self.jitter,
                )
        return ()

    def _is_read(self, command: ResourceCommand, outcome: Outcome, *, as_of: int) -> bool:
        """Keep configurations that were read; whether all that were asked for are known now."""
        if not isinstance(command, DescribeTopicConfigs):
            return False
        known: Mapping[str, Mapping[str, str]] = {}
        if isinstance(outcome, Accepted):
            known = outcome.result or {}
        for topic, config in known.items():
            self.configs.put(topic, config, as_of=as_of)
        return known.keys() >= set(command.topics)

    def status_of(self, known: CachedObject) -> BrokerDrainStatus:
        return BROKER_DRAIN.parse(known.body).status

    def stored(
        self, status: BrokerDrainStatus, *, over: BrokerDrainStatus, memory: DrainMemory
    ) -> tuple[PlannedEvent, ...]:
        return transition_events(over, status)
