"""A deletion policy that nobody has asked for: an earlier definition has filled it in."""

from __future__ import annotations

from typing import Any

import pytest

from regent.reconcile.plan import FinalizerAction
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.planning import plan_topic
from regent.resources.kafka_topic import KafkaTopic
from tests.unit.reconcile.requests import OWNED, after, request, resource, said, topic, view

ADOPTED = {**OWNED, "ownership": "Adopted"}
TEXT = "nobody has asked for Delete"


def subject(status: dict[str, Any], **changes: Any) -> KafkaTopic:
    made = resource(status=status, deletionPolicy="Delete", **changes)
    return made.model_copy(update={"filled_in": ("deletionPolicy",)})


def look(of: KafkaTopic, name: str = "orders") -> TopicPlan:
    return plan_topic(request(of, view(topic(name=name)), config={}))


def reasons(plan: TopicPlan) -> list[str]:
    return [event.reason for event in plan.events]


def test_an_adopted_topic_is_retained_and_that_is_said_once() -> None:
    plan = look(subject(ADOPTED, finalizer=True))
    assert plan.status is not None
    assert plan.status.deletion_policy == "Retain"
    assert TEXT in said(plan).message
    assert plan.finalizer is FinalizerAction.REMOVE
    [event] = plan.events
    assert (event.reason, event.is_warning) == ("DeletionPolicyIgnored", True)
    assert not look(subject(after(plan))).events


def test_what_is_adopted_now_says_both() -> None:
    assert reasons(look(subject({}))) == ["TopicAdopted", "DeletionPolicyIgnored"]


@pytest.mark.parametrize("finalizer", [True, False])
def test_the_topic_stays_when_the_resource_is_deleted(finalizer: bool) -> None:
    plan = look(subject(ADOPTED, finalizer=finalizer, deleted=True))
    assert not plan.commands
    if finalizer:
        [event] = plan.events
        assert event.reason == "TopicRetained"
        assert TEXT in event.message


def test_what_the_resource_has_created_goes_with_it() -> None:
    plan = look(subject(OWNED, finalizer=True))
    assert plan.status is not None
    assert plan.status.deletion_policy == "Delete"
    assert TEXT not in said(plan).message
    assert not plan.events
    assert look(subject(OWNED, finalizer=True, deleted=True)).commands


def test_a_wish_counts() -> None:
    asked = resource(status=ADOPTED, deletionPolicy="Delete", finalizer=True)
    plan = look(asked)
    assert plan.status is not None
    assert plan.status.deletion_policy == "Delete"
    assert not plan.events


def test_an_internal_topic_is_retained_for_another_reason() -> None:
    of = subject(ADOPTED, name="internal", topicName="__consumer_offsets")
    plan = look(of, "__consumer_offsets")
    assert TEXT not in said(plan).message
    assert not plan.events
