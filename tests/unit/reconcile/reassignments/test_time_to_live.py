"""When a reassignment that has finished is deleted."""

from __future__ import annotations

import msgspec
import pytest

from regent.controller.view import ClusterView
from regent.reconcile.reassignments.unreadable import UnreadableRequest, plan_unreadable
from regent.resources.partition_reassignment import (
    UnreadableReassignment,
    parse_partition_reassignment,
)
from tests.unit.reconcile.drains.draining import Cluster
from tests.unit.reconcile.reassignments.jobs import BEFORE, TARGETS, Job, completed
from tests.unit.reconcile.requests import NOW


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
        plan = plan_unreadable(UnreadableRequest(parsed, NOW))
        assert (plan.keeps_unread, plan.commands, plan.is_to_be_deleted) == (True, (), False)
