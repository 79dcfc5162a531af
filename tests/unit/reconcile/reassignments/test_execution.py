"""A reassignment whose execution has begun: batches, pause, cancellation, drift, and crashes."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.admin.commands import AlterPartitionReassignments
from regent.controller.reassignment.algebra import completed, reassign_to
from regent.controller.view import ClusterView, PartitionView
from regent.model.partition import FoundPartition, ReplicaAssignment
from regent.reconcile.reassignments.execution import ReassignmentPlan
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.reassignments.request import DeclaredReplicas, RefusedMove, SentMove
from regent.resources.partition_reassignment import PartitionReassignment
from regent.resources.partition_reassignment_status import Phase
from tests.support.present import present
from tests.unit.reconcile.reassignments.reassigning import (
    assign,
    begun,
    message,
    moved,
    orders,
    racked,
    request,
    resource,
    targets,
    tp,
    with_default,
)
from tests.unit.reconcile.requests import MONOTONIC_S, partition, state, status_of, view

ORIGIN = view(orders((1, 2), (2, 1), (1, 2)), brokers=5)
TARGETS = assign((1, 3), (4, 1), (5, 3))


def running(**spec: Any) -> PartitionReassignment:
    """A reassignment of three partitions that has begun; then with another spec."""
    return begun(resource(assignments=TARGETS), ORIGIN, **spec)


def counts(plan: ReassignmentPlan) -> tuple[int, int, int, int, int]:
    """Partitions done, running, pending, blocked and drifted."""
    p = present(status_of(plan).progress)
    return p.done, p.running, p.pending, p.blocked, p.drifted


def test_a_batch_is_sent_and_then_waited_for() -> None:
    plan = plan_reassignment(request(running(), ORIGIN))
    assert targets(plan) == {tp(0): (1, 3), tp(1): (4, 1), tp(2): (5, 3)}
    sent = {
        tp(0): SentMove((1, 3), (3,), 1, MONOTONIC_S + 9),
        tp(1): SentMove((4, 1), (4,), 2, MONOTONIC_S + 5),
        tp(2): SentMove((5, 3), (5, 3), 1, MONOTONIC_S + 9),
    }
    plan = plan_reassignment(request(running(), ORIGIN, sent=sent))
    assert targets(plan) == {}
    assert counts(plan) == (0, 3, 0, 0, 0)
    assert plan.requeue_after_s == 5


def test_what_the_view_shows_is_sent_with_the_targets() -> None:
    """Somebody else may change a partition before the command reaches the controller."""
    on_its_way = moved(1, (2, 1), (4, 1))
    (command,) = plan_reassignment(
        request(running(desiredState="Cancelled"), view(orders((1, 2), on_its_way), brokers=5))
    ).commands
    assert isinstance(command, AlterPartitionReassignments)
    assert command.found == {
        tp(1): FoundPartition(7, ReplicaAssignment((4, 1, 2), (4,), (2,))),
    }
    (command,) = plan_reassignment(request(running(), ORIGIN)).commands
    assert isinstance(command, AlterPartitionReassignments)
    assert command.found.keys() == command.targets.keys()


@pytest.mark.parametrize(
    "change", [{"approval": {"planHash": f"sha256:{'0' * 64}"}}, {"racks": "Keep"}]
)
def test_a_plan_whose_execution_has_begun_is_executed_whatever_the_resource_says_later(
    change: dict[str, Any],
) -> None:
    raced = racked(ORIGIN, "a", "a", "a", "b", "b")
    assert len(targets(plan_reassignment(request(running(**change), raced)))) == 3


@pytest.mark.parametrize("document", ["", "e30="])
def test_a_stored_plan_that_was_changed_is_not_executed(document: str) -> None:
    subject = running()
    changed = present(subject.status.plan).model_copy(update={"document": document})
    status = subject.status.model_copy(update={"plan": changed})
    plan = plan_reassignment(request(subject.model_copy(update={"status": status}), ORIGIN))
    assert not plan.commands
    assert state(plan)["Stalled"] == "True/PlanUnreadable"


def test_a_pause_lets_arrive_what_is_on_its_way_and_begins_nothing() -> None:
    subject = running(desiredState="Paused")
    plan = plan_reassignment(
        request(subject, view(orders(moved(0, (1, 2), (1, 3)), (2, 1), (1, 2)), brokers=5))
    )
    assert (targets(plan), state(plan)["Reconciling"]) == ({}, "True/Pausing")
    plan = plan_reassignment(request(subject, view(orders((1, 3), (2, 1), (1, 2)), brokers=5)))
    assert targets(plan) == {}
    assert status_of(plan).phase is Phase.PAUSED
    assert (state(plan)["Ready"], state(plan)["Executing"], state(plan)["Completed"]) == (
        "True/Paused",
        "False/Paused",
        "False/Paused",
    )
    assert tp(1) in targets(
        plan_reassignment(request(running(), view(orders((1, 3), (2, 1), (1, 2)), brokers=5)))
    ), "Running goes on"


def test_cancelling_takes_back_what_is_on_its_way_to_the_replicas_that_it_had_in_their_order() -> (
    None
):
    subject = running(desiredState="Cancelled")
    on_its_way = view(orders((1, 3), moved(1, (2, 1), (4, 1)), moved(2, (1, 2), (5, 3))), brokers=5)
    plan = plan_reassignment(request(subject, on_its_way))
    assert targets(plan) == {tp(1): (2, 1), tp(2): (1, 2)}
    assert state(plan)["Reconciling"] == "True/Cancelling"
    sent = {
        tp(1): SentMove((2, 1), (), 2, MONOTONIC_S + 9),
        tp(2): SentMove((1, 2), (), 1, MONOTONIC_S + 9),
    }
    assert targets(plan_reassignment(request(subject, on_its_way, sent=sent))) == {}
    back = view(orders((1, 3), (2, 1), (1, 2)), brokers=5)
    plan = plan_reassignment(request(subject, back))
    assert targets(plan) == {}, "what had arrived stays"
    assert status_of(plan).phase is Phase.CANCELLED
    assert (state(plan)["Ready"], state(plan)["Completed"][:5]) == (
        "True/ReassignmentCancelled",
        "False",
    )


@pytest.mark.parametrize(
    "seen",
    [
        view(orders((7, 8), (7, 8), (7, 8)), brokers=8),
        view(orders((1, 3), (7, 8), (1, 2)), brokers=8),
    ],
    ids=["all", "some"],
)
def test_others_may_move_what_was_cancelled(seen: ClusterView) -> None:
    """Another plan for the same partitions is why people cancel one."""
    plan = plan_reassignment(request(running(desiredState="Cancelled"), seen))
    assert plan.commands == ()
    assert state(plan)["Ready"] == "True/ReassignmentCancelled"
    assert state(plan)["Stalled"] == "False/NotStalled"


@pytest.mark.parametrize("hung", [{"unanswered": {4: 0}}, {"silent": (4,)}])
def test_it_is_not_completed_before_those_that_lead_have_answered(hung: dict[str, Any]) -> None:
    """ZooKeeper shows a leader and a full ISR all the while."""
    there = view(orders((1, 3), (4, 1), (5, 3)), brokers=5)
    plan = plan_reassignment(request(running(), msgspec.structs.replace(there, **hung)))
    assert state(plan)["Completed"] == "False/BrokersUnreached"
    assert "orders-1: leader 4" in message(plan)
    assert state(plan_reassignment(request(running(), there)))["Ready"] == "True/Reassigned"


def test_what_cannot_go_back_is_named_and_tried_again() -> None:
    seen = view(orders((1, 3), (4, 1), moved(2, (1, 2), (5, 3))), brokers=5)
    refused = {tp(2): RefusedMove((1, 2), "none of the others is in sync", MONOTONIC_S + 4)}
    plan = plan_reassignment(request(running(desiredState="Cancelled"), seen, refused=refused))
    assert (targets(plan), plan.requeue_after_s) == ({}, 4)
    assert "orders-2: none of the others is in sync" in message(plan)


def test_cancelling_half_way_goes_back_one_stage() -> None:
    origin = view(orders((1, 2, 3)), brokers=6)
    subject = begun(resource(assignments=assign((4, 5, 6))), origin, desiredState="Cancelled")
    seen = view(orders(moved(0, (1, 2, 4), (1, 4, 5))), brokers=6)
    assert targets(plan_reassignment(request(subject, seen))) == {tp(0): (1, 2, 4)}


def test_a_reassignment_of_another_tool_is_shown_and_left_alone() -> None:
    seen = view(orders(moved(0, (1, 2), (2, 5)), (4, 1), (5, 3)), brokers=5)
    for desired in ("Running", "Cancelled", "Paused"):
        plan = plan_reassignment(request(running(desiredState=desired), seen))
        assert targets(plan) == {}
        assert counts(plan) == (2, 0, 0, 1, 0)
        (sample,) = status_of(plan).partitions
        assert sample.message == "something else is moving it to [2, 5]"
    plan = plan_reassignment(request(running(), seen))
    assert state(plan)["Reconciling"] == "True/ReassignmentInProgress"


def test_what_another_reassignment_moves_waits_until_that_one_is_over() -> None:
    others = {tp(0): "shop/first"}
    plan = plan_reassignment(request(running(), ORIGIN, others=others))
    assert targets(plan) == {tp(1): (4, 1), tp(2): (5, 3)}
    assert state(plan)["Reconciling"] == "True/ReassignmentInProgress"
    assert "orders-0: PartitionReassignment shop/first moves it" in message(plan)
    arrived = view(orders((1, 3), (4, 1), (5, 3)), brokers=5)
    plan = plan_reassignment(request(running(), arrived, others=others))
    assert state(plan)["Completed"].startswith("True"), "there is nothing to wait for"


def test_what_a_kafkatopic_would_undo_does_not_begin() -> None:
    subject = begun(resource(replicationFactor={"orders": 3}), ORIGIN)
    declared = {"orders": DeclaredReplicas("shop/orders", 2)}
    plan = plan_reassignment(request(subject, ORIGIN, declared=declared))
    assert targets(plan) == {}
    assert state(plan)["Reconciling"] == "True/ResourceConflict"
    assert "KafkaTopic shop/orders declares 2 replicas and would restore them" in message(plan)


DRIFT = {
    "moved elsewhere": view(orders((1, 5), (2, 1), (1, 2)), brokers=5),
    "topic recreated": view(orders((1, 2), (2, 1), (1, 2), czxid=9), brokers=5),
    "topic deleted": view(brokers=5),
}


@pytest.mark.parametrize("seen", DRIFT.values(), ids=DRIFT.keys())
def test_drift_stops_the_execution_and_is_named(seen: ClusterView) -> None:
    plan = plan_reassignment(request(running(), seen))
    assert targets(plan) == {}
    assert state(plan)["Stalled"] == "True/PartitionsDrifted"
    assert "orders-0: " in message(plan)
    assert state(plan)["Completed"].startswith("False")


def test_drift_may_be_skipped_and_the_reassignment_is_never_completed_then() -> None:
    subject = running(onDrift="Skip")
    plan = plan_reassignment(request(subject, DRIFT["moved elsewhere"]))
    assert targets(plan) == {tp(1): (4, 1), tp(2): (5, 3)}
    plan = plan_reassignment(request(subject, view(orders((1, 5), (4, 1), (5, 3)), brokers=5)))
    assert status_of(plan).phase is Phase.INCOMPLETE
    assert (state(plan)["Stalled"], state(plan)["Completed"]) == (
        "True/PartitionsDrifted",
        "False/PartitionsDrifted",
    )


def test_what_drifts_back_is_moved() -> None:
    stopped = running()
    plan = plan_reassignment(request(stopped, DRIFT["moved elsewhere"]))
    again = stopped.model_copy(update={"status": plan.status})
    assert tp(0) in targets(plan_reassignment(request(again, ORIGIN)))


def incomplete() -> PartitionReassignment:
    """All have arrived but the first partition, which somebody else has moved."""
    subject = running(onDrift="Skip")
    plan = plan_reassignment(request(subject, view(orders((1, 5), (4, 1), (5, 3)), brokers=5)))
    assert status_of(plan).phase is Phase.INCOMPLETE
    return subject.model_copy(update={"status": status_of(plan)})


BACK = view(orders((1, 5), (2, 1), (5, 3)), brokers=5)
"""Another job has moved the second partition, which had arrived, back to where it was."""


@pytest.mark.parametrize(
    "seen",
    [BACK, view(orders((1, 5), moved(1, (4, 1), (2, 1)), (5, 3)), brokers=5)],
    ids=["moved back", "on its way back"],
)
def test_what_is_incomplete_moves_nothing_again_that_had_arrived(seen: ClusterView) -> None:
    """Two of them would move a partition back and forth without end."""
    plan = plan_reassignment(request(incomplete(), seen))
    assert targets(plan) == {}
    assert status_of(plan).phase is Phase.INCOMPLETE
    assert state(plan)["Stalled"] == "True/PartitionsDrifted"
    assert "orders-1" in message(plan)


def test_what_is_incomplete_goes_on_once_its_spec_is_changed() -> None:
    subject = incomplete()
    metadata = subject.metadata.model_copy(update={"generation": 2})
    changed = subject.model_copy(update={"metadata": metadata})
    assert targets(plan_reassignment(request(changed, BACK))) == {tp(1): (4, 1)}


def test_nothing_goes_to_a_broker_that_shuts_down() -> None:
    seen = msgspec.structs.replace(ORIGIN, shutting_down=(3,))
    assert targets(plan_reassignment(request(running(), seen))) == {tp(1): (4, 1)}


def test_a_refused_move_waits_and_is_named() -> None:
    refused = {tp(0): RefusedMove((1, 3), "no way", MONOTONIC_S + 4)}
    plan = plan_reassignment(request(running(), ORIGIN, refused=refused))
    assert tp(0) not in targets(plan)
    assert len(targets(plan)) == 2
    assert state(plan)["Reconciling"] == "True/MovesRefused"
    assert "orders-0: no way" in message(plan)
    assert plan.requeue_after_s == 4
    due = {tp(0): RefusedMove((1, 3), "no way", MONOTONIC_S)}
    assert tp(0) in targets(plan_reassignment(request(running(), ORIGIN, refused=due)))


def test_what_a_status_shows_of_many_partitions_is_bounded() -> None:
    origin = view(orders(*[(1, 2)] * 200), brokers=3)
    subject = begun(resource(assignments=assign(*[(1, 3)] * 200)), origin)
    seen = orders(partition(0, (1, 3)), moved(1, (1, 2), (1, 3)), *[(1, 2)] * 198)
    plan = plan_reassignment(request(subject, view(seen, brokers=3)))
    assert len(status_of(plan).partitions) == 50
    assert status_of(plan).partitions[0].state == "Running"


lists = st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True).map(tuple)


@given(
    st.lists(st.tuples(lists, lists), min_size=1, max_size=8),
    st.booleans(),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_however_often_it_is_killed_the_plan_is_executed_and_no_copy_is_made_twice(
    wanted: list[tuple[tuple[int, ...], tuple[int, ...]]],
    one_by_one: bool,
    per_broker: int,
    chance: random.Random,
) -> None:
    """Nothing but the stored status is remembered from one step to the next: each may be by another
    process. Partitions arrive in any order."""
    cluster = {i: ReplicaAssignment(origin) for i, (origin, _) in enumerate(wanted)}

    def seen() -> ClusterView:
        partitions = (shown(i, a) for i, a in cluster.items())
        return with_default(view(orders(*partitions), brokers=6), "1")

    subject = resource(
        assignments=assign(*(target for _, target in wanted)),
        concurrency={"perBroker": per_broker, "perPartitionOneByOne": one_by_one},
        racks="Ignore",
    )
    first = present(plan_reassignment(request(subject, seen())).status)
    copies, steps = 0, 0
    while True:
        plan = plan_reassignment(request(subject, seen()))
        if plan.status is not None:
            subject = subject.model_copy(update={"status": plan.status})
        for moved_tp, target in targets(plan).items():
            assert target is not None
            before = cluster[moved_tp.partition]
            assert not before.is_being_reassigned, "no move is sent twice"
            cluster[moved_tp.partition] = reassign_to(before, target)
            copies += len(cluster[moved_tp.partition].adding_replicas)
        moving = [i for i, a in cluster.items() if a.is_being_reassigned]
        if moving:
            arrived = chance.choice(moving)
            cluster[arrived] = completed(cluster[arrived])
        elif subject.status.phase is Phase.COMPLETED:
            break
        steps += 1
        assert steps < 100, "it comes to an end"
    assert {i: a.replicas for i, a in cluster.items()} == {
        i: target for i, (_, target) in enumerate(wanted)
    }
    assert copies == present(first.plan).replica_moves
    assert present(subject.status.plan).hash == present(first.plan).hash


def shown(index: int, assignment: ReplicaAssignment) -> PartitionView:
    staying = [b for b in assignment.replicas if b not in assignment.adding_replicas]
    return partition(
        index,
        assignment.replicas,
        tuple(staying),
        adding=assignment.adding_replicas,
        removing=assignment.removing_replicas,
    )


def test_moves_to_a_broker_that_was_cordoned_since_wait_and_say_so() -> None:
    """The BrokerDrain would move them off again."""
    origin = view(orders((1, 2), (4, 1), (1, 2)), brokers=5)
    subject = begun(resource(assignments=assign((1, 4), (4, 2), (1, 3))), origin)
    cordoned = msgspec.structs.replace(origin, cordoned=(4,))
    plan = plan_reassignment(request(subject, cordoned))
    assert targets(plan) == {tp(1): (4, 2), tp(2): (1, 3)}
    assert state(plan)["Reconciling"] == "True/BrokersCordoned"
    assert "orders-0: a BrokerDrain has cordoned brokers [4]" in message(plan)


def test_a_topic_that_cannot_be_read_is_waited_for_and_is_not_gone() -> None:
    seen = view(brokers=5, unreadable={"orders": "not JSON"})
    plan = plan_reassignment(request(running(), seen))
    assert counts(plan) == (0, 0, 0, 3, 0)
    assert state(plan)["Reconciling"] == "True/TopicsUnreadable"
    assert "orders-0: the node of topic orders cannot be read: not JSON" in message(plan)
    back = plan_reassignment(request(running(), ORIGIN))
    assert targets(back) == {tp(0): (1, 3), tp(1): (4, 1), tp(2): (5, 3)}
