"""PartitionReassignments that cannot be read: say so, and move nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from regent.reconcile.reassignments.execution import ReassignmentPlan
from regent.reconcile.reassignments.status import DOMAIN_CONDITIONS
from regent.reconcile.unreadable import plan_of_unreadable
from regent.resources.partition_reassignment import UnreadableReassignment


@dataclass(frozen=True, slots=True)
class UnreadableRequest:
    """What is known about a resource that cannot be read."""

    resource: UnreadableReassignment
    now: datetime


def plan_unreadable(request: UnreadableRequest) -> ReassignmentPlan:
    """The plan for a resource that does not match the schema of this Regent."""
    return plan_of_unreadable(request.resource, DOMAIN_CONDITIONS, now=request.now)
