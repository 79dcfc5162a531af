from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.topic_config import impossible_values
from regent.resources.conditions import ConditionStatus
from regent.resources.kafka_topic import (
    ForeignDeletionPolicy,
    KafkaTopic,
    UnreadableTopic,
    config_value_to_text,
    parse_kafka_topic,
    topic_name_of,
)
from regent.resources.kafka_topic_status import KafkaTopicStatus, Ownership


def _body(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "orders", "namespace": "shop", "uid": "1", "generation": 3},
        "spec": {"partitions": 3, "replicas": 2, **spec},
    }


def _topic(**spec: Any) -> KafkaTopic:
    parsed = parse_kafka_topic(_body(**spec))
    assert isinstance(parsed, KafkaTopic)
    return parsed


def test_defaults() -> None:
    topic = _topic()
    assert topic.topic_name == "orders"
    assert topic.spec.deletion_policy is None
    assert topic.spec.on_foreign_deletion is ForeignDeletionPolicy.ALERT
    assert topic.spec.replication_factor == 2
    assert topic.status == KafkaTopicStatus()
    assert not topic.metadata.is_being_deleted
    assert not topic.holds_finalizer


def test_another_name_in_kafka() -> None:
    assert _topic(topicName="Orders_v2").topic_name == "Orders_v2"
    assert topic_name_of(_body(topicName="Orders_v2")) == "Orders_v2"
    assert topic_name_of(_body()) == "orders"
    assert topic_name_of({"metadata": {"name": "orders"}, "spec": None}) == "orders"


def test_the_replication_factor_of_an_assignment() -> None:
    topic = _topic(replicas=None, partitions=1, replicaAssignment=[[3, 1, 2]])
    assert topic.spec.replication_factor == 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1000", "1000"),
        (1000, "1000"),
        (True, "true"),
        (False, "false"),
        (0.5, "0.5"),
        (1e3, "1000"),
        ("compact,delete", "compact,delete"),
    ],
)
def test_configuration_values_as_kafka_stores_them(value: Any, text: str) -> None:
    assert config_value_to_text(value) == text
    assert _topic(config={"key": value}).spec.desired_config == {"key": text}


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_whole_numbers_survive(number: int) -> None:
    assert not impossible_values({"retention.bytes": config_value_to_text(number)})


def test_a_configuration_that_is_null_is_an_empty_one() -> None:
    assert _topic(config=None).spec == _topic().spec


def test_null_and_hands_off_are_the_same() -> None:
    spec = _topic(config={"a": None, "b": 1, "c": 2}, handsOffConfig=["c", "d"]).spec
    assert spec.desired_config == {"b": "1"}
    assert spec.hands_off == {"a", "c", "d"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"partitions": "many"}, "spec.partitions"),
        ({"config": {"a.b": {"x": 1}}}, "spec.config[a.b]"),
        ({"deletionPolicy": "Destroy"}, "spec.deletionPolicy"),
        ({"replicaAssignment": [["x"]]}, "spec.replicaAssignment.0.0"),
    ],
)
def test_what_cannot_be_read_says_where(spec: dict[str, Any], field: str) -> None:
    parsed = parse_kafka_topic(_body(**spec))
    assert isinstance(parsed, UnreadableTopic)
    assert parsed.field == field
    assert parsed.problem
    assert parsed.metadata.name == "orders"


def test_unreadable_fields_of_a_status_count_as_absent_and_the_others_do_not() -> None:
    stored = {"partitions": "many", "ownership": "Lost", "clusterId": "cluster-a"}
    parsed = parse_kafka_topic(_body() | {"status": stored})
    assert parsed.status == KafkaTopicStatus(ownership=Ownership.LOST, cluster_id="cluster-a")


def test_fields_of_a_newer_regent_are_ignored() -> None:
    parsed = parse_kafka_topic(_body(color="green") | {"status": {"color": "green"}})
    assert isinstance(parsed, KafkaTopic)


def test_a_status_is_written_as_it_is_read() -> None:
    raw = {
        "observedGeneration": 2,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "observedGeneration": 2,
                "lastTransitionTime": "2026-01-01T12:00:00Z",
                "reason": "AsDeclared",
                "message": "fine",
            }
        ],
        "leaderless": 0,
        "partitionStates": [{"partition": 0, "leader": -1, "replicas": [1], "isr": []}],
        "drift": [{"field": "config[a]", "actual": "1"}],
        "ownership": "Created",
    }
    status = KafkaTopicStatus.model_validate(raw)
    assert status.conditions[0].status is ConditionStatus.TRUE
    assert status.ownership is Ownership.CREATED
    assert status.to_api() == raw
