"""Resources that cannot be read: say so, change nothing, and block nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from regent.reconcile.departing import plan_departing
from regent.reconcile.plan import EventReason, FinalizerAction, Plan, PlannedEvent
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.status import DOMAIN_CONDITIONS
from regent.reconcile.verdicts import Assessment, Progress, summary_verdicts, unknown_verdict
from regent.resources.conditions import ConditionReason, ConditionType
from regent.resources.kafka_topic import UnreadableTopic


@dataclass(frozen=True, slots=True)
class UnreadableRequest:
    """What is known about a resource that cannot be read."""

    resource: UnreadableTopic
    now: datetime


def plan_unreadable(resource: UnreadableTopic, *, now: datetime) -> TopicPlan:
    """The plan for a KafkaTopic whose spec does not match the schema of this Regent.

    A deleted one is released and its topic stays, unless it asks for protection.
    """
    metadata, status = resource.metadata, resource.status
    if metadata.is_being_deleted and not resource.is_protected:
        if not resource.holds_finalizer:
            return plan_departing(resource, DOMAIN_CONDITIONS, now=now)
        event = PlannedEvent(
            EventReason.TOPIC_RETAINED, f"the topic stays: {resource.field}: {resource.problem}"
        )
        return Plan(finalizer=FinalizerAction.REMOVE, events=(event,))
    is_config = resource.field.startswith("spec.config[")
    reason = ConditionReason.INVALID_CONFIG if is_config else ConditionReason.INVALID_SPEC
    message = f"{resource.field}: {resource.problem}"
    verdicts = (
        *summary_verdicts(Assessment(Progress.STALLED, reason, message)),
        unknown_verdict(ConditionType.SYNCED, message),
        unknown_verdict(ConditionType.HEALTHY, message),
    )
    return Plan(status=status.with_verdicts(verdicts, generation=metadata.generation, now=now))
