"""spec.rebalance beside what others execute, or what cannot go on."""

from __future__ import annotations

import msgspec

from regent.planning.orders import PlanningOutcome
from regent.planning.results import (
    PlannedChange,
    PlannedChanges,
)
from regent.reconcile.reassignments.request import HeldUp, UnderWay
from regent.resources.partition_reassignment_status import Phase
from tests.support.present import present
from tests.unit.reconcile.reassignments.reassigning import (
    message,
    moved,
    orders,
    tp,
)
from tests.unit.reconcile.reassignments.rebalances import (
    MANUAL,
    awaiting,
    rebalance,
    reconciled,
)
from tests.unit.reconcile.requests import MONOTONIC_S, state, status_of, view


def test_a_plan_waits_for_the_end_of_what_others_execute() -> None:
    """Between two of their batches, and before they elect leaders, nothing moves."""
    going_on = UnderWay(("shop/other",))
    plan = reconciled(rebalance(), under_way=going_on)
    assert plan.planning is None
    assert state(plan)["Reconciling"] == "True/ReassignmentInProgress"
    assert "no other PartitionReassignment is executed: shop/other" in message(plan)
    subject = awaiting()
    kept = reconciled(subject, under_way=going_on)
    assert status_of(kept).plan == subject.status.plan, "one that is there already stays"


STUCK = orders(moved(0, (1, 2), (2, 9)), (1, 2))
"""Broker 9, which is not alive, is to get a replica of orders-0."""
USERS = msgspec.structs.replace(orders((1, 2), (1, 3)), name="users")


def held(waits_for: str = "orders-0: brokers [9] are not alive") -> UnderWay:
    return UnderWay(held_up=(HeldUp("shop/other", waits_for, (tp(0),)),))


def test_what_cannot_go_on_is_not_waited_for_and_its_topics_stay_as_they_are() -> None:
    subject, seen = rebalance({"pinnedTopics": ["users"]}), view(STUCK, USERS)
    plan = reconciled(subject, seen, under_way=held())
    assert present(plan.planning).goals.pinned == ("orders", "users")
    assert state(plan)["Reconciling"] == "True/Planning"
    waiting = reconciled(subject, seen)
    assert waiting.planning is None, "nobody knows that it cannot go on"
    assert "1 partitions are being moved" in message(waiting)


def test_a_plan_says_whose_topics_it_leaves_as_they_are() -> None:
    subject, seen = rebalance(approval=MANUAL), view(STUCK, USERS)
    wanted = present(reconciled(subject, seen, under_way=held()).planning)
    changes = PlannedChanges((PlannedChange("users", 0, (1, 2), (3, 2)),), 0, 0, 1)
    planned = PlanningOutcome(order=wanted, result=changes, at=MONOTONIC_S)
    plan = reconciled(subject, seen, planned, under_way=held())
    assert status_of(plan).phase is Phase.AWAITING_APPROVAL
    assert present(status_of(plan).rebalance).remarks == (
        "topics stay as they are: orders; PartitionReassignment shop/other moves partitions of "
        "them, and does not go on (orders-0: brokers [9] are not alive)",
    )
    # Broker 9 is back: what was planned without that topic is of no use.
    again = reconciled(subject, view(STUCK, USERS), planned, under_way=UnderWay(("shop/other",)))
    assert again.planning is None
    assert "is executed: shop/other" in message(again)


def test_brokers_that_are_to_be_drained_wait_for_what_cannot_go_on_there() -> None:
    """The topic cannot stay as it is and leave the broker."""
    subject = rebalance({"drainedBrokers": [1]})
    plan = reconciled(subject, view(STUCK, USERS), under_way=held())
    assert plan.planning is None
    assert state(plan)["Reconciling"] == "True/ReassignmentInProgress"
    assert "topic orders has replicas on brokers [1], which are to be drained" in message(plan)
    assert "shop/other" in message(plan)
    assert "spec.desiredState: Cancelled" in message(plan)
    unconcerned = rebalance({"drainedBrokers": [9]})
    assert reconciled(unconcerned, view(STUCK, USERS), under_way=held()).planning is not None
