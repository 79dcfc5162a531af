"""PartitionReassignments that cannot be read: say so, and move nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from regent.reconcile.plan import Plan
from regent.reconcile.reassignments.execution import ReassignmentPlan
from regent.reconcile.verdicts import Assessment, Progress, summary_verdicts, unknown_verdict
from regent.resources.conditions import ConditionReason, ConditionType, update_conditions
from regent.resources.partition_reassignment import UnreadableReassignment


@dataclass(frozen=True, slots=True)
class UnreadableRequest:
    """What is known about a resource that cannot be read."""

    resource: UnreadableReassignment
    now: datetime


def plan_unreadable(request: UnreadableRequest) -> ReassignmentPlan:
    """The plan for a resource that does not match the schema of this Regent."""
    resource = request.resource
    if resource.metadata.is_being_deleted or resource.field.startswith("status."):
        return Plan()  # writing what could be read would lose the rest
    message = f"{resource.field}: {resource.problem}"
    generation = resource.metadata.generation
    verdicts = (
        *summary_verdicts(Assessment(Progress.STALLED, ConditionReason.INVALID_SPEC, message)),
        unknown_verdict(ConditionType.PLAN_READY, message),
        unknown_verdict(ConditionType.APPROVED, message),
        unknown_verdict(ConditionType.EXECUTING, message),
        unknown_verdict(ConditionType.COMPLETED, message),
    )
    conditions = update_conditions(
        resource.status.conditions, verdicts, generation=generation, now=request.now
    )
    return Plan(
        status=resource.status.model_copy(
            update={"observed_generation": generation, "conditions": conditions}
        )
    )
