"""Undoing a reassignment, and for how long that is possible."""

from __future__ import annotations

import pytest

from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.move_plan import read_plan
from regent.resources.broker_drain_status import DrainPhase
from regent.resources.partition_reassignment import (
    DEFAULT_UNDO_WINDOW_S,
)
from regent.resources.partition_reassignment_status import Phase
from tests.support.present import present
from tests.unit.reconcile.drains.draining import Cluster, Drain
from tests.unit.reconcile.reassignments.jobs import BEFORE, TARGETS, Job, completed
from tests.unit.reconcile.reassignments.reassigning import assign
from tests.unit.reconcile.requests import partition


@pytest.mark.parametrize("arrived", range(5))
def test_what_was_moved_goes_back_however_far_it_was(arrived: int) -> None:
    job = Job(Cluster({"t": BEFORE}))
    job.settle()
    for tp in tuple(job.cluster.moving())[:arrived]:
        job.cluster.arrive(tp)
    job.change(desiredState="Undone")
    job.finish()
    assert job.cluster.replicas("t") == BEFORE
    assert job.is_in(Phase.UNDONE)
    assert job.truth()["Ready"] == "True/ReassignmentUndone"
    assert job.truth()["Completed"] == "False/ReassignmentUndone"
    assert job.message == "4 partitions have the replicas that they had before"
    assert job.claim is None, "others may move them"


def test_a_completed_one_is_undone_and_is_over_then() -> None:
    job = completed()
    job.after_s = DEFAULT_UNDO_WINDOW_S - 1
    job.change(desiredState="Undone")
    job.settle()
    assert job.is_in(Phase.UNDOING)
    assert job.truth()["Reconciling"] == "True/Undoing"
    assert job.truth()["Completed"] == "False/Undoing"
    shown = job.status.to_api()
    assert "finishedAt" not in shown
    assert "progress" in shown
    job.finish()
    assert job.cluster.replicas("t") == BEFORE
    assert job.status.finished_at == "2026-05-02T11:59:59Z"
    assert present(job.status.plan).document == "", "nobody needs it any more"
    assert job.events[-3:] == [
        "ReassignmentCompleted",
        "ReassignmentUndoStarted",
        "ReassignmentUndone",
    ]


def test_undone_it_does_not_run_again_and_says_so() -> None:
    job = completed()
    job.change(desiredState="Undone")
    job.finish()
    asked = len(job.cluster.asked)
    job.change(desiredState="Running")
    job.finish()
    assert job.is_in(Phase.UNDONE)
    assert len(job.cluster.asked) == asked
    assert job.truth()["Stalled"] == "True/AlreadyUndone"
    assert job.truth()["Ready"] == "False/AlreadyUndone"
    assert job.truth()["Completed"] == "False/AlreadyUndone"
    assert "Create another PartitionReassignment" in job.message
    for nothing_moves in ("Paused", "Cancelled", "Undone"):
        job.change(desiredState=nothing_moves)
        job.finish()
        assert job.is_in(Phase.UNDONE)
        assert job.truth()["Ready"] == "True/ReassignmentUndone"
    assert job.events[-2:] == ["ReassignmentUndone", "AlreadyUndone"], "it is undone once"


def test_going_back_keeps_the_limits_and_the_throttle() -> None:
    job = completed(concurrency={"total": 1}, throttle={"bytesPerSecond": 4096})
    job.cluster.sizes.clear()
    job.cluster.rates.clear()
    job.change(desiredState="Undone")
    job.finish()
    assert job.cluster.sizes == [1] * 4
    assert set(job.cluster.rates) == {4096}


def test_when_the_window_is_over_it_cannot_be_undone_and_says_so() -> None:
    job = completed(undoWindowSeconds=600)
    assert job.requeues_after_s() == 600
    job.after_s = 600
    job.settle()
    assert present(job.status.plan).document == "", "it leaves the memory"
    assert job.is_in(Phase.COMPLETED)
    assert job.requeues_after_s() is None
    asked, events = len(job.cluster.asked), list(job.events)
    job.change(desiredState="Undone")
    job.settle()
    assert job.is_in(Phase.UNDO_REFUSED)
    assert job.truth()["Stalled"] == "True/UndoWindowOver"
    assert job.truth()["Completed"] == "True/UndoWindowOver"
    assert "could be undone for 600 seconds (spec.undoWindowSeconds)" in job.message
    assert "create another PartitionReassignment" in job.message
    assert len(job.cluster.asked) == asked
    job.change(desiredState="Running")
    job.settle()
    assert job.is_in(Phase.COMPLETED)
    assert job.truth()["Ready"] == "True/Reassigned"
    assert job.events == [*events, "UndoWindowOver"], "a Warning, and no second completion"


def test_what_somebody_else_has_moved_since_is_left_to_them() -> None:
    job = completed()
    job.cluster.put("t", partition(1, (1, 4)))
    job.change(desiredState="Undone")
    job.finish()
    assert job.cluster.replicas("t") == [BEFORE[0], (1, 4), *BEFORE[2:]]
    assert job.is_in(Phase.UNDONE)
    assert "3 partitions have the replicas that they had before; 1 are left" in job.message
    assert "t-1: its replicas are [1, 4]" in job.message


