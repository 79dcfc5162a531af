"""CreateTopics, as Kafka's controller answers it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from regent.protocol.served_apis import CREATE_TOPICS
from tests.support.endpoint import LocalEndpoint, new_topic
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster

pytestmark = pytest.mark.usefixtures("controller")

VERSIONS = sorted(CREATE_TOPICS.requests)
NEWEST = VERSIONS[-1]
MINUTE = datetime.timedelta(minutes=1)


def create(
    endpoint: LocalEndpoint,
    *topics: Mapping[str, Any],
    version: int = NEWEST,
    timeout: datetime.timedelta = MINUTE,
    validate_only: bool = False,
) -> dict[str, Any]:
    """The results by topic."""
    answer = endpoint.ask(
        CREATE_TOPICS,
        version,
        {"topics": topics, "timeout": timeout, "validate_only": validate_only},
    )
    assert [each["name"] for each in answer["topics"]] == [each["name"] for each in topics]
    return {each["name"]: each for each in answer["topics"]}


def error(endpoint: LocalEndpoint, wanted: Mapping[str, Any], **options: Any) -> tuple[int, Any]:
    result = create(endpoint, wanted, **options)[wanted["name"]]
    return result["error_code"], result["error_message"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_created_when_it_is_answered(
    version: int, cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    wanted = new_topic("t", num_partitions=4, replication_factor=2)
    result = create(endpoint, wanted, version=version)["t"]
    assert result["error_code"] == 0
    assert [len(replicas) for replicas in cluster.replicas("t")] == [2, 2, 2, 2]
    view = controller.view.topics["t"]
    assert view.leaderless == 0
    if version >= 5:
        assert (result["num_partitions"], result["replication_factor"]) == (4, 2)
    if version >= 7:
        assert result["topic_id"] == view.topic_id is not None


def test_nothing_is_written_to_validate(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
    wanted = [new_topic("t", num_partitions=3), new_topic("a/b")]
    results = create(endpoint, *wanted, validate_only=True)
    assert (results["t"]["error_code"], results["t"]["num_partitions"]) == (0, 3)
    assert results["a/b"]["error_code"] == 17
    assert cluster.topics == ()


def test_a_thousand_topics_are_one_set(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
    results = create(endpoint, *(new_topic(f"t{i}", replication_factor=2) for i in range(1_000)))
    assert {each["error_code"] for each in results.values()} == {0}
    assert len(cluster.topics) == 1_000


def test_a_topic_that_exists(endpoint: LocalEndpoint) -> None:
    create(endpoint, new_topic("t"))
    assert error(endpoint, new_topic("t")) == (36, "Topic 't' already exists.")
    # Without waiting for the view: what the controller says is worded in the same way.
    create(endpoint, new_topic("u"), timeout=datetime.timedelta(0))
    assert error(endpoint, new_topic("u")) == (36, "Topic 'u' already exists.")


def configured(name: str, value: str | None) -> dict[str, Any]:
    return new_topic("t", configs=[{"name": name, "value": value}])


def assigned(*replicas: tuple[int, ...], first: int = 0, **fields: Any) -> dict[str, Any]:
    assignments = [
        {"partition_index": index, "broker_ids": broker_ids}
        for index, broker_ids in enumerate(replicas, first)
    ]
    return new_topic("t", assignments=assignments, **fields)


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        (new_topic("t", num_partitions=0), 37, "partitions must be larger than 0"),
        (new_topic("t", replication_factor=0), 38, "factor must be larger than 0"),
        (new_topic("t", replication_factor=4), 38, "4 larger than available brokers: 3"),
        (new_topic(""), 17, "the empty string"),
        (new_topic(".."), 17, "'..' is not allowed"),
        (new_topic("x" * 250), 17, "max allowed length 249"),
        (new_topic("a b"), 17, "'a b' contains"),
        (configured("no.such.key", "1"), 40, "Unknown topic config name: no.such.key"),
        (configured("retention.ms", "soon"), 40, "Not a number of type LONG"),
        (configured("retention.ms", "-2"), 40, "must be at least -1"),
        (configured("cleanup.policy", "compact,x"), 40, "one of: compact, delete"),
        (configured("preallocate", "yes"), 40, "either true or false"),
        (configured("retention.ms", None), 42, "Null value not supported"),
        (assigned((1,), num_partitions=1), 42, "Both numPartitions or replicationFactor"),
        (assigned((1,), (1, 2)), 39, "same number of replicas"),
        (assigned((1, 1)), 39, "Duplicate replica assignment"),
        (assigned((1,), first=1), 39, "consecutive 0-based"),
    ],
)
def test_what_kafka_refuses(
    wanted: dict[str, Any],
    code: int,
    message: str,
    cluster: SimulatedCluster,
    endpoint: LocalEndpoint,
) -> None:
    found, text = error(endpoint, wanted)
    assert found == code
    assert message in text
    assert cluster.topics == ()


def test_names_that_collide(endpoint: LocalEndpoint) -> None:
    create(endpoint, new_topic("a.b"))
    assert error(endpoint, new_topic("a_b")) == (
        17,
        "Topic 'a_b' collides with existing topics: a.b",
    )
    results = create(endpoint, new_topic("x.y"), new_topic("x_y"))
    assert sorted(each["error_code"] for each in results.values()) == [0, 17]


def test_the_name_of_krafts_log(endpoint: LocalEndpoint) -> None:
    assert error(endpoint, new_topic("__cluster_metadata")) == (
        42,
        "Creation of internal topic __cluster_metadata is prohibited.",
    )


def test_duplicate_topic_is_not_created(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
    answer = endpoint.ask(
        CREATE_TOPICS,
        NEWEST,
        {"topics": [new_topic("t"), new_topic("u"), new_topic("t")], "timeout": MINUTE},
    )
    assert [(each["name"], each["error_code"]) for each in answer["topics"]] == [
        ("t", 42),
        ("u", 0),
        ("t", 42),
    ]
    assert cluster.topics == ("u",)


def test_assignment_is_taken_as_given(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
    wanted = assigned((2, 3), (3, 1))
    wanted["assignments"].reverse()
    result = create(endpoint, wanted)["t"]
    assert (result["num_partitions"], result["replication_factor"]) == (2, 2)
    assert cluster.replicas("t") == [(2, 3), (3, 1)]


def test_topic_of_dead_broker_times_out(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
    wanted = assigned((9,))
    assert error(endpoint, wanted, timeout=datetime.timedelta(milliseconds=50)) == (7, None)
    assert cluster.replicas("t") == [(9,)]


def test_request_without_time_times_out(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
    assert error(endpoint, new_topic("t"), timeout=datetime.timedelta(0)) == (7, None)
    assert cluster.topics == ("t",)


def test_standby_is_not_controller(controller: LiveController, endpoint: LocalEndpoint) -> None:
    controller.lose_term()
    assert error(endpoint, new_topic("t")) == (41, None)


def test_who_waits_is_answered_when_the_controller_resigns(
    cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    wanted = assigned((9,))
    answer = endpoint.submit(CREATE_TOPICS, NEWEST, {"topics": [wanted], "timeout": MINUTE})
    while "t" not in cluster.topics:
        pass
    controller.lose_term()
    assert answer.result(timeout=60)["topics"][0]["error_code"] in (7, 41)


def test_excess_partitions_are_refused(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
    wanted = [new_topic(f"t{i}", num_partitions=10_000) for i in range(6)]
    results = create(endpoint, *wanted)
    assert {each["error_code"] for each in results.values()} == {44}
    assert error(endpoint, new_topic("t", num_partitions=2**31 - 1))[0] == 44
    assert cluster.topics == ()
