"""Topics that brokers create by settings of their own: Regent configures such a topic later."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from regent.admin.commands import AlterTopicConfig, CreateTopic
from regent.controller.view import ClusterView, TopicView
from regent.model.topic import topic_id_to_text
from regent.model.topic_config import BrokerFacts
from regent.reconcile.topics.planning import plan_topic
from regent.resources.kafka_topic import KafkaTopic
from tests.unit.reconcile.requests import (
    owned,
    request,
    resource,
    said,
    state,
    status_of,
    topic,
    view,
)

OFFSETS = "__consumer_offsets"
SETTINGS = {
    OFFSETS: "offsets.topic.*",
    "__transaction_state": "transaction.state.log.*",
    "__remote_log_metadata": "rlmm.config.remote.log.metadata.topic.*",
}
"""The settings of brokers that each topic is created by."""

UNDECLARED: dict[str, Any] = {"partitions": None, "replicas": None}


def cluster(*topics: TopicView) -> ClusterView:
    """Three brokers that give a new topic 1 partition and 1 replica."""
    defaults = {"num.partitions": "1", "default.replication.factor": "1"}
    facts = BrokerFacts(broker_id=1, versions=((3, 9),), settings=defaults, has_answered=True)
    return msgspec.structs.replace(view(*topics), broker_facts=(facts,))


def declared(name: str = OFFSETS, **spec: Any) -> KafkaTopic:
    return resource(name="internal", topicName=name, **spec)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(
    "spec",
    [
        {**UNDECLARED, "config": {"segment.bytes": 1_000_000}},
        {"partitions": 50, "replicas": 3, "config": {"cleanup.policy": "compact"}},
        {"replicaAssignment": [[1, 2], [2, 3]]},
    ],
    ids=["only-config", "partitions-and-replicas", "assignment"],
)
def test_missing_topic_is_left_to_brokers(name: str, spec: dict[str, Any]) -> None:
    plan = plan_topic(request(declared(name, **spec), cluster()))
    assert plan.commands == ()
    assert state(plan) == {
        "Ready": "False/LeftToBrokers",
        "Reconciling": "True/LeftToBrokers",
        "Stalled": "False/NotStalled",
        "Synced": "False/TopicNotFound",
        "Healthy": "Unknown/Unknown",
    }
    assert f"topic {name} does not exist yet" in said(plan).message
    assert f"by their settings {SETTINGS[name]}" in said(plan).message
    assert status_of(plan).ownership is None


def test_topic_gets_its_configuration_when_brokers_have_created_it() -> None:
    waiting = plan_topic(
        request(declared(**UNDECLARED, config={"segment.bytes": 1_000_000}), cluster())
    )
    subject = declared(
        **UNDECLARED, config={"segment.bytes": 1_000_000}, status=status_of(waiting).to_api()
    )
    seen = cluster(topic(name=OFFSETS, topic_id=uuid.UUID(int=9)))
    plan = plan_topic(request(subject, seen, config={"cleanup.policy": "compact"}))
    assert plan.commands == (AlterTopicConfig(OFFSETS, {"segment.bytes": "1000000"}),)
    assert status_of(plan).topic_id == topic_id_to_text(uuid.UUID(int=9))
    assert status_of(plan).ownership == "Adopted"


def test_topic_of_a_tool_is_created_when_its_name_begins_with_underscores() -> None:
    plan = plan_topic(request(declared("__amazon_msk_canary", **UNDECLARED), cluster()))
    (command,) = plan.commands
    assert isinstance(command, CreateTopic)


@pytest.mark.parametrize("name", SETTINGS)
def test_existing_topic_does_not_grow(name: str) -> None:
    subject = owned(topicName=name, partitions=3)
    plan = plan_topic(request(subject, view(topic(name=name)), config={}))
    assert plan.commands == ()
    assert state(plan)["Stalled"] == "True/InvalidPartitions"
    assert "set partitions to 2" in said(plan).message


def test_defaults_of_other_topics_do_not_count() -> None:
    subject = declared("__transaction_state", **UNDECLARED, config={"min.insync.replicas": 2})
    plan = plan_topic(request(subject, cluster()))
    assert state(plan)["Stalled"] == "False/NotStalled"
    assert state(plan)["Reconciling"] == "True/LeftToBrokers"


def test_deleted_topic_is_left_to_brokers_when_recreation_is_wanted() -> None:
    subject = owned(topicName=OFFSETS, **UNDECLARED, onForeignDeletion="Recreate")
    plan = plan_topic(request(subject, cluster()))
    assert plan.commands == ()
    assert state(plan)["Reconciling"] == "True/LeftToBrokers"
    assert status_of(plan).last_foreign_deletion is not None
