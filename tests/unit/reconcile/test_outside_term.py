"""KafkaTopics while no Regent process is the controller."""

from __future__ import annotations

import dataclasses

import pytest

from regent.reconcile.plan import Plan
from regent.reconcile.request import INACTIVE_GRACE_S, Absence
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.request import TopicRequest
from tests.unit.reconcile.requests import (
    after,
    request,
    resource,
    said,
    state,
    status_of,
    topic,
    view,
)

STALE = Absence(for_s=120.0, unknown_after_s=120.0, reason="no ZooKeeper session")


def _answered(absence: Absence) -> TopicRequest:
    """A resource that was Ready when the controller was lost."""
    ready = plan_topic(request(resource(), view(topic()), config={}))
    return request(resource(status=after(ready)), view(active=False), absence=absence)


def test_a_status_stays_as_long_as_a_controller_may_come() -> None:
    fresh = Absence(for_s=20.0, unknown_after_s=120.0)
    assert plan_topic(_answered(fresh)) == Plan(requeue_after_s=100.0)


def test_then_its_conditions_turn_unknown_with_the_reason() -> None:
    plan = plan_topic(_answered(STALE))
    assert state(plan) == {
        "Ready": "Unknown/ControllerInactive",
        "Reconciling": "True/ControllerInactive",
        "Stalled": "False/NotStalled",
        "Synced": "Unknown/Unknown",
        "Healthy": "Unknown/Unknown",
    }
    assert "(no ZooKeeper session)" in said(plan).message
    assert plan.commands == ()
    assert plan.requeue_after_s is None


def test_what_was_last_seen_stays_beside_it() -> None:
    plan, before = plan_topic(_answered(STALE)), _answered(STALE).resource.status
    assert status_of(plan).topic_id == before.topic_id
    assert status_of(plan).partitions == before.partitions
    assert status_of(plan).ownership == before.ownership
    assert status_of(plan).controller_epoch == before.controller_epoch


def test_a_new_resource_is_answered_after_a_shorter_time() -> None:
    waiting = request(resource(), view(active=False), waited_s=INACTIVE_GRACE_S - 1, absence=STALE)
    assert plan_topic(waiting) == Plan(requeue_after_s=1.0)
    later = waiting.monotonic_s + waiting.unanswered_s
    plan = plan_topic(dataclasses.replace(waiting, monotonic_s=later))
    assert state(plan)["Ready"] == "Unknown/ControllerInactive"


@pytest.mark.parametrize("unknown_after_s", [5.0, 29.0])
def test_the_shorter_time_is_never_longer_than_the_setting(unknown_after_s: float) -> None:
    absence = Absence(for_s=0.0, unknown_after_s=unknown_after_s)
    plan = plan_topic(request(seen=view(active=False), absence=absence))
    assert plan == Plan(requeue_after_s=unknown_after_s)
