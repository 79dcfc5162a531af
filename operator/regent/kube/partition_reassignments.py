"""PartitionReassignments as the reconciler sees them: requests, commands, and their outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    DescribeTopicConfigs,
    ElectLeaders,
    Outcome,
    ResourceCommand,
)
from regent.controller.view import ClusterView
from regent.kube.claim_index import ClaimIndex
from regent.kube.command_batcher import CommandBatcher
from regent.kube.copy_watch import CopyWatch
from regent.kube.kafka_topics import TopicIndex
from regent.kube.moving_partitions import MovingPartitions
from regent.kube.object_cache import CachedObject, ObjectKey
from regent.kube.reassignment_memory import ReassignmentMemory
from regent.kube.settings import KubeSettings
from regent.kube.topic_configs import TopicConfigs
from regent.planning.orders import PlanningOutcome
from regent.reconcile.plan import PlannedEvent
from regent.reconcile.reassignments.claims import (
    ReassignmentClaim,
    moved_by_others,
)
from regent.reconcile.reassignments.execution import ReassignmentPlan
from regent.reconcile.reassignments.kind import PARTITION_REASSIGNMENT
from regent.reconcile.reassignments.move_plan import MovePlan
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.reassignments.request import (
    DeclaredReplicas,
    ReassignmentRequest,
    UnderWay,
)
from regent.reconcile.reassignments.status import readable_plan
from regent.reconcile.reassignments.transitions import transition_events
from regent.reconcile.reassignments.under_way import under_way
from regent.reconcile.reassignments.unreadable import UnreadableRequest, plan_unreadable
from regent.reconcile.request import Absence
from regent.resources.partition_reassignment import PartitionReassignment, UnreadableReassignment
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus

AnyReassignmentRequest = ReassignmentRequest | UnreadableRequest
ReassignmentIndex = ClaimIndex[PartitionReassignment | UnreadableReassignment, ReassignmentClaim]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReassignments:
    """A :class:`~regent.kube.reconciler.ReconciledKind`.

    Attributes:
        index: Which of them executes what.
        topics: Who claims which topic.
        configs: What is known of the configurations of topics.
        moving: What moves in the cluster.
        copies: How far copies are.
        view: Returns the newest view of the cluster.
        now: Returns the present, aware.
        jitter: Returns numbers from 0 to 1 that spread retries.
        absence: Returns for how long this process has not been the controller, and whether an
            object is to be left to another one.
        planned: Returns what has come of the plan that an object, by its key and uid, wants.
    """

    index: ReassignmentIndex
    topics: TopicIndex
    configs: TopicConfigs
    moving: MovingPartitions
    copies: CopyWatch
    batcher: CommandBatcher
    settings: KubeSettings
    view: Callable[[], ClusterView]
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    absence: Callable[[Mapping[str, Any]], Absence] = lambda _: Absence()
    planned: Callable[[ObjectKey, str], PlanningOutcome | None] = lambda _, __: None

    def remember(self, known: CachedObject, *, at: float) -> ReassignmentMemory:
        """See :class:`~regent.kube.reconciler.ReconciledKind`, as for the others."""
        return ReassignmentMemory(uid=known.uid, generation=known.generation, seen_at=at)

    def request(self, known: CachedObject, memory: ReassignmentMemory) -> AnyReassignmentRequest:
        resource = PARTITION_REASSIGNMENT.parse(known.body)
        if not isinstance(resource, PartitionReassignment):
            is_looked_after = self.absence(known.body).is_looked_after
            return UnreadableRequest(resource, self.now(), is_looked_after)
        at = asyncio.get_running_loop().time()
        planned = self.planned(known.key, known.uid)
        subjects = PARTITION_REASSIGNMENT.subjects(known.body)
        topics = tuple(dict.fromkeys((*subjects, *(() if planned is None else planned.topics))))
        view, moving = self.view(), self.moving.partitions
        configs = {topic: self.configs.get_as_of(view, topic) for topic in topics}
        claims = (claim for topic in topics for claim in self.index.claims(topic))
        return ReassignmentRequest(
            resource=resource,
            view=view,
            topics=topics,
            configs={topic: config for topic, config in configs.items() if config is not None},
            moving=moving,
            copies=self.copies.follow(known.key, _plan_under_way(resource), moving),
            sent=self.moving.sent(at=at),
            refused=memory.refused,
            moved_by_others=moved_by_others(resource, claims, cluster_id=view.cluster_id),
            under_way=self._under_way(resource, view),
            declared=self._declared(topics, cluster_id=view.cluster_id),
            name_rules=self.settings.topic_name_rules,
            planned=planned,
            seen_at=memory.seen_at,
            monotonic_s=at,
            now=self.now(),
            attempts=tuple(memory.attempts),
            absence=self.absence(known.body),
        )

    def _under_way(self, resource: PartitionReassignment, view: ClusterView) -> UnderWay:
        """The others that are executed, if it matters: to a plan for the whole cluster."""
        if resource.spec.rebalance is None or resource.status.started_at is not None:
            return UnderWay()
        return under_way(resource, self.index.all_claims(), view)

    def _declared(
        self, topics: Sequence[str], *, cluster_id: str | None
    ) -> dict[str, DeclaredReplicas]:
        return {
            topic: DeclaredReplicas(str(claim), claim.replicas)
            for topic in topics
            for claim in self.topics.claims(topic)
            if claim.replicas is not None and claim.keeps_replicas(cluster_id=cluster_id)
        }

    def plan(self, request: AnyReassignmentRequest) -> ReassignmentPlan:
        if isinstance(request, UnreadableRequest):
            return plan_unreadable(request)
        return plan_reassignment(request)

    async def send(
        self,
        request: AnyReassignmentRequest,
        commands: Sequence[ResourceCommand],
        memory: ReassignmentMemory,
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
            match command:
                case AlterPartitionReassignments():
                    memory.note_moves(command, outcome, at=at, jitter=self.jitter)
                    self.moving.take_back(tp for tp in command.targets if tp in memory.refused)
                case DescribeTopicConfigs():
                    self._note_reading(command, outcome, request, memory, as_of=as_of)
                case ElectLeaders():
                    memory.note_attempt(
                        command,
                        outcome,
                        view=request.view,
                        at=at,
                        settings=self.settings,
                        jitter=self.jitter,
                    )
                case _:
                    raise AssertionError(f"no reassignment asks for {command}")
        return ()

    def _note_reading(
        self,
        command: DescribeTopicConfigs,
        outcome: Outcome,
        request: ReassignmentRequest,
        memory: ReassignmentMemory,
        *,
        as_of: int,
    ) -> None:
        known: Mapping[str, Mapping[str, str]] = {}
        if isinstance(outcome, Accepted):
            known = outcome.result or {}
        for topic, config in known.items():
            self.configs.put(topic, config, as_of=as_of)
        if known.keys() >= set(command.topics):
            memory.forget_attempt(command)
            return
        memory.note_attempt(
            command,
            outcome,
            view=request.view,
            at=asyncio.get_running_loop().time(),
            settings=self.settings,
            jitter=self.jitter,
        )

    def status_of(self, known: CachedObject) -> PartitionReassignmentStatus:
        return PARTITION_REASSIGNMENT.parse(known.body).status

    def stored(
        self,
        status: PartitionReassignmentStatus,
        *,
        over: PartitionReassignmentStatus,
        memory: ReassignmentMemory,
    ) -> tuple[PlannedEvent, ...]:
        return transition_events(over, status)


def _plan_under_way(resource: PartitionReassignment) -> MovePlan | None:
    """The plan whose execution has begun and is not over; None: there is none."""
    status = resource.status
    if status.started_at is None or status.finished_at is not None:
        return None
    return readable_plan(status.plan)
