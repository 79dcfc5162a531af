"""Rebalances for tests, and what the planner answers about them."""

from __future__ import annotations

import dataclasses
from typing import Any

from regent.controller.view import ClusterView
from regent.planning.orders import PlanningOrder, PlanningOutcome
from regent.planning.results import (
    PlannedChange,
    PlannedChanges,
    PlanResult,
)
from regent.reconcile.reassignments.execution import ReassignmentPlan
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.reassignments.rebalancing import order_of
from regent.reconcile.reassignments.request import UnderWay
from regent.resources.partition_reassignment import PartitionReassignment
from tests.unit.reconcile.reassignments.reassigning import (
    orders,
    request,
    resource,
)
from tests.unit.reconcile.requests import MONOTONIC_S, status_of, view

SEEN = view(orders((1, 2), (1, 2), (1, 3)))
CHANGES = PlannedChanges(
    (PlannedChange("orders", 0, (1, 2), (3, 2)), PlannedChange("orders", 1, (1, 2), (2, 1))),
    bytes=4096,
    leader_changes=2,
    lower_bound=1,
)
MANUAL = {"policy": "Manual"}
NOTHING = UnderWay()


def rebalance(goals: dict[str, Any] | None = None, **spec: Any) -> PartitionReassignment:
    return resource(rebalance=goals or {}, **spec)


def order(subject: PartitionReassignment, seen: ClusterView = SEEN) -> PlanningOrder:
    assert subject.spec.rebalance is not None
    return order_of(request(subject, seen), subject.spec.rebalance)


def outcome(
    subject: PartitionReassignment,
    result: PlanResult = CHANGES,
    seen: ClusterView = SEEN,
    *,
    age_s: float = 0.0,
    attempt: int = 1,
    remarks: tuple[str, ...] = (),
) -> PlanningOutcome:
    ordered = dataclasses.replace(order(subject, seen), attempt=attempt)
    return PlanningOutcome(order=ordered, result=result, remarks=remarks, at=MONOTONIC_S - age_s)


def reconciled(
    subject: PartitionReassignment,
    seen: ClusterView = SEEN,
    planned: PlanningOutcome | None = None,
    *,
    under_way: UnderWay = NOTHING,
    **more: Any,
) -> ReassignmentPlan:
    made = request(subject, seen, configs={}, **more)
    return plan_reassignment(dataclasses.replace(made, planned=planned, under_way=under_way))


def stored(subject: PartitionReassignment, plan: ReassignmentPlan) -> PartitionReassignment:
    """The resource with the status that a plan has for it."""
    return subject.model_copy(update={"status": status_of(plan)})


def awaiting(seen: ClusterView = SEEN) -> PartitionReassignment:
    """A resource whose plan waits for approval."""
    subject = rebalance(approval=MANUAL)
    return stored(subject, reconciled(subject, seen, outcome(subject, seen=seen)))
