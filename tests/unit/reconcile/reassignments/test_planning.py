"""A reassignment until its execution begins: plan, approval, pause."""

from __future__ import annotations

import json
from typing import Any

import pytest

from regent.controller.view import ClusterView
from regent.reconcile.reassignments.kind import PARTITION_REASSIGNMENT
from regent.reconcile.reassignments.move_plan import read_plan
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.reassignments.unreadable import UnreadableRequest, plan_unreadable
from regent.reconcile.request import Absence
from regent.resources.partition_reassignment import (
    PartitionReassignment,
    UnreadableReassignment,
    parse_partition_reassignment,
)
from regent.resources.partition_reassignment_status import Phase
from tests.support.present import present
from tests.unit.reconcile.reassignments.reassigning import (
    assign,
    message,
    orders,
    request,
    resource,
    targets,
)
from tests.unit.reconcile.requests import NOW, state, status_of, topic, view

SEEN = view(orders((1, 2), (2, 1)))
MOVED = assign((1, 3), (3, 1))


def planned_hash(seen: ClusterView = SEEN, **spec: Any) -> str:
    plan = plan_reassignment(request(resource(**spec), seen))
    return present(status_of(plan).plan).hash


def manual(**spec: Any) -> PartitionReassignment:
    return resource(approval={"policy": "Manual"}, **spec)


def test_a_plan_waits_for_its_approval_and_nothing_is_sent() -> None:
    plan = plan_reassignment(request(manual(assignments=MOVED), SEEN))
    assert targets(plan) == {}
    assert not plan.status_first
    assert status_of(plan).phase is Phase.AWAITING_APPROVAL
    assert status_of(plan).started_at is None
    assert state(plan) == {
        "Ready": "False/ApprovalNeeded",
        "Reconciling": "False/Idle",
        "Stalled": "True/ApprovalNeeded",
        "PlanReady": "True/Planned",
        "Approved": "False/ApprovalNeeded",
        "Executing": "False/ApprovalNeeded",
        "Completed": "False/ApprovalNeeded",
    }
    assert message(plan) == (
        "the plan changes 2 partitions, copies 2 replicas and changes 1 preferred leaders; set "
        f"spec.approval.planHash to {present(status_of(plan).plan).hash} to have it executed"
    )


@pytest.mark.parametrize(
    "approval",
    [
        {"policy": "Automatic"},
        {"policy": "Manual", "planHash": planned_hash(assignments=MOVED)},
        {"policy": "Limits", "limits": {"partitions": 2, "replicaMoves": 2, "leaderChanges": 1}},
        {
            "policy": "Limits",
            "limits": {"partitions": 1},
            "planHash": planned_hash(assignments=MOVED),
        },
    ],
)
def test_an_approved_plan_is_stored_before_anything_is_moved(approval: dict[str, Any]) -> None:
    plan = plan_reassignment(request(resource(assignments=MOVED, approval=approval), SEEN))
    assert plan.status_first
    assert targets(plan) == {}
    assert status_of(plan).started_at == "2026-05-01T12:00:00Z"
    stored = read_plan(
        present(status_of(plan).plan).document, expected_hash=present(status_of(plan).plan).hash
    )
    assert [(move.tp, move.replicas, move.target) for move in stored.moves] == [
        (("orders", 0), (1, 2), (1, 3)),
        (("orders", 1), (2, 1), (3, 1)),
    ]
    assert (state(plan)["Approved"], state(plan)["Executing"]) == (
        "True/PlanApproved",
        "True/Moving",
    )


@pytest.mark.parametrize(
    ("approval", "reason", "text"),
    [
        (
            {"policy": "Automatic", "planHash": f"sha256:{'0' * 64}"},
            "PlanChanged",
            f"planHash names the plan sha256:{'0' * 64}, the plan now is sha256:",
        ),
        (
            {"policy": "Limits", "limits": {"partitions": 1, "replicaMoves": 2}},
            "ApprovalNeeded",
            "the plan exceeds spec.approval.limits: partitions is 2, more than 1; set",
        ),
        (
            {"policy": "Limits", "limits": {"replicaMoves": 1, "leaderChanges": 0}},
            "ApprovalNeeded",
            "replicaMoves is 2, more than 1, leaderChanges is 1, more than 0",
        ),
        ({}, "ApprovalNeeded", "set spec.approval.planHash to sha256:"),
    ],
)
def test_a_plan_that_is_not_approved_is_not_executed(
    approval: dict[str, Any], reason: str, text: str
) -> None:
    plan = plan_reassignment(request(resource(assignments=MOVED, approval=approval), SEEN))
    assert not plan.status_first
    assert not plan.commands
    assert state(plan)["Approved"] == f"False/{reason}"
    assert text in message(plan)


