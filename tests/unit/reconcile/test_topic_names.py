"""Namespaces declare the topics that the rules allow, and no others."""

from __future__ import annotations

import dataclasses

import pytest

from regent.reconcile.plan import FinalizerAction
from regent.reconcile.topics.planning import plan_topic
from regent.resources.conditions import ConditionType, find_condition
from regent.resources.kafka_topic_status import KafkaTopicStatus
from tests.support.present import present
from tests.unit.reconcile.requests import claim, request, resource, status_of, topic, view

FORBIDDEN = ("*={namespace}.*", "shop=clicks", "platform=*")
OWNED = {"observedGeneration": 1, "ownership": "Created", "clusterId": "cluster-a"}


def reason_and_message(status: KafkaTopicStatus | None) -> tuple[str, str]:
    assert status is not None
    stalled = present(find_condition(status.conditions, ConditionType.STALLED))
    assert stalled.status == "True"
    return stalled.reason, stalled.message


@pytest.mark.parametrize("policy", ["Managed", "Paused", "Observe"])
def test_a_topic_that_no_rule_allows_is_refused_and_the_rules_are_named(policy: str) -> None:
    seen = view(topic())
    plan = plan_topic(request(resource(managementPolicy=policy), seen, config={}, rules=FORBIDDEN))
    assert plan.commands == ()
    assert plan.finalizer is FinalizerAction.LEAVE
    reason, message = reason_and_message(plan.status)
    assert reason == "TopicNameNotAllowed"
    assert message.startswith(
        "metadata.name: namespace shop may not declare topic orders: its rules (topic_name_rules) "
        "are *={namespace}.*; shop=clicks; declare a topic"
    )
    assert status_of(plan).partitions is None, "nothing is shown of somebody else's topic"


def test_a_namespace_without_any_rule_is_said_to_have_none() -> None:
    plan = plan_topic(request(resource(topicName="clicks"), rules=("team-a=*",)))
    _, message = reason_and_message(plan.status)
    assert message.startswith(
        "spec.topicName: namespace shop may not declare topic clicks: no rule"
    )


def test_what_is_not_allowed_keeps_nobody_from_the_topic() -> None:
    """Even if it owned the topic before there were rules."""
    mine = resource(uid="mine", name="orders")
    older = claim(
        resource(uid="older", status=OWNED, finalizer=True), created="2020-01-01T00:00:00Z"
    )
    intruder = dataclasses.replace(older, namespace="elsewhere")
    assert request(mine, others=[intruder]).is_loser
    allowed = request(mine, others=[intruder], rules=("shop=orders",))
    assert not allowed.is_loser


def test_deleting_it_leaves_the_topic_alone() -> None:
    owned = resource(status=OWNED, finalizer=True, deleted=True, deletionPolicy="Delete")
    plan = plan_topic(request(owned, view(topic()), config={}, rules=FORBIDDEN))
    assert plan.commands == ()
    assert plan.finalizer is FinalizerAction.REMOVE
    (event,) = plan.events
    assert (event.reason, event.message) == (
        "TopicRetained",
        "topic orders stays: the rules do not let this namespace declare it",
    )
