"""Undoing a reassignment, for how long that is possible, and when a finished one goes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from regent.controller.view import ClusterView
from regent.model.partition import TopicPartition
from regent.reconcile.plan import Plan
from regent.reconcile.reassignments.claims import ReassignmentClaim, claim_of, moved_by_others
from regent.reconcile.reassignments.execution import ReassignmentPlan
from regent.reconcile.reassignments.move_plan import read_plan
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.transitions import transition_events
from regent.reconcile.reassignments.unreadable import UnreadableRequest, plan_unreadable
from regent.resources.conditions import ConditionType, find_condition
from regent.resources.partition_reassignment import (
    DEFAULT_UNDO_WINDOW_S,
    PartitionReassignment,
    UnreadableReassignment,
    parse_partition_reassignment,
)
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus, Phase
from tests.unit.reconcile.drains.draining import Cluster
from tests.unit.reconcile.reassignments.reassigning import AUTOMATIC, assign
from tests.unit.reconcile.requests import MONOTONIC_S, NOW, partition

BEFORE = [(1, 2), (2, 3), (3, 1), (1, 2)]
TARGETS = [(3, 2), (4, 3), (3, 4), (2, 1)]


class Job:
    """A PartitionReassignment with the status that was stored last. Nothing else is remembered.

    Attributes:
        after_s: The present, in seconds.
        events: So far.
    """

    def __init__(self, cluster: Cluster, *, name: str = "job", **spec: Any) -> None:
        self.cluster = cluster
        self.name = name
        self.generation = 1
        self.spec: dict[str, Any] = {
            "approval": AUTOMATIC,
            "assignments": assign(*TARGETS, topic="t"),
            **spec,
        }
        self.status = PartitionReassignmentStatus()
        self.after_s = 0.0
        self.others: list[ReassignmentClaim] = []
        self.seen: ClusterView | None = None
        self.events: list[str] = []
        self._is_deleted = False
        self._requeue_after_s: float | None = None

    @property
    def body(self) -> dict[str, Any]:
        return {
            "metadata": {
                "name": self.name,
                "namespace": "shop",
                "uid": f"uid-{self.name}",
                "generation": self.generation,
                "creationTimestamp": "2026-05-01T10:00:00Z",
            },
            "spec": self.spec,
            "status": self.status.to_api(),
        }

    @property
    def resource(self) -> PartitionReassignment:
        parsed = parse_partition_reassignment(self.body)
        assert isinstance(parsed, PartitionReassignment), parsed
        return parsed

    @property
    def claim(self) -> ReassignmentClaim | None:
        return claim_of(self.body)

    def request(self) -> ReassignmentRequest:
        view, resource = self.seen or self.cluster.view, self.resource
        return ReassignmentRequest(
            resource=resource,
            view=view,
            topics=("t",),
            configs=self.cluster.configs,
            moving=self.cluster.moving(),
            sent={},
            refused={},
            moved_by_others=moved_by_others(resource, self.others, cluster_id=view.cluster_id),
            seen_at=MONOTONIC_S,
            monotonic_s=MONOTONIC_S,
            now=NOW + timedelta(seconds=self.after_s),
        )

    def plan(self) -> ReassignmentPlan:
        return plan_reassignment(self.request())

    def change(self, **spec: Any) -> None:
        self.spec |= spec
        self.generation += 1

    def round(self) -> bool:
        plan = self.plan()
        self._is_deleted, self._requeue_after_s = plan.is_to_be_deleted, plan.requeue_after_s
        for command in () if plan.status_first else plan.commands:
            self.cluster.carry_out(command)
        if plan.status is None or plan.status == self.status:
            return bool(plan.commands)
        self.events += [each.reason for each in transition_events(self.status, plan.status)]
        self.status = plan.status
        return True

    def settle(self) -> None:
        """Reconcile until nothing changes; what is on its way stays there."""
        for _ in range(50):
            if not self.round():
                return
        raise AssertionError(f"no end: {self.status}")

    def finish(self) -> None:
        """Reconcile, and have everything arrive, until nothing changes."""
        for _ in range(200):
            self.settle()
            moving = tuple(self.cluster.moving())
            if not moving:
                return
            self.cluster.arrive(moving[0])
        raise AssertionError(f"no end: {self.status}")

    def is_in(self, phase: Phase) -> bool:
        return self.status.phase is phase

    def is_deleted(self) -> bool:
        """Whether Regent has deleted it in the last round."""
        return self._is_deleted

    def requeues_after_s(self) -> float | None:
        """When it is looked at again after the last round."""
        return self._requeue_after_s

    def truth(self) -> dict[str, str]:
        """Conditions as ``Type: Status/Reason``."""
        return {c.type: f"{c.status.value}/{c.reason}" for c in self.status.conditions}

    @property
    def message(self) -> str:
        ready = find_condition(self.status.conditions, ConditionType.READY)
        assert ready is not None
        return ready.message


def completed(**spec: Any) -> Job:
    job = Job(Cluster({"t": BEFORE}), **spec)
    job.finish()
    assert job.is_in(Phase.COMPLETED)
    assert job.cluster.replicas("t") == TARGETS
    return job


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
    assert job.status.plan is not None
    assert job.status.plan.document == "", "nobody needs it any more"
    assert job.events[-3:] == [
        "ReassignmentCompleted",
        "ReassignmentUndoStarted",
        "ReassignmentUndone",
    ]
    asked = len(job.cluster.asked)
    job.change(desiredState="Running")
    job.finish()
    assert job.is_in(Phase.UNDONE)
    assert len(job.cluster.asked) == asked


def test_that_it_is_undone_is_stored_before_anything_goes_back() -> None:
    job = completed()
    job.change(desiredState="Undone")
    plan = job.plan()
    assert plan.status_first
    assert not plan.commands
    assert plan.status is not None
    assert plan.status.undo_started_at == "2026-05-01T12:00:00Z"


def test_once_begun_it_goes_on_however_long_it_takes() -> None:
    job = completed(concurrency={"total": 1})
    job.change(desiredState="Undone")
    job.settle()
    job.after_s = 10 * DEFAULT_UNDO_WINDOW_S
    job.finish()
    assert job.cluster.replicas("t") == BEFORE


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
    assert job.status.plan is not None
    assert job.status.plan.document == "", "it leaves the memory"
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


def test_without_a_window_the_moves_are_forgotten_at_once() -> None:
    job = completed(undoWindowSeconds=0)
    assert job.status.plan is not None
    assert job.status.plan.document == ""
    assert job.status.plan.hash.startswith("sha256:")


def test_a_window_that_is_made_longer_in_time_counts() -> None:
    job = completed(undoWindowSeconds=600)
    job.change(undoWindowSeconds=1200)
    job.after_s = 900
    job.settle()
    job.change(desiredState="Undone")
    job.finish()
    assert job.cluster.replicas("t") == BEFORE


def test_what_somebody_else_has_moved_since_is_left_to_them() -> None:
    job = completed()
    job.cluster.put("t", partition(1, (1, 4)))
    job.change(desiredState="Undone")
    job.finish()
    assert job.cluster.replicas("t") == [BEFORE[0], (1, 4), *BEFORE[2:]]
    assert job.is_in(Phase.UNDONE)
    assert "3 partitions have the replicas that they had before; 1 are left" in job.message
    assert "t-1: its replicas are [1, 4]" in job.message


def test_an_incomplete_one_is_undone_at_any_time() -> None:
    job = Job(Cluster({"t": BEFORE}), onDrift="Skip")
    job.settle()
    job.cluster.put("t", partition(1, (1, 4)))
    job.finish()
    assert job.is_in(Phase.INCOMPLETE)
    job.after_s = 10 * DEFAULT_UNDO_WINDOW_S
    job.change(desiredState="Undone")
    job.finish()
    assert job.cluster.replicas("t") == [BEFORE[0], (1, 4), *BEFORE[2:]]


def test_who_began_first_goes_first_also_on_the_way_back() -> None:
    job = completed()
    other = Job(job.cluster, name="other", assignments=assign((4, 2), topic="t"))
    other.after_s = 60
    other.settle()
    assert TopicPartition("t", 0) in job.cluster.moving()
    claim = other.claim
    assert claim is not None
    job.others = [claim]
    job.after_s = 120
    job.change(desiredState="Undone")
    job.settle()
    assert job.truth()["Reconciling"] == "True/ReassignmentInProgress"
    assert "t-0: something else is moving it to [4, 2]" in job.message
    own = job.claim
    assert own is not None
    assert own.started_at == "2026-05-01T12:02:00Z"
    assert own.goes_before(other.resource) is False
    while job.cluster.moving():
        job.cluster.arrive(next(iter(job.cluster.moving())))
        job.settle()
    assert job.cluster.replicas("t")[1:] == BEFORE[1:]


def test_an_undoing_pauses_and_goes_on() -> None:
    job = completed(concurrency={"total": 2})
    job.change(desiredState="Undone")
    job.settle()
    job.change(desiredState="Paused")
    job.settle()
    assert job.is_in(Phase.PAUSING)
    for tp in tuple(job.cluster.moving()):
        job.cluster.arrive(tp)
    job.settle()
    assert job.is_in(Phase.PAUSED)
    assert job.truth()["Ready"] == "True/Paused"
    assert job.cluster.replicas("t") == [*BEFORE[:2], *TARGETS[2:]]
    job.change(desiredState="Undone")
    job.finish()
    assert job.cluster.replicas("t") == BEFORE


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


def test_one_replica_at_a_time_is_undone_from_between_two_stages() -> None:
    cluster = Cluster({"t": [(1,)]})
    job = Job(
        cluster,
        assignments=assign((2, 3, 4), topic="t"),
        concurrency={"perPartitionOneByOne": True},
    )
    job.settle()
    cluster.arrive(TopicPartition("t", 0))
    job.settle()
    assert cluster.moving()
    job.change(desiredState="Undone")
    job.finish()
    assert cluster.replicas("t") == [(1,)]
    assert job.is_in(Phase.UNDONE)


def test_undone_before_it_began_nothing_is_moved() -> None:
    job = Job(Cluster({"t": BEFORE}), desiredState="Undone")
    job.finish()
    assert job.is_in(Phase.UNDONE)
    assert job.cluster.asked == []
    assert job.message == "spec.desiredState is Undone: nothing was moved"
    job.change(desiredState="Running")
    job.finish()
    assert job.cluster.replicas("t") == TARGETS


def test_with_nothing_to_move_nothing_is_undone() -> None:
    job = Job(Cluster({"t": TARGETS}))
    job.finish()
    job.change(desiredState="Undone")
    job.finish()
    assert job.is_in(Phase.UNDONE)
    assert job.cluster.asked == []


def test_without_a_controller_a_completed_one_waits_to_be_undone() -> None:
    job = completed()
    before = job.status
    job.change(desiredState="Undone")
    job.seen = ClusterView()
    assert job.plan().status is None
    job.seen = msgspec.structs.replace(job.cluster.view, is_complete=False)
    job.settle()
    assert job.truth()["Reconciling"] == "True/ClusterLoading"
    job.change(desiredState="Running")
    job.settle()
    assert job.truth() == {c.type: f"{c.status.value}/{c.reason}" for c in before.conditions}
    job.seen = None
    job.change(desiredState="Undone")
    job.finish()
    assert job.cluster.replicas("t") == BEFORE


def test_in_another_cluster_nothing_is_undone() -> None:
    job = completed()
    job.change(desiredState="Undone")
    job.seen = msgspec.structs.replace(job.cluster.view, cluster_id="another")
    asked = len(job.cluster.asked)
    job.settle()
    assert job.truth()["Stalled"] == "True/OtherCluster"
    assert len(job.cluster.asked) == asked


def test_a_plan_that_cannot_be_read_is_not_undone() -> None:
    job = completed()
    assert job.status.plan is not None
    broken = job.status.plan.model_copy(update={"document": "broken"})
    job.status = job.status.model_copy(update={"plan": broken})
    job.change(desiredState="Undone")
    job.settle()
    assert job.truth()["Stalled"] == "True/PlanUnreadable"


def test_the_plan_that_is_undone_is_the_one_that_was_executed() -> None:
    job = completed()
    assert job.status.plan is not None
    found = read_plan(job.status.plan.document, expected_hash=job.status.plan.hash)
    assert [(m.replicas, m.target) for m in found.moves] == list(zip(BEFORE, TARGETS, strict=True))


# Time to live


def test_a_finished_one_is_deleted_when_its_time_is_over() -> None:
    job = completed(ttlSecondsAfterFinished=100)
    assert (job.is_deleted(), job.requeues_after_s()) == (False, 100)
    job.after_s = 99
    job.settle()
    assert (job.is_deleted(), job.requeues_after_s()) == (False, 1)
    job.after_s = 100
    job.settle()
    assert job.is_deleted()


@pytest.mark.parametrize("state", ["Running", "Undone"])
def test_its_time_begins_with_the_end(state: str) -> None:
    job = completed() if state == "Undone" else Job(Cluster({"t": BEFORE}))
    job.change(desiredState=state, ttlSecondsAfterFinished=100)
    job.settle()
    for tp in tuple(job.cluster.moving()):
        job.cluster.arrive(tp)
    plan = job.plan()
    assert plan.status is not None
    assert plan.requeue_after_s == 0.0, "nobody else looks"
    job.settle()
    assert job.requeues_after_s() == 100
    nothing = Job(Cluster({"t": TARGETS}))
    assert nothing.plan().requeue_after_s == 0.0


def test_one_that_was_undone_counts_from_then() -> None:
    job = completed(ttlSecondsAfterFinished=100)
    job.after_s = 50
    job.change(desiredState="Undone")
    job.finish()
    job.after_s = 149
    job.settle()
    assert not job.is_deleted()
    job.after_s = 150
    job.settle()
    assert job.is_deleted()


@pytest.mark.parametrize("state", ["Paused", "Cancelled", "Running"])
def test_what_is_not_finished_stays(state: str) -> None:
    job = Job(Cluster({"t": BEFORE}), ttlSecondsAfterFinished=0)
    job.settle()
    job.change(desiredState=state)
    job.settle()
    job.after_s = 1e6
    job.settle()
    assert not job.is_deleted()


def test_what_is_throttled_still_is_not_deleted() -> None:
    job = completed(ttlSecondsAfterFinished=0, throttle={"bytesPerSecond": 4096})
    assert job.is_deleted()
    kept = msgspec.structs.replace(job.cluster.topics["t"][0], throttle=4096)
    job.cluster.put("t", kept)
    job.settle()
    assert not job.is_deleted()
    job.seen = msgspec.structs.replace(job.cluster.view, is_complete=False)
    job.settle()
    assert not job.is_deleted(), "nobody can see whether something is throttled"
    job.seen = ClusterView()
    job.settle()
    assert not job.is_deleted()
    job.seen = None
    job.cluster.put("t", msgspec.structs.replace(kept, throttle=None))
    job.settle()
    assert job.is_deleted()


def test_a_time_that_cannot_be_read_deletes_nothing_and_allows_nothing() -> None:
    job = completed(ttlSecondsAfterFinished=0)
    job.status = job.status.model_copy(update={"finished_at": "yesterday"})
    for desired in ("Running", "Undone"):
        job.change(desiredState=desired)
        parsed = parse_partition_reassignment(job.body)
        assert isinstance(parsed, UnreadableReassignment)
        assert parsed.field == "status.finishedAt"
        assert plan_unreadable(UnreadableRequest(parsed, NOW)) == Plan()