def test_the_sources_lead_to_the_same_plan() -> None:
    as_json = json.dumps({"version": 1, "partitions": list(reversed(MOVED))})
    assert planned_hash(planJSON=as_json) == planned_hash(assignments=MOVED)


def test_what_is_there_already_is_no_part_of_the_plan() -> None:
    assert planned_hash(assignments=assign((1, 2), (3, 1))) == planned_hash(
        assignments=assign(None, (3, 1))
    )


def test_a_plan_where_regent_chooses_stays_as_long_as_it_can_be_executed() -> None:
    subject = manual(replicationFactor={"orders": 3})
    seen = view(orders((1, 2), (2, 1)), brokers=5)
    first = present(plan_reassignment(request(subject, seen)).status)
    # Other brokers would be chosen now: these have got replicas of another topic.
    new = topic(*[(3, 4, 5)] * 3, name="new")
    changed = view(orders((1, 2), (2, 1)), new, brokers=6)
    assert planned_hash(changed, replicationFactor={"orders": 3}) != present(first.plan).hash
    kept = subject.model_copy(update={"status": first})
    again = present(plan_reassignment(request(kept, changed)).status)
    assert present(again.plan).hash == present(first.plan).hash


@pytest.mark.parametrize(
    "changed",
    [
        view(orders((1, 4), (2, 1)), brokers=5),
        view(orders((1, 2), (2, 1), czxid=8), brokers=5),
        view(orders((2, 1), (2, 1)), brokers=5),
        view(orders((1, 2), (2, 1)), brokers=3),  # a broker of the plan is gone
        view(orders((1, 2), (2, 1), (1, 2)), brokers=5),  # a partition that the plan lacks
    ],
)
def test_a_plan_that_cannot_be_executed_any_more_is_made_again(changed: ClusterView) -> None:
    subject = manual(replicationFactor={"orders": 3})
    first = present(
        plan_reassignment(
            request(subject, view(orders((1, 2), (2, 1)), topic((3,), (3,), name="b"), brokers=5))
        ).status
    )
    again = present(
        plan_reassignment(request(subject.model_copy(update={"status": first}), changed)).status
    )
    assert present(again.plan).hash != present(first.plan).hash


def test_a_plan_that_the_rules_forbid_by_now_is_not_executed() -> None:
    waiting = manual(replicationFactor={"orders": 3})
    seen = view(orders((1, 2), (2, 1)), brokers=5)
    planned = present(plan_reassignment(request(waiting, seen)).status)
    approved = resource(
        approval={"planHash": present(planned.plan).hash}, replicationFactor={"orders": 3}
    ).model_copy(update={"status": planned})
    assert plan_reassignment(request(approved, seen)).status_first
    plan = plan_reassignment(request(approved, seen, rules=["platform=orders"]))
    assert not plan.status_first
    assert state(plan)["Ready"] == "False/TopicNameNotAllowed"


@pytest.mark.parametrize(
    ("desired", "phase", "ready"),
    [
        ("Paused", Phase.PAUSED, "True/Paused"),
        ("Cancelled", Phase.CANCELLED, "True/ReassignmentCancelled"),
    ],
)
def test_a_reassignment_that_shall_not_run_does_not_begin(
    desired: str, phase: Phase, ready: str
) -> None:
    plan = plan_reassignment(request(resource(assignments=MOVED, desiredState=desired), SEEN))
    assert not plan.status_first
    assert not plan.commands
    assert status_of(plan).phase is phase
    assert (state(plan)["Ready"], state(plan)["Completed"][:6]) == (ready, "False/")


