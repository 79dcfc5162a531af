"""What has arrived is not done before those that lead it have answered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from regent.reconcile.reassignments.planning import plan_reassignment
from tests.unit.reconcile.reassignments.reassigning import message, orders, request, state
from tests.unit.reconcile.reassignments.test_execution import running
from tests.unit.reconcile.requests import view


@pytest.mark.parametrize("hung", [{"unanswered": {4: 0}}, {"silent": (4,)}])
def test_it_is_not_completed_before_those_that_lead_have_answered(hung: dict[str, Any]) -> None:
    """ZooKeeper shows a leader and a full ISR all the while."""
    there = view(orders((1, 3), (4, 1), (5, 3)), brokers=5)
    plan = plan_reassignment(request(running(), msgspec.structs.replace(there, **hung)))
    assert state(plan)["Completed"] == "False/BrokersUnreached"
    assert "orders-1: leader 4" in message(plan)
    assert state(plan_reassignment(request(running(), there)))["Ready"] == "True/Reassigned"
