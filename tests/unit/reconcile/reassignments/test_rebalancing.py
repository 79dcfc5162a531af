"""spec.rebalance until its plan is approved, and the election at its end."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from regent.admin.commands import Accepted, ElectionType, ElectLeaders
from regent.controller.view import ClusterView
from regent.planning.results import (
    HistoryUnusable,
    InfeasibleGoals,
    InvalidGoals,
    MissedGoal,
    PlannedChange,
    PlannedChanges,
    PlannerFailed,
    PlannerMissing,
    PlanResult,
)
from regent.reconcile.reassignments.kind import PARTITION_REASSIGNMENT
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.request import Attempt
from regent.resources.partition_reassignment_status import Phase
from regent.resources.rebalance_history import RebalanceHistory
from tests.support.present import present
from tests.unit.reconcile.reassignments.reassigning import (
    AUTOMATIC,
    message,
    orders,
    request,
    targets,
    tp,
)
from tests.unit.reconcile.reassignments.rebalances import (
    CHANGES,
    MANUAL,
    SEEN,
    awaiting,
    order,
    outcome,
    rebalance,
    reconciled,
    stored,
)
from tests.unit.reconcile.requests import MONOTONIC_S, partition, state, status_of, view


def test_a_plan_is_ordered_with_the_options_of_the_spec() -> None:
    subject = rebalance(
        {
            "goals": ["ReplicaDistributionGoal", "RackAwareGoal", "MinTopicLeadersPerBrokerGoal"],
            "replicaBalancePercent": 105,
            "maxReplicasPerBroker": 9,
            "drainedBrokers": [3],
            "excludedBrokers": [2],
            "pinnedTopics": ["users"],
            "minTopicLeadersPerBroker": {"orders": 2},
        }
    )
    plan = reconciled(subject)
    assert plan.planning == order(subject)
    assert present(plan.planning).goals.arguments() == (
        "--replica-balance=1.05",
        "--leader-balance=1.10",
        "--max-replicas=9",
        "--goal=ReplicaDistributionGoal",
        "--goal=RackAwareGoal",
        "--goal=MinTopicLeadersPerBrokerGoal",
        "--drain=3",
        "--exclude=2",
        "--pin=users",
        "--min-leaders=orders=2",
    )
    assert state(plan)["Reconciling"] == "True/Planning"
    assert status_of(plan).phase is Phase.PENDING


def test_a_plan_waits_for_its_approval_with_what_the_planner_says() -> None:
    subject = rebalance(approval=MANUAL)
    result = dataclasses.replace(
        CHANGES, missed=(MissedGoal("ReplicaDistributionGoal", "broker 1 has 9, at most 8"),)
    )
    plan = reconciled(subject, planned=outcome(subject, result, remarks=("broker 2 is mute",)))
    assert status_of(plan).phase is Phase.AWAITING_APPROVAL
    assert (
        present(status_of(plan).plan).partitions,
        present(status_of(plan).plan).replica_moves,
    ) == (2, 1)
    assert present(status_of(plan).rebalance).to_api() == {
        "bytes": 4096,
        "leaderChanges": 2,
        "lowerBound": 1,
        "unmetGoals": [{"goal": "ReplicaDistributionGoal", "reason": "broker 1 has 9, at most 8"}],
        "remarks": ["broker 2 is mute"],
    }
    assert plan.planning is not None, "the outcome is needed until the plan is stored"
    ready = next(c for c in status_of(plan).conditions if c.type == "PlanReady")
    assert "ReplicaDistributionGoal: broker 1 has 9, at most 8" in ready.message


def test_other_brokers_or_topics_are_no_reason_to_plan_again() -> None:
    subject = awaiting()
    more = view(orders((1, 2), (1, 2), (1, 3), (2, 3)), brokers=5)
    plan = reconciled(subject, more)
    assert plan.planning is None
    assert status_of(plan).plan == subject.status.plan


def test_what_heals_by_itself_takes_no_plan_away() -> None:
    subject = awaiting()
    down = view(orders((1, 2), (1, 2), (1, 3)), brokers=2)
    plan = reconciled(subject, down)
    assert plan.planning is None
    assert state(plan)["Reconciling"] == "True/BrokersUnavailable"
    assert status_of(plan).plan == subject.status.plan
    back = reconciled(stored(subject, plan), SEEN)
    assert status_of(back).phase is Phase.AWAITING_APPROVAL
    assert status_of(back).plan == subject.status.plan


def test_stored_plan_is_dropped_when_the_rules_forbid_a_topic_of_it() -> None:
    approved = awaiting().model_copy(update={"spec": rebalance().spec})
    plan = reconciled(approved, rules=("shop=others",))
    assert (status_of(plan).phase, status_of(plan).plan, plan.commands) == (Phase.PENDING, None, ())
    assert plan.planning == order(approved)
    assert "topic_name_rules do not let namespace shop move topic orders" in plan.events[0].message


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (view(orders((2, 3), (1, 2), (1, 3))), "orders-0 has the replicas [2, 3], not [1, 2]"),
        (view(orders((1, 2))), "orders-1 does not exist any more"),
        (view(), "topic orders does not exist any more"),
    ],
)
def test_a_plan_that_is_out_of_date_when_it_comes_is_named_until_the_next_one(
    seen: ClusterView, why: str
) -> None:
    subject = rebalance()
    plan = reconciled(subject, seen, outcome(subject, age_s=4.0))
    assert state(plan)["Reconciling"] == "True/PlanOutdated"
    assert state(plan)["PlanReady"] == "False/PlanOutdated"
    assert why in message(plan)
    assert status_of(plan).phase is Phase.PENDING
    (event,) = plan.events
    assert (event.reason, event.is_logged) == ("PlanOutdated", True)
    assert why in event.message
    planned_again = reconciled(subject, seen, outcome(subject, age_s=10.0))
    assert planned_again.planning == order(subject).again()
    assert why in message(planned_again)


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (view(orders((1, 3), (1, 2), (1, 3))), "orders-0: its replicas are [1, 3], neither [1, 2]"),
        (view(orders((1, 2), (2, 1))), "orders-1 has the replicas [2, 1], not [1, 2]"),
        (msgspec.structs.replace(SEEN, cluster_id="cluster-b"), "cluster-b"),
        (msgspec.structs.replace(SEEN, cordoned=(3,)), "brokers [3]"),
    ],
)
def test_a_stored_plan_is_not_dropped_without_a_word(seen: ClusterView, why: str) -> None:
    subject = awaiting()
    if seen.cluster_id == "cluster-b":
        unbound = subject.status.model_copy(update={"cluster_id": None})
        subject = subject.model_copy(update={"status": unbound})
    plan = reconciled(subject, seen)
    assert status_of(plan).plan is None
    (event,) = plan.events
    assert (event.reason, event.is_logged) == ("PlanOutdated", True)
    assert present(subject.status.plan).hash in event.message
    assert why in event.message
    assert reconciled(stored(subject, plan), seen).events == (), "it is said once"


def test_brokers_that_are_down_are_waited_for_unless_they_are_to_be_drained() -> None:
    seen = view(orders((1, 2), (1, 9)))
    plan = reconciled(rebalance(), seen)
    assert plan.planning is None
    assert state(plan)["Reconciling"] == "True/BrokersUnavailable"
    assert "brokers [9] have replicas" in message(plan)
    assert reconciled(rebalance({"drainedBrokers": [9]}), seen).planning is not None


@pytest.mark.parametrize(
    ("result", "expected", "problems", "pause_s"),
    [
        (InfeasibleGoals(("rack a lacks room", "rack b, too")), "GoalsInfeasible", 2, 600.0),
        (InvalidGoals("no broker 9"), "InvalidRebalance", 1, 600.0),
        # It may be installed in a moment, as the Spark Operator of a GitOps tree is.
        (PlannerMissing("pip install 'regent[planner]'"), "PlannerMissing", 1, 10.0),
    ],
)
def test_what_the_planner_refuses_is_said_in_its_own_words_and_tried_again_later(
    result: PlanResult, expected: str, problems: int, pause_s: float
) -> None:
    subject = rebalance()
    plan = reconciled(subject, planned=outcome(subject, result))
    assert state(plan)["Stalled"] == f"True/{expected}"
    assert status_of(plan).phase is Phase.INVALID
    assert len(status_of(plan).problems) == problems
    assert (plan.planning, plan.requeue_after_s) == (order(subject), pause_s)
    later = reconciled(subject, planned=outcome(subject, result, age_s=pause_s))
    assert later.planning == order(subject).again()
    assert state(later) == state(plan), "it stays said until there is another outcome"


def test_a_planner_that_fails_is_started_again() -> None:
    subject = rebalance()
    plan = reconciled(subject, planned=outcome(subject, PlannerFailed("signal 9")))
    assert state(plan)["Reconciling"] == "True/PlannerFailed"
    assert message(plan).endswith("the planner has failed and is started again: signal 9")
    assert plan.requeue_after_s == 10.0
    again = reconciled(subject, planned=outcome(subject, PlannerFailed("signal 9"), age_s=10.0))
    assert again.planning == order(subject).again()
    assert state(again)["Reconciling"] == "True/PlannerFailed"
    assert message(again).endswith("the planner is at work again, after it has failed: signal 9")


def test_a_plan_is_ordered_from_the_history_that_the_spec_asks_for() -> None:
    plan = reconciled(rebalance({"history": {"percentile": 100}}))
    assert plan.planning is not None
    assert plan.planning.history == RebalanceHistory(percentile=100)
    assert reconciled(rebalance()).planning != plan.planning


def test_without_its_history_nothing_is_planned_and_it_is_tried_again_soon() -> None:
    """Somebody samples again, and it goes on."""
    subject = rebalance({"history": {}}, approval=AUTOMATIC)
    plan = reconciled(subject, planned=outcome(subject, HistoryUnusable("it ended yesterday")))
    assert state(plan)["Reconciling"] == "True/HistoryUnusable"
    assert message(plan) == "spec.rebalance: it ended yesterday"
    assert plan.commands == ()
    assert (status_of(plan).phase, status_of(plan).plan) == (Phase.PENDING, None)
    assert (plan.planning, plan.requeue_after_s) == (order(subject), 10.0)


def test_what_will_go_wrong_is_said_before_all_else() -> None:
    subject = rebalance(approval=MANUAL)
    changes = dataclasses.replace(CHANGES, notes=("loads are old",), warnings=("no room",))
    plan = reconciled(subject, planned=outcome(subject, changes, remarks=("no size",)))
    assert present(status_of(plan).rebalance).remarks == ("no room", "loads are old", "no size")


def test_a_plan_without_changes_completes_at_once() -> None:
    subject = rebalance(approval=MANUAL)
    plan = reconciled(subject, planned=outcome(subject, PlannedChanges(())))
    assert status_of(plan).phase is Phase.COMPLETED
    assert message(plan) == "no move brings the cluster closer to the goals"
    assert plan.requeue_after_s == 0.0, "nobody else looks when its time is over"


def test_replicas_below_min_insync_replicas_do_not_hinder_what_leaves_their_number() -> None:
    subject = rebalance()
    seen = view(orders((1,)))
    result = PlannedChanges((PlannedChange("orders", 0, (1,), (2,)),))
    plan = plan_reassignment(
        dataclasses.replace(
            request(subject, seen, configs={"orders": {"min.insync.replicas": "2"}}),
            planned=outcome(subject, result, seen),
        )
    )
    assert plan.status_first, state(plan)


def test_an_approved_plan_is_executed_and_its_leaders_are_elected() -> None:
    subject = rebalance()
    plan = reconciled(subject, planned=outcome(subject))
    assert plan.status_first
    running = stored(subject, plan)
    assert targets(reconciled(running)) == {tp(0): (3, 2), tp(1): (2, 1)}

    followed = partition(1, (2, 1), leader=1)
    arrived = view(orders((3, 2), followed, (1, 3)))
    electing = reconciled(running, arrived)
    election = ElectLeaders(ElectionType.PREFERRED, (tp(1),))
    assert electing.commands == (election,)
    assert state(electing)["Executing"] == "True/ElectingLeaders"
    attempt = Attempt(election, Accepted({}), 1, arrived.controller_epoch, {}, MONOTONIC_S + 5)
    asked = plan_reassignment(dataclasses.replace(request(running, arrived), attempts=(attempt,)))
    assert (asked.commands, asked.requeue_after_s) == ((), 5)

    done = reconciled(running, view(orders((3, 2), (2, 1), (1, 3))))
    assert state(done)["Completed"] == "True/Reassigned"


def test_what_is_incomplete_elects_no_leaders_any_more() -> None:
    """Whoever changes leaders then is not fought with."""
    subject = rebalance(onDrift="Skip")
    running = stored(subject, reconciled(subject, planned=outcome(subject)))
    led_elsewhere = partition(1, (2, 1), leader=1)
    drifted = view(orders((1, 3), led_elsewhere, (1, 3)))
    electing = reconciled(running, drifted)
    assert electing.commands == (ElectLeaders(ElectionType.PREFERRED, (tp(1),)),)
    followed = view(orders((1, 3), (2, 1), (1, 3)))
    incomplete = stored(running, reconciled(running, followed))
    assert incomplete.status.phase is Phase.INCOMPLETE
    assert reconciled(incomplete, drifted).commands == ()


def test_only_an_election_is_a_plan_too() -> None:
    subject = rebalance()
    seen = view(orders(partition(0, (1, 2), leader=2)))
    result = PlannedChanges((PlannedChange("orders", 0, (1, 2), (1, 2)),), leader_changes=1)
    plan = reconciled(subject, seen, outcome(subject, result, seen))
    assert plan.status_first
    electing = reconciled(stored(subject, plan), seen)
    assert electing.commands == (ElectLeaders(ElectionType.PREFERRED, (tp(0),)),)


def test_the_topics_of_the_stored_plan_are_those_of_the_resource() -> None:
    subject = awaiting()
    body: dict[str, Any] = {"spec": {"rebalance": {}}, "status": subject.status.to_api()}
    assert PARTITION_REASSIGNMENT.subjects(body) == ("orders",)
    assert PARTITION_REASSIGNMENT.subjects({"spec": {"rebalance": {}}, "status": {}}) == ()
    body["status"]["plan"]["hash"] = "sha256:0"
    assert PARTITION_REASSIGNMENT.subjects(body) == ()


def test_no_plan_is_made_while_a_topic_cannot_be_read() -> None:
    seen = view(orders((1, 2), (1, 2), (1, 3)), unreadable={"payments": "not JSON"})
    plan = reconciled(rebalance(), seen)
    assert state(plan)["Reconciling"] == "True/TopicsUnreadable"
    assert "the nodes of topics cannot be read: payments" in message(plan)


def test_what_has_no_room_yet_waits_for_the_batches_before_it() -> None:
    """In the stored plan, too, whatever becomes of the process."""
    seen = view(orders((1, 2), (3, 2), (1, 2)))
    changes = (
        PlannedChange("orders", 0, (1, 2), (3, 2), batch=2),
        PlannedChange("orders", 1, (3, 2), (1, 2), batch=1),
        PlannedChange("orders", 2, (1, 2), (2, 1), batch=2),
    )
    for short, first in (((), {tp(0), tp(1), tp(2)}), ((3,), {tp(1), tp(2)})):
        subject = rebalance(approval=AUTOMATIC)
        planned = outcome(subject, PlannedChanges(changes, short_of_room=short), seen)
        begun = stored(subject, reconciled(subject, seen, planned))
        assert begun.status.started_at is not None
        assert targets(reconciled(begun, seen)).keys() == first