def test_a_reassignment_that_was_completed_stays_so_whatever_becomes_of_the_cluster() -> None:
    done = plan_reassignment(request(manual(assignments=assign((1, 2))), SEEN)).status
    subject = manual(assignments=assign((1, 2))).model_copy(update={"status": done})
    elsewhere = view(orders((3, 4)), cluster_id="another")
    assert plan_reassignment(request(subject, elsewhere)).status is None
    later = subject.model_copy(
        update={"metadata": subject.metadata.model_copy(update={"generation": 2})}
    )
    plan = plan_reassignment(request(later, elsewhere))
    assert status_of(plan).observed_generation == 2
    assert {c.observed_generation for c in status_of(plan).conditions} == {2}
    assert state(plan)["Completed"] == "True/Reassigned"


def test_a_reassignment_that_a_newer_regent_completed_does_not_begin_again() -> None:
    status = {"phase": "Celebrated", "finishedAt": "2026-05-01T11:00:00Z", "observedGeneration": 1}
    plan = plan_reassignment(request(resource(assignments=MOVED, status=status), SEEN))
    assert (plan.status, plan.commands) == (None, ())


def test_a_status_whose_record_cannot_be_read_is_kept() -> None:
    body = {"metadata": {"name": "x"}, "spec": {}, "status": {"plan": {"hash": 1}}}
    parsed = parse_partition_reassignment(body)
    assert isinstance(parsed, UnreadableReassignment)
    plan = plan_unreadable(UnreadableRequest(parsed, NOW))
    assert (plan.keeps_unread, plan.commands) == (True, ())
    assert state(plan)["Stalled"] == "True/StatusUnreadable"
    assert state(plan)["Completed"] == "Unknown/Unknown"


def test_without_a_controller_nothing_is_said_for_a_while_and_then_that_nothing_is_known() -> None:
    subject, nobody = resource(assignments=MOVED), view(active=False)
    plan = plan_reassignment(request(subject, nobody))
    assert (plan.status, plan.requeue_after_s) == (None, 30.0)
    waited = resource(assignments=MOVED, status={"observedGeneration": 1})
    absence = Absence(for_s=121, unknown_after_s=120, reason="a broker is the controller")
    plan = plan_reassignment(request(waited, nobody, absence=absence))
    assert state(plan)["Ready"] == "Unknown/ControllerInactive"
    assert state(plan)["Completed"] == "Unknown/Unknown"
    assert "(a broker is the controller)" in message(plan)


def test_what_the_controller_before_has_said_is_left_alone_while_the_cluster_is_read() -> None:
    answered = resource(assignments=MOVED, status={"observedGeneration": 1})
    loading, without_id = view(complete=False), view(cluster_id=None)
    plan = plan_reassignment(request(answered, loading, absence=Absence(for_s=20)))
    assert (plan.status, plan.commands, plan.requeue_after_s) == (None, (), 100)
    for seen, for_s in ((loading, 120), (without_id, 0)):
        plan = plan_reassignment(request(answered, seen, absence=Absence(for_s=for_s)))
        assert state(plan)["Reconciling"] == "True/ClusterLoading"


def test_a_plan_is_not_executed_in_another_cluster() -> None:
    subject = resource(assignments=MOVED, status={"clusterId": "another"})
    plan = plan_reassignment(request(subject, SEEN))
    assert state(plan)["Stalled"] == "True/OtherCluster"
    assert status_of(plan).cluster_id == "another"


def test_a_resource_that_cannot_be_read_says_so_and_nothing_is_done() -> None:
    body = {"metadata": {"name": "x", "generation": 3}, "spec": {"desiredState": "Elsewhere"}}
    parsed = parse_partition_reassignment(body)
    assert isinstance(parsed, UnreadableReassignment)
    plan = plan_unreadable(UnreadableRequest(parsed, NOW))
    assert state(plan)["Stalled"] == "True/InvalidSpec"
    assert message(plan).startswith("spec.desiredState: ")
    assert (
        tuple(c.type for c in status_of(plan).conditions) == PARTITION_REASSIGNMENT.kind.conditions
    )
    gone = parse_partition_reassignment(
        {**body, "metadata": {"name": "x", "deletionTimestamp": "2026-05-01T11:00:00Z"}}
    )
    assert isinstance(gone, UnreadableReassignment)
    assert plan_unreadable(UnreadableRequest(gone, NOW)).status is None
