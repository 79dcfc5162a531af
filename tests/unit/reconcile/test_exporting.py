"""KafkaTopics for existing topics: adopting them changes nothing."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regent.model.partition import ReplicaAssignment
from regent.model.topic import MAX_TOPIC_NAME_LENGTH, topic_name_problem
from regent.model.topic_config import BrokerFacts
from regent.reconcile.topics.exporting import export_topic, resource_name
from regent.reconcile.topics.planning import plan_topic
from regent.resources.kafka_topic import KafkaTopic, parse_kafka_topic
from tests.unit.reconcile.requests import READY, request, state, status_of, topic, view

DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""What Kubernetes allows as a name."""


def assigned(*replicas: tuple[int, ...]) -> dict[int, ReplicaAssignment]:
    return {i: ReplicaAssignment(r) for i, r in enumerate(replicas)}


def spec_of(name: str = "orders", *args: Any, **kwargs: Any) -> dict[str, Any]:
    spec: dict[str, Any] = export_topic(name, *args, **kwargs).manifest["spec"]
    return spec


def test_what_is_there_is_declared() -> None:
    exported = export_topic(
        "orders",
        assigned((1, 2), (2, 3)),
        {"retention.ms": "5", "cleanup.policy": "compact"},
        namespace="shop",
        cluster_name="east",
    )
    assert exported.manifest == {
        "apiVersion": "kafka.regent.dev/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {
            "clusterRef": {"name": "east"},
            "partitions": 2,
            "replicas": 2,
            "config": {"cleanup.policy": "compact", "retention.ms": "5"},
        },
    }
    assert exported.left_out == ()


def test_a_reassignment_under_way_counts_as_its_target() -> None:
    moving = {0: ReplicaAssignment((1, 2, 3), adding_replicas=(2, 3), removing_replicas=(1,))}
    assert spec_of("orders", moving, {}) == {"partitions": 1, "replicas": 2}


@pytest.mark.parametrize(
    ("config", "left_out"),
    [
        ({"nonsense": "1"}, "config[nonsense]: "),
        ({"min.insync.replicas": "3"}, "config[min.insync.replicas]: 3 is more than the 2"),
        (
            {"leader.replication.throttled.replicas": "0:1"},
            "config[leader.replication.throttled.replicas]: it belongs to whoever moves",
        ),
        (
            {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"},
            "config[min.compaction.lag.ms]: ",
        ),
        ({"segment.index.bytes": "1000"}, "config[segment.index.bytes]: "),
        ({"index.interval.bytes": "1"}, "config[index.interval.bytes]: "),
    ],
)
def test_what_would_be_refused_is_left_out_and_named(config: dict[str, str], left_out: str) -> None:
    exported = export_topic(
        "orders",
        assigned((1, 2)),
        {"retention.ms": "5", **config},
    )
    assert left_out.split("[")[1].split("]")[0] not in exported.manifest["spec"]["config"]
    assert exported.manifest["spec"]["config"]["retention.ms"] == "5"
    assert exported.left_out[0].startswith(left_out)


@pytest.mark.parametrize("name", ["Orders", "my_topic", "a..b", "-x", "x.", "_", "x" * 249])
def test_names_that_kubernetes_does_not_allow(name: str) -> None:
    exported = export_topic(name, assigned((1,)), {})
    made = exported.manifest["metadata"]["name"]
    assert DNS_SUBDOMAIN.fullmatch(made)
    assert exported.manifest["spec"].get("topicName", made) == name


def test_names_that_differ_in_what_is_replaced_stay_apart() -> None:
    names = ["my_topic", "my-topic", "My-topic", "my.topic", "my__topic"]
    assert len({resource_name(name) for name in names}) == len(names)


legal_names = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True).filter(
    lambda name: topic_name_problem(name) is None
)


@given(legal_names)
@example("X" * MAX_TOPIC_NAME_LENGTH)
def test_every_topic_has_a_name_in_kubernetes_and_a_file_name(name: str) -> None:
    made = resource_name(name)
    assert len(made) <= 253
    assert DNS_SUBDOMAIN.fullmatch(made)
    assert len(export_topic(name, assigned((1,)), {}).file_name) <= 255


def test_more_replicas_than_a_resource_may_declare_are_left_out() -> None:
    exported = export_topic("orders", assigned(tuple(range(101))), {})
    assert exported.manifest["spec"] == {"partitions": 1}
    assert exported.left_out == ("replicas: 101 are more than a KafkaTopic may declare",)


@given(
    st.lists(
        st.lists(st.integers(1, 3), min_size=1, max_size=3, unique=True), min_size=1, max_size=5
    ),
    st.dictionaries(
        st.sampled_from(
            [
                "retention.ms",
                "min.insync.replicas",
                "nonsense",
                "min.compaction.lag.ms",
                "max.compaction.lag.ms",
                "cleanup.policy",
                "follower.replication.throttled.replicas",
                "segment.index.bytes",
                "index.interval.bytes",
                "segment.bytes",
            ]
        ),
        st.sampled_from(["1", "2", "3", "1000", "1048576", "compact", "*", "soon"]),
    ),
)
def test_adopting_what_was_exported_changes_nothing(
    replicas: list[list[int]], config: dict[str, str]
) -> None:
    placed = [tuple(each) for each in replicas]
    exported = export_topic("orders", assigned(*placed), config)
    body = exported.manifest | {
        "metadata": {"name": "orders", "namespace": "shop", "uid": "u", "generation": 1}
    }
    resource = parse_kafka_topic(body)
    assert isinstance(resource, KafkaTopic)
    facts = BrokerFacts(broker_id=1, versions=((3, 9),), settings={}, has_answered=True)
    seen = msgspec.structs.replace(view(topic(*placed)), broker_facts=(facts,))
    plan = plan_topic(request(resource, seen, config=config))
    assert plan.commands == ()
    assert state(plan) == READY
    assert status_of(plan).drift == ()
