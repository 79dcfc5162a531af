"""Flux and kubectl read each phase by kstatus, as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.resources.partition_reassignment import PartitionReassignment, PartitionReassignmentSpec
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus, Phase
from tests.support.kstatus import kstatus
from tests.support.present import present
from tests.unit.reconcile.reassignments.reassigning import (
    assign,
    begun,
    moved,
    orders,
    request,
    resource,
)
from tests.unit.reconcile.requests import view

PAGE = Path(__file__).parents[4] / "docs" / "partition-reassignment.md"
STILL = view(orders((1, 2), (1, 2)), brokers=5)
MOVING = view(orders(moved(0, (1, 2), (1, 3)), (1, 2)), brokers=5)
ARRIVED = view(orders((1, 3), (1, 3)), brokers=5)
DRIFTED = view(orders((1, 5), (1, 2)), brokers=5)
HALF_DRIFTED = view(orders((1, 5), (1, 3)), brokers=5)
TARGETS = assign((1, 3), (1, 3))
RUNNING = begun(resource(assignments=TARGETS), STILL)


def later(**spec: str) -> PartitionReassignment:
    return begun(resource(assignments=TARGETS), STILL, **spec)


def completed(**spec: object) -> PartitionReassignment:
    """Completed, and then with another spec."""
    status = present(plan_reassignment(request(RUNNING, ARRIVED)).status)
    changed = PartitionReassignmentSpec.model_validate(
        {**RUNNING.spec.model_dump(by_alias=True, exclude_unset=True), **spec}
    )
    return RUNNING.model_copy(update={"status": status, "spec": changed})


def undoing(**spec: object) -> PartitionReassignment:
    """It has begun to be undone."""
    subject = completed(desiredState="Undone", **spec)
    status = present(plan_reassignment(request(subject, ARRIVED)).status)
    return subject.model_copy(update={"status": status})


REQUESTS: dict[Phase, tuple[ReassignmentRequest, str]] = {
    Phase.PENDING: (request(resource(assignments=assign((1, 9))), STILL), "InProgress"),
    Phase.INVALID: (request(resource(planJSON="{}"), STILL), "Failed"),
    Phase.AWAITING_APPROVAL: (request(resource(assignments=TARGETS, approval={}), STILL), "Failed"),
    Phase.EXECUTING: (request(RUNNING, MOVING), "InProgress"),
    Phase.PAUSING: (request(later(desiredState="Paused"), MOVING), "InProgress"),
    Phase.PAUSED: (request(later(desiredState="Paused"), STILL), "Current"),
    Phase.STOPPED: (request(RUNNING, DRIFTED), "Failed"),
    Phase.CANCELLING: (request(later(desiredState="Cancelled"), MOVING), "InProgress"),
    Phase.CANCELLED: (request(later(desiredState="Cancelled"), STILL), "Current"),
    Phase.INCOMPLETE: (request(later(onDrift="Skip"), HALF_DRIFTED), "Failed"),
    Phase.COMPLETED: (request(RUNNING, ARRIVED), "Current"),
    Phase.UNDOING: (request(undoing(), ARRIVED), "InProgress"),
    Phase.UNDONE: (request(undoing(), STILL), "Current"),
    Phase.UNDO_REFUSED: (
        request(completed(desiredState="Undone", undoWindowSeconds=0), ARRIVED),
        "Failed",
    ),
}


def status_in(phase: Phase) -> PartitionReassignmentStatus:
    return present(plan_reassignment(REQUESTS[phase][0]).status)


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_is_what_kstatus_takes_it_for(phase: Phase) -> None:
    status = status_in(phase)
    assert status.phase is phase
    for generation, expected in ((1, REQUESTS[phase][1]), (2, "InProgress")):
        body = {"metadata": {"generation": generation}, "status": status.to_api()}
        assert kstatus(body) == expected


def test_the_page_says_what_the_conditions_of_each_phase_are() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (True|False) \| (True|False) \| (True|False) \| (True|False) \|",
        PAGE.read_text(),
        flags=re.MULTILINE,
    )
    said = {phase: values for phase, *values in rows}
    types = ("Ready", "Reconciling", "Stalled", "Completed")
    actual = {}
    for phase in Phase:
        truth = {each.type: each.status.value for each in status_in(phase).conditions}
        actual[phase.value] = [truth[type_] for type_ in types]
    assert said == actual
