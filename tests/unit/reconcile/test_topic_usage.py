"""A topic that is in use is not deleted with a resource that protects it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from regent.controller.commands import DeleteTopic
from regent.controller.view import TopicView
from regent.reconcile.plan import FinalizerAction
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.request import TopicRequest
from regent.reconcile.topics.usage import (
    ASKED_AGAIN_S,
    TopicUsage,
    UsageQuestion,
    blind_spots,
    coordinators,
    leaders_of,
)
from tests.support.present import present
from tests.unit.reconcile.requests import (
    ID,
    MONOTONIC_S,
    OWNED,
    claim,
    partition,
    request,
    resource,
    said,
    state,
    topic,
    view,
)

PROTECTED: dict[str, Any] = {"deletionPolicy": "Protect", "deleteWhenIdleSeconds": 3600}


def deleted(others: Any = (), **spec: Any) -> TopicRequest:
    """A request for a resource that is deleted and protects its topic unless that is idle."""
    subject = resource(
        deleted=True, finalizer=True, generation=2, status=OWNED, **{**PROTECTED, **spec}
    )
    return request(subject, view(topic()), config={}, others=others)


def planned(usage: TopicUsage | None, **spec: Any) -> TopicPlan:
    return plan_topic(dataclasses.replace(deleted(**spec), usage=usage))


def found(age_s: float = 0.0, **answers: Any) -> TopicUsage:
    question = present(deleted().usage_question)
    return TopicUsage(question, MONOTONIC_S - age_s, **answers)


def test_only_a_deleted_resource_that_protects_its_topic_asks() -> None:
    size = len(topic().partitions)
    assert deleted().usage_question == UsageQuestion("orders", topic().czxid, size, 3600)
    assert deleted(deleteWhenIdleSeconds=None).usage_question is None
    assert deleted(deletionPolicy="Delete").usage_question is None
    kept = resource(finalizer=True, status=OWNED, **PROTECTED)
    assert request(kept, view(topic()), config={}).usage_question is None


def test_nothing_is_deleted_before_the_brokers_have_answered() -> None:
    plan = planned(None)
    assert (plan.commands, plan.finalizer) == ((), FinalizerAction.LEAVE)
    assert state(plan)["Reconciling"] == "True/Deleting"
    assert "brokers are asked whether the topic is in use" in said(plan).message
    assert plan.requeue_after_s == ASKED_AGAIN_S


def test_what_is_not_in_use_is_deleted() -> None:
    assert planned(found()).commands == (DeleteTopic("orders", ID),)


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        (
            {"recent": (0, 2)},
            "records of the last 3600 seconds are in partitions 0; 2",
        ),
        (
            {"groups": (("billing", "committed offsets"), ("mail", "subscribed"))},
            "consumer groups use it: billing (committed offsets); mail (subscribed)",
        ),
        (
            {"unknown": ("broker 2: timed out",)},
            "it is not known whether it is used: broker 2: timed out",
        ),
    ],
)
@pytest.mark.parametrize("age_s", [0.0, 10 * ASKED_AGAIN_S])
def test_what_is_in_use_or_may_be_is_kept_and_what_keeps_it_is_named(
    answers: dict[str, Any], text: str, age_s: float
) -> None:
    plan = planned(found(age_s, **answers))
    assert (plan.commands, plan.finalizer) == ((), FinalizerAction.LEAVE)
    assert state(plan)["Stalled"] == "True/DeletionProtected"
    assert text in said(plan).message
    assert "to let the resource go and keep the topic, set deletionPolicy" in said(plan).message
    assert plan.requeue_after_s == ASKED_AGAIN_S, "nothing says when that ends"


def test_a_paused_resource_deletes_nothing() -> None:
    plan = planned(found(), managementPolicy="Paused")
    assert plan.commands == ()
    assert "managementPolicy is Paused" in said(plan).message


def test_what_another_resource_declares_is_not_deleted() -> None:
    plan = planned(found(), others=[claim(resource(name="successor", uid="u9"))])
    assert plan.commands == ()
    assert "KafkaTopic shop/successor declares it, too" in said(plan).message


def test_what_no_broker_can_be_asked_about_is_not_known() -> None:
    lost = TopicView("orders", None, (partition(0, (1, 2)), partition(1, (1, 2), leader=-1)))
    offsets = TopicView("__consumer_offsets", None, (partition(0, (1,), leader=-1),))
    assert leaders_of(lost) == {1: [0], -1: [1]}
    assert blind_spots(lost, view(lost, offsets)) == (
        "partitions without a leader: 1",
        "consumer groups have no coordinator: __consumer_offsets has partitions without a leader: "
        "0",
    )
    whole = TopicView("orders", None, (partition(0, (1, 2)),))
    assert blind_spots(whole, view(whole, unreadable={"__consumer_offsets": "not JSON"})) == (
        "consumer groups have no coordinator that is known: the node of topic __consumer_offsets "
        "cannot be read: not JSON",
    )
    assert blind_spots(whole, view(whole)) == ()
    assert coordinators(view(whole)) == ()
    assert coordinators(view(whole, offsets)) == ((-1, offsets.partitions[0].leader_epoch),)
