"""A reassignment that was cancelled, and what becomes of its partitions later."""

from __future__ import annotations

import pytest

from regent.controller.view import ClusterView
from regent.reconcile.reassignments.planning import plan_reassignment
from tests.unit.reconcile.reassignments.reassigning import (
    assign,
    begun,
    orders,
    request,
    resource,
    state,
)
from tests.unit.reconcile.requests import view

ORIGIN = view(orders((1, 2), (2, 1), (1, 2)), brokers=5)
TARGETS = assign((1, 3), (4, 1), (5, 3))


@pytest.mark.parametrize(
    "seen",
    [
        view(orders((7, 8), (7, 8), (7, 8)), brokers=8),
        view(orders((1, 3), (7, 8), (7, 8)), brokers=8),
        view(orders((1, 3), (7, 8), (1, 2)), brokers=8),
    ],
    ids=["all", "all that had not arrived", "some"],
)
def test_others_may_move_what_was_cancelled(seen: ClusterView) -> None:
    """Another plan for the same partitions is why people cancel one."""
    subject = begun(resource(assignments=TARGETS), ORIGIN, desiredState="Cancelled")
    plan = plan_reassignment(request(subject, seen))
    assert plan.commands == ()
    assert (state(plan)["Ready"], state(plan)["Stalled"]) == (
        "True/ReassignmentCancelled",
        "False/NotStalled",
    )
