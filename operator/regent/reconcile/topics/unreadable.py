"""Resources that cannot be read: say so, change nothing, and block nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from regent.reconcile.departing import plan_departing, status_if_held
from regent.reconcile.plan import (
    DEFINITION_ASKED_AGAIN_S,
    EventReason,
    FinalizerAction,
    Plan,
    PlannedEvent,
)
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.status import DOMAIN_CONDITIONS
from regent.reconcile.verdicts import Assessment, Progress, summary_verdicts, unknown_verdict
from regent.resources.conditions import ConditionReason, ConditionType
from regent.resources.kafka_topic import UnreadableTopic


@dataclass(frozen=True, slots=True)
class UnreadableRequest:
    """What is known about a resource that cannot be read.

    Attributes:
        is_looked_after: Whether it is to be left to another Regent, which may read it.
        goes_with_definition: Whether it is deleted together with its definition.
    """

    resource: UnreadableTopic
    now: datetime
    is_looked_after: bool = False
    goes_with_definition: bool = False


def plan_unreadable(request: UnreadableRequest) -> TopicPlan:
    """The plan for a KafkaTopic whose spec does not match the schema of this Regent.

    A deleted one is released and its topic stays, unless it asks for protection. Nothing is to be
    protected from the end of a definition.
    """
    if request.is_looked_after:
        return Plan()
    resource, now = request.resource, request.now
    metadata, status = resource.metadata, resource.status
    is_held = metadata.is_being_deleted and resource.is_protected and resource.holds_finalizer
    if metadata.is_being_deleted and (request.goes_with_definition or not resource.is_protected):
        if not resource.holds_finalizer:
            return plan_departing(resource, DOMAIN_CONDITIONS, now=now)
        event = PlannedEvent(
            EventReason.TOPIC_RETAINED, f"the topic stays: {resource.field}: {resource.problem}"
        )
        held = status_if_held(resource, DOMAIN_CONDITIONS, now=now)
        return Plan(finalizer=FinalizerAction.REMOVE, status_if_held=held, events=(event,))
    is_config = resource.field.startswith("spec.config[")
    reason = ConditionReason.INVALID_CONFIG if is_config else ConditionReason.INVALID_SPEC
    message = f"{resource.field}: {resource.problem}"
    verdicts = (
        *summary_verdicts(Assessment(Progress.STALLED, reason, message)),
        unknown_verdict(ConditionType.SYNCED, message),
        unknown_verdict(ConditionType.HEALTHY, message),
    )
    return Plan(
        status=status.with_verdicts(verdicts, generation=metadata.generation, now=now),
        asks_about_definition=is_held,
        requeue_after_s=DEFINITION_ASKED_AGAIN_S if is_held else None,
    )
