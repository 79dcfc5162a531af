"""PartitionReassignments that cannot be read: say so, and move nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from regent.reconcile.plan import Plan
from regent.reconcile.reassignments.execution import ReassignmentPlan
from regent.reconcile.reassignments.status import DOMAIN_CONDITIONS
from regent.reconcile.unreadable import plan_of_unreadable
from regent.resources.partition_reassignment import UnreadableReassignment


@dataclass(frozen=True, slots=True)
class UnreadableRequest:
    """What is known about a resource that cannot be read.

    Attributes:
        is_looked_after: Whether it is to be left to another Regent.
    """

    resource: UnreadableReassignment
    now: datetime
    is_looked_after: bool = False


def plan_unreadable(request: UnreadableRequest) -> ReassignmentPlan:
    """The plan for a resource that does not match the schema of this Regent. Another Regent, which
    may read it, has it to itself."""
    if request.is_looked_after:
        return Plan()
    return plan_of_unreadable(request.resource, DOMAIN_CONDITIONS, now=request.now)
