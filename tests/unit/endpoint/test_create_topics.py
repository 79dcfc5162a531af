"""CreateTopics, as Kafka's controller answers it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from regent.protocol.served_apis import CREATE_TOPICS
from tests.support.endpoint import LocalEndpoint
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster

VERSIONS = sorted(CREATE_TOPICS.requests)
NEWEST = VERSIONS[-1]
MINUTE = datetime.timedelta(minutes=1)


def topic(name: str, **fields: Any) -> dict[str, Any]:
    """One partition on one broker, unless it is said otherwise."""
    if fields.get("assignments"):
        numbers = {"num_partitions": -1, "replication_factor": -1}
    else:
        numbers = {"num_partitions": 1, "replication_factor": 1}
    return {"name": name, **numbers, "assignments": (), "configs": (), **fields}


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
    wanted = topic("t", num_partitions=4, replication_factor=2)
    result = create(endpoint, wanted, version=version)["t"]
    assert result["error_code"] == 0
    assert [len(replicas) for replicas in cluster.replicas("t")] == [2, 2, 2, 2]
    view = controller.view.topics["t"]
    assert view.leaderless == 0
    if version >= 5:
        assert (result["num_partitions"], result["replication_factor"]) == (4, 2)
    if version >= 7:
        assert result["topic_id"] == view.topic_id is not None


def test_nothing_is_written_to_validate(
    cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    wanted = [topic("t", num_partitions=3), topic("a/b")]
    results = create(endpoint, *wanted, validate_only=True)
    assert (results["t"]["error_code"], results["t"]["num_partitions"]) == (0, 3)
    assert results["a/b"]["error_code"] == 17
    assert cluster.topics == ()


def test_a_thousand_topics_are_one_set(
    cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    results = create(endpoint, *(topic(f"t{i}", replication_factor=2) for i in range(1_000)))
    assert {each["error_code"] for each in results.values()} == {0}
    assert len(cluster.topics) == 1_000


def test_a_topic_that_exists(controller: LiveController, endpoint: LocalEndpoint) -> None:
    create(endpoint, topic("t"))
    assert error(endpoint, topic("t")) == (36, "Topic 't' already exists.")
    # Without waiting for the view: what the controller says is worded in the same way.
    create(endpoint, topic("u"), timeout=datetime.timedelta(0))
    assert error(endpoint, topic("u")) == (36, "Topic 'u' already exists.")


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        (
            topic("t", num_partitions=0),
            37,
            "Number of partitions must be larger than 0.",
        ),
        (
            topic("t", replication_factor=0),
            38,
            "Replication factor must be larger than 0.",
        ),
        (
            topic("t", replication_factor=4),
            38,
            "Replication factor: 4 larger than available brokers: 3.",
        ),
        (topic(""), 17, "Topic name is invalid: the empty string is not allowed"),
        (topic(".."), 17, "Topic name is invalid: '..' is not allowed"),
        (
            topic("x" * 250),
            17,
            f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed "
            "length 249",
        ),
        (
            topic("a b"),
            17,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'",
        ),
        (
            topic("t", configs=[{"name": "no.such.key", "value": "1"}]),
            40,
            "Unknown topic config name: no.such.key",
        ),
        (
            topic("t", configs=[{"name": "retention.ms", "value": "soon"}]),
            40,
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        ),
        (
            topic("t", configs=[{"name": "retention.ms", "value": "-2"}]),
            40,
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            topic("t", configs=[{"name": "cleanup.policy", "value": "compact,x"}]),
            40,
            "Invalid value x for configuration cleanup.policy: String must be one of: compact, "
            "delete",
        ),
        (
            topic("t", configs=[{"name": "preallocate", "value": "yes"}]),
            40,
            "Invalid value yes for configuration preallocate: Expected value to be either true or "
            "false",
        ),
        (
            topic("t", configs=[{"name": "retention.ms", "value": None}]),
            42,
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            topic("t", num_partitions=1, assignments=[{"partition_index": 0, "broker_ids": (1,)}]),
            42,
            "Both numPartitions or replicationFactor and replicasAssignments were set. Both "
            "cannot be used at the same time.",
        ),
        (
            topic(
                "t",
                assignments=[
                    {"partition_index": 0, "broker_ids": (1,)},
                    {"partition_index": 1, "broker_ids": (1, 2)},
                ],
            ),
            39,
            "All partitions should have the same number of replicas",
        ),
        (
            topic("t", assignments=[{"partition_index": 0, "broker_ids": (1, 1)}]),
            39,
            "Duplicate replica assignment found: Map(0 -> List(1, 1))",
        ),
        (
            topic("t", assignments=[{"partition_index": 1, "broker_ids": (1,)}]),
            39,
            "partitions should be a consecutive 0-based integer sequence",
        ),
    ],
)
def test_what_kafka_refuses(
    wanted: dict[str, Any],
    code: int,
    message: str,
    cluster: SimulatedCluster,
    controller: LiveController,
    endpoint: LocalEndpoint,
) -> None:
    assert error(endpoint, wanted) == (code, message)
    assert cluster.topics == ()


def test_names_that_collide(controller: LiveController, endpoint: LocalEndpoint) -> None:
    create(endpoint, topic("a.b"))
    assert error(endpoint, topic("a_b")) == (
        17,
        "Topic 'a_b' collides with existing topics: a.b",
    )
    results = create(endpoint, topic("x.y"), topic("x_y"))
    assert sorted(each["error_code"] for each in results.values()) == [0, 17]


def test_the_name_of_krafts_log(controller: LiveController, endpoint: LocalEndpoint) -> None:
    assert error(endpoint, topic("__cluster_metadata")) == (
        42,
        "Creation of internal topic __cluster_metadata is prohibited.",
    )


def test_a_topic_twice_in_a_request_is_not_created(
    cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    answer = endpoint.ask(
        CREATE_TOPICS,
        NEWEST,
        {"topics": [topic("t"), topic("u"), topic("t")], "timeout": MINUTE},
    )
    assert [(each["name"], each["error_code"]) for each in answer["topics"]] == [
        ("t", 42),
        ("u", 0),
        ("t", 42),
    ]
    assert cluster.topics == ("u",)


def test_an_assignment_is_taken_as_it_is_given(
    cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    assignments = [
        {"partition_index": 1, "broker_ids": (3, 1)},
        {"partition_index": 0, "broker_ids": (2, 3)},
    ]
    result = create(endpoint, topic("t", assignments=assignments))["t"]
    assert (result["num_partitions"], result["replication_factor"]) == (2, 2)
    assert cluster.replicas("t") == [(2, 3), (3, 1)]


def test_a_topic_on_a_broker_that_is_down_exists_but_is_not_complete_in_time(
    cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    wanted = topic("t", assignments=[{"partition_index": 0, "broker_ids": (9,)}])
    assert error(endpoint, wanted, timeout=datetime.timedelta(milliseconds=50)) == (7, None)
    assert cluster.replicas("t") == [(9,)]


def test_without_time_to_wait_the_answer_is_that_time_is_out(
    cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    assert error(endpoint, topic("t"), timeout=datetime.timedelta(0)) == (7, None)
    assert cluster.topics == ("t",)


def test_a_process_that_is_not_the_controller_says_so(
    cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    controller.lose_term()
    assert error(endpoint, topic("t")) == (41, None)


def test_who_waits_is_answered_when_the_controller_resigns(
    cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    wanted = topic("t", assignments=[{"partition_index": 0, "broker_ids": (9,)}])
    answer = endpoint.submit(CREATE_TOPICS, NEWEST, {"topics": [wanted], "timeout": MINUTE})
    while "t" not in cluster.topics:
        pass
    controller.lose_term()
    assert answer.result(timeout=60)["topics"][0]["error_code"] in (7, 41)


def test_more_partitions_than_can_be_placed_at_a_time_are_refused(
    cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    wanted = [topic(f"t{i}", num_partitions=10_000) for i in range(6)]
    results = create(endpoint, *wanted)
    assert {each["error_code"] for each in results.values()} == {44}
    assert error(endpoint, topic("t", num_partitions=2**31 - 1))[0] == 44
    assert cluster.topics == ()
