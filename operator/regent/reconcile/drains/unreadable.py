"""BrokerDrains that cannot be read: say so, and move nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from regent.reconcile.drains.status import DOMAIN_CONDITIONS
from regent.reconcile.plan import Plan
from regent.reconcile.verdicts import Assessment, Progress, summary_verdicts, unknown_verdict
from regent.resources.broker_drain import UnreadableDrain
from regent.resources.broker_drain_status import BrokerDrainStatus
from regent.resources.conditions import ConditionReason, update_conditions


@dataclass(frozen=True, slots=True)
class UnreadableRequest:
    """What is known about a resource that cannot be read."""

    resource: UnreadableDrain
    now: datetime


def plan_unreadable(request: UnreadableRequest) -> Plan[BrokerDrainStatus]:
    """The plan for a resource that does not match the schema of this Regent."""
    resource = request.resource
    if resource.metadata.is_being_deleted or resource.field.startswith("status."):
        return Plan()  # writing what could be read would lose the rest
    message = f"{resource.field}: {resource.problem}"
    generation = resource.metadata.generation
    verdicts = (
        *summary_verdicts(Assessment(Progress.STALLED, ConditionReason.INVALID_SPEC, message)),
        *(unknown_verdict(condition, message) for condition in DOMAIN_CONDITIONS),
    )
    conditions = update_conditions(
        resource.status.conditions, verdicts, generation=generation, now=request.now
    )
    return Plan(
        status=resource.status.model_copy(
            update={"observed_generation": generation, "conditions": conditions}
        )
    )