def test_who_began_first_goes_first_also_on_the_way_back() -> None:
    job = completed()
    other = Job(job.cluster, name="other", assignments=assign((4, 2), topic="t"))
    other.after_s = 60
    other.settle()
    assert TopicPartition("t", 0) in job.cluster.moving()
    claim = present(other.claim)
    job.others = [claim]
    job.after_s = 120
    job.change(desiredState="Undone")
    job.settle()
    assert job.truth()["Reconciling"] == "True/ReassignmentInProgress"
    assert "t-0: something else is moving it to [4, 2]" in job.message
    own = present(job.claim)
    assert own.started_at == "2026-05-01T12:02:00Z"
    assert own.goes_before(other.resource) is False
    while job.cluster.moving():
        job.cluster.arrive(next(iter(job.cluster.moving())))
        job.settle()
    assert job.cluster.replicas("t")[1:] == BEFORE[1:]


def test_an_undoing_can_be_cancelled() -> None:
    job = completed(concurrency={"total": 2})
    job.change(desiredState="Undone")
    job.settle()
    job.cluster.arrive(TopicPartition("t", 0))
    job.settle()
    job.change(desiredState="Cancelled")
    job.settle()
    assert job.is_in(Phase.CANCELLED)
    assert job.cluster.replicas("t") == [BEFORE[0], *TARGETS[1:]]
    assert "Undone goes on with the rest, and Running executes the plan again" in job.message


def test_an_undoing_can_be_taken_back() -> None:
    job = completed(concurrency={"total": 2})
    job.change(desiredState="Undone")
    job.settle()
    job.after_s = 60
    job.change(desiredState="Running")
    job.finish()
    assert job.is_in(Phase.COMPLETED)
    assert job.cluster.replicas("t") == TARGETS
    assert job.status.started_at == "2026-05-01T12:01:00Z"
    assert job.status.undo_started_at is None


def test_undone_before_it_began_nothing_is_moved() -> None:
    job = Job(Cluster({"t": BEFORE}), desiredState="Undone")
    job.finish()
    assert job.is_in(Phase.UNDONE)
    assert job.cluster.asked == []
    assert job.message == "spec.desiredState is Undone: nothing was moved"
    job.change(desiredState="Running")
    job.finish()
    assert job.cluster.replicas("t") == TARGETS


def both_settle(*jobs: Job) -> None:
    """Reconcile in turn until none of them changes anything any more."""
    for _ in range(30):
        for job in jobs:
            job.others = [each.claim for each in jobs if each is not job and each.claim is not None]
        changed = [job.round() for job in jobs]
        if not any(changed):
            return
    raise AssertionError(f"no end: {jobs[0].cluster.asked[-4:]}")


@pytest.mark.parametrize("desired", ["Cancelled", "Undone"])
@pytest.mark.parametrize("given_up", ["first", "second"])
def test_what_another_one_moves_to_the_same_replicas_is_not_called_back(
    desired: str, given_up: str
) -> None:
    """It would begin again, and be called back again, without end."""
    cluster = Cluster({"t": BEFORE})
    jobs = {name: Job(cluster, name=name) for name in ("first", "second")}
    jobs["second"].after_s = 10
    both_settle(*jobs.values())
    asked = len(cluster.asked)
    jobs[given_up].after_s = 20
    jobs[given_up].change(desiredState=desired)
    both_settle(*jobs.values())
    assert len(cluster.asked) == asked
    for tp in tuple(cluster.moving()):
        cluster.arrive(tp)
        both_settle(*jobs.values())
    other = jobs["second" if given_up == "first" else "first"]
    assert other.is_in(Phase.COMPLETED)
    if desired == "Cancelled":
        assert cluster.replicas("t") == TARGETS


def test_an_undone_drain_does_not_call_back_what_a_reassignment_moves() -> None:
    cluster = Cluster({"t": [(1, 2), (1, 2)]})
    drain = Drain(cluster, 1, concurrency={"total": 1})
    drain.settle()
    ((first, _),) = cluster.asked
    plan = read_plan(
        present(drain.status.plan).document, expected_hash=present(drain.status.plan).hash
    )
    (waiting,) = (move for move in plan.moves if move.tp != first)
    cluster.cordoned = ()
    wanted = {"topic": "t", "partition": waiting.partition, "replicas": waiting.target}
    job = Job(cluster, assignments=[wanted])
    job.settle()
    assert job.claim is not None
    drain.moved_by_others = dict.fromkeys(job.claim.partitions, str(job.claim))
    drain.change(desiredState="Undone")
    drain.settle()
    assert cluster.asked[1:] == [(waiting.tp, waiting.target), (first, (1, 2))]
    cluster.arrive(waiting.tp)
    job.finish()
    assert job.is_in(Phase.COMPLETED)
    drain.moved_by_others = {}
    drain.finish()
    assert drain.is_in(DrainPhase.UNDONE)
    assert cluster.replicas("t") == [(1, 2), (1, 2)]
