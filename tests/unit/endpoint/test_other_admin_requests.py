"""DeleteTopics, CreatePartitions, ElectLeaders, reassignments, SCRAM users, features."""

from __future__ import annotations

import datetime
import hashlib
import uuid
from typing import Any

import pytest

from regent.protocol.served_apis import (
    ADMIN_APIS,
    ALTER_PARTITION_REASSIGNMENTS,
    ALTER_USER_SCRAM_CREDENTIALS,
    CREATE_PARTITIONS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
    UPDATE_FEATURES,
)
from tests.support.endpoint import LocalEndpoint
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.waiting import wait_for

MINUTE = datetime.timedelta(minutes=1)
NOT_CONTROLLER = 41


def delete(
    endpoint: LocalEndpoint,
    *names: str,
    version: int = 6,
    timeout: datetime.timedelta = MINUTE,
) -> list[tuple[str | None, int]]:
    topics = [{"name": name, "topic_id": None} for name in names]
    answer = endpoint.ask(
        DELETE_TOPICS, version, {"topic_names": names, "topics": topics, "timeout": timeout}
    )
    return [(each["name"], each["error_code"]) for each in answer["responses"]]


@pytest.fixture
def led(cluster: SimulatedCluster, controller: LiveController) -> None:
    """Topic ``t`` has a partition on brokers 1 and 2, which is led."""
    create_led(cluster, controller, "t", [(1, 2)])


def create_led(
    cluster: SimulatedCluster,
    controller: LiveController,
    topic: str,
    replicas: list[tuple[int, ...]],
) -> None:
    """Create a topic, and wait until its partitions are led."""
    cluster.create_topic(topic, replicas)
    wait_for(
        lambda: (view := controller.view.topics.get(topic)) is not None and not view.leaderless,
        f"{topic} to be led",
    )


@pytest.mark.usefixtures("controller")
class TestDeleteTopics:
    @pytest.mark.usefixtures("led")
    @pytest.mark.parametrize("version", sorted(DELETE_TOPICS.requests))
    def test_a_topic_is_gone_when_it_is_answered(
        self, version: int, cluster: SimulatedCluster, endpoint: LocalEndpoint
    ) -> None:
        assert delete(endpoint, "t", "none", version=version) == [("t", 0), ("none", 3)]
        assert cluster.topics == ()

    @pytest.mark.usefixtures("led")
    def test_a_topic_is_deleted_by_its_id(
        self, cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
    ) -> None:
        topic_id = controller.view.topics["t"].topic_id
        unknown = "00000000-0000-0000-0000-000000000001"
        topics = [
            {"name": None, "topic_id": topic_id},
            {"name": None, "topic_id": uuid.UUID(unknown)},
        ]
        answer = endpoint.ask(DELETE_TOPICS, 6, {"topics": topics, "timeout": MINUTE})
        assert [(e["name"], e["error_code"]) for e in answer["responses"]] == [
            ("t", 0),
            (None, 100),
        ]
        assert cluster.topics == ()

    def test_name_with_id_refused(self, cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
        cluster.create_topic("t", [(1, 2)])
        topics = [{"name": "t", "topic_id": uuid.UUID("00000000-0000-0000-0000-000000000001")}]
        answer = endpoint.ask(DELETE_TOPICS, 6, {"topics": topics, "timeout": MINUTE})
        assert [e["error_code"] for e in answer["responses"]] == [42]
        assert cluster.topics == ("t",)

    @pytest.mark.usefixtures("led")
    def test_without_time_to_wait_the_answer_is_that_time_is_out(
        self, endpoint: LocalEndpoint
    ) -> None:
        assert delete(endpoint, "t", timeout=datetime.timedelta(0)) == [("t", 7)]


@pytest.mark.parametrize(("version", "code"), [(2, 42), (3, 73), (6, 73)])
def test_deletion_that_is_disabled(
    version: int, code: int, cluster: SimulatedCluster, endpoint: LocalEndpoint
) -> None:
    with LiveController(cluster, serve=endpoint.serve, delete_topic_enable=False) as controller:
        create_led(cluster, controller, "t", [(1, 2)])
        assert delete(endpoint, "t", version=version) == [("t", code)]


def grow(
    endpoint: LocalEndpoint, *topics: dict[str, Any], version: int = 3, validate_only: bool = False
) -> dict[str, tuple[int, str | None]]:
    answer = endpoint.ask(
        CREATE_PARTITIONS,
        version,
        {
            "topics": [{"assignments": None, **topic} for topic in topics],
            "timeout": MINUTE,
            "validate_only": validate_only,
        },
    )
    return {each["name"]: (each["error_code"], each["error_message"]) for each in answer["results"]}


@pytest.mark.usefixtures("controller")
class TestCreatePartitions:
    @pytest.mark.parametrize("version", sorted(CREATE_PARTITIONS.requests))
    def test_partitions_have_leaders_when_it_is_answered(
        self,
        version: int,
        cluster: SimulatedCluster,
        controller: LiveController,
        endpoint: LocalEndpoint,
    ) -> None:
        for name in ("t", "u"):
            create_led(cluster, controller, name, [(1, 2)])
        results = grow(
            endpoint,
            {"name": "t", "count": 3},
            {"name": "u", "count": 2, "assignments": [{"broker_ids": (3, 1)}]},
            version=version,
        )
        assert results == {"t": (0, None), "u": (0, None)}
        assert controller.view.topics["t"].leaderless == 0
        assert len(cluster.replicas("t")) == 3
        assert cluster.replicas("u") == [(1, 2), (3, 1)]

    @pytest.mark.parametrize(
        ("name", "count", "assigned", "code", "message"),
        [
            ("t", 1, None, 37, "higher than the requested 1"),
            ("t", 2, None, 37, "already has 2 partitions"),
            ("none", 2, None, 3, "'none' does not exist"),
            ("t", 3, (9, 1), 39, "Unknown broker"),
            ("t", 4, (2, 1), 39, "by 2 but 1 assignments"),
            ("t", 3, (), 39, "replication factor of 0"),
            ("t", 3, (1, 1), 39, "Duplicate brokers"),
            ("t", 3, (1,), 39, "Inconsistent replication factor"),
        ],
    )
    def test_what_kafka_refuses(
        self,
        name: str,
        count: int,
        assigned: tuple[int, ...] | None,
        code: int,
        message: str,
        cluster: SimulatedCluster,
        controller: LiveController,
        endpoint: LocalEndpoint,
    ) -> None:
        create_led(cluster, controller, "t", [(1, 2), (2, 3)])
        assignments = None if assigned is None else [{"broker_ids": assigned}]
        wanted = {"name": name, "count": count, "assignments": assignments}
        found, text = grow(endpoint, wanted)[name]
        assert found == code
        assert message in str(text)
        assert cluster.replicas("t") == [(1, 2), (2, 3)]

    @pytest.mark.usefixtures("led")
    def test_nothing_is_written_to_validate(
        self, cluster: SimulatedCluster, endpoint: LocalEndpoint
    ) -> None:
        wanted = {"name": "t", "count": 3}
        assert grow(endpoint, wanted, validate_only=True) == {"t": (0, None)}
        assert cluster.replicas("t") == [(1, 2)]

    @pytest.mark.usefixtures("led")
    def test_a_topic_twice_in_a_request_does_not_grow(
        self, cluster: SimulatedCluster, endpoint: LocalEndpoint
    ) -> None:
        results = grow(endpoint, {"name": "t", "count": 3}, {"name": "t", "count": 4})
        assert results == {"t": (42, "Duplicate topic in request.")}
        assert cluster.replicas("t") == [(1, 2)]


def elect(endpoint: LocalEndpoint, version: int, **fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = endpoint.ask(
        ELECT_LEADERS, version, {"election_type": 0, "timeout": MINUTE, **fields}
    )
    return answer


@pytest.mark.usefixtures("led")
class TestElectLeaders:
    @pytest.mark.parametrize("version", sorted(ELECT_LEADERS.requests))
    def test_each_partition_has_an_answer(self, version: int, endpoint: LocalEndpoint) -> None:
        named = [{"topic": "t", "partitions": (0, 7)}]
        answer = elect(endpoint, version, topic_partitions=named)
        (topic,) = answer["replica_election_results"]
        assert topic["topic"] == "t"
        assert [
            (each["partition_id"], each["error_code"], each["error_message"])
            for each in topic["partition_result"]
        ] == [
            (0, 84, "Leader election not needed for topic partition."),
            (7, 3, "The partition does not exist."),
        ]

    def test_of_all_partitions_only_what_has_changed_is_answered(
        self, endpoint: LocalEndpoint
    ) -> None:
        answer = elect(endpoint, 2, topic_partitions=None)
        assert (answer["error_code"], answer["replica_election_results"]) == (0, ())

    def test_a_type_that_kafka_does_not_know(self, endpoint: LocalEndpoint) -> None:
        answer = elect(endpoint, 2, topic_partitions=None, election_type=7)
        assert answer["error_code"] == 42


def reassign(
    endpoint: LocalEndpoint,
    targets: dict[int, tuple[int, ...] | None],
    found: tuple[dict[str, Any], ...] = (),
) -> dict[int, tuple[int, str | None]]:
    """Move partitions of topic t; the results by partition.

    Args:
        found: Conditions of Regent's operator; a client of Kafka sends none.
    """
    partitions = [
        {"partition_index": p, "replicas": target, "found": found} for p, target in targets.items()
    ]
    answer = endpoint.ask(
        ALTER_PARTITION_REASSIGNMENTS,
        0,
        {"timeout": MINUTE, "topics": [{"name": "t", "partitions": partitions}]},
    )
    assert answer["error_code"] == 0
    return {
        each["partition_index"]: (each["error_code"], each["error_message"])
        for topic in answer["responses"]
        for each in topic["partitions"]
    }


@pytest.mark.usefixtures("controller")
class TestReassignments:
    def test_partitions_move_and_those_that_do_are_listed(
        self, cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
    ) -> None:
        create_led(cluster, controller, "t", [(1, 2), (2, 1)])
        cluster.pause_broker(3)
        cluster.expect_move("t", 0, (2, 3))
        assert reassign(endpoint, {0: (2, 3)}) == {0: (0, None)}
        answer = endpoint.ask(LIST_PARTITION_REASSIGNMENTS, 0, {"timeout": MINUTE, "topics": None})
        (topic,) = answer["topics"]
        (partition,) = topic["partitions"]
        assert (topic["name"], partition["partition_index"]) == ("t", 0)
        assert (partition["adding_replicas"], partition["removing_replicas"]) == ((3,), (1,))
        named = [{"name": "t", "partition_indexes": (1,)}]
        answer = endpoint.ask(LIST_PARTITION_REASSIGNMENTS, 0, {"timeout": MINUTE, "topics": named})
        assert answer["topics"] == ()
        cluster.resume_broker(3)

    @pytest.mark.parametrize(
        ("changed", "code"),
        [
            ({}, 0),
            ({"replicas": (2, 1)}, 39),
            ({"adding_replicas": (2,)}, 39),
            ({"removing_replicas": (1,)}, 39),
            ({"topic_czxid": 1}, 3),
        ],
    )
    def test_a_partition_that_is_another_one_than_was_found_stays(
        self,
        changed: dict[str, Any],
        code: int,
        cluster: SimulatedCluster,
        controller: LiveController,
        endpoint: LocalEndpoint,
    ) -> None:
        create_led(cluster, controller, "t", [(1, 2)])
        cluster.expect_move("t", 0, (2, 3))
        found = {
            "topic_czxid": controller.view.topics["t"].czxid,
            "replicas": (1, 2),
            "adding_replicas": (),
            "removing_replicas": (),
            **changed,
        }
        assert reassign(endpoint, {0: (2, 3)}, (found,))[0][0] == code

    @pytest.mark.usefixtures("led")
    @pytest.mark.parametrize(
        ("target", "code", "message"),
        [
            (None, 85, "No partition reassignment"),
            ((), 39, "Empty replica list"),
            ((1, 1), 39, "Duplicate replica ids"),
            ((1, -1), 39, "Invalid broker id"),
            ((1, 9), 39, "brokers that are not alive"),
        ],
    )
    def test_what_kafka_refuses(
        self, target: tuple[int, ...] | None, code: int, message: str, endpoint: LocalEndpoint
    ) -> None:
        results = reassign(endpoint, {0: target, 5: (1,)})
        assert [results[p][0] for p in (0, 5)] == [code, 3]
        assert message in str(results[0][1])


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> dict[str, Any]:
    return {
        "name": name,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": b"salt",
        "salted_password": hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", iterations),
    }


def alter_users(
    endpoint: LocalEndpoint,
    *upsertions: dict[str, Any],
    deletions: list[dict[str, Any]] | None = None,
) -> dict[str, tuple[int, str | None]]:
    answer = endpoint.ask(
        ALTER_USER_SCRAM_CREDENTIALS,
        0,
        {"upsertions": upsertions, "deletions": deletions or []},
    )
    return {each["user"]: (each["error_code"], each["error_message"]) for each in answer["results"]}


@pytest.mark.usefixtures("controller")
class TestScramUsers:
    def test_a_user_with_each_mechanism_then_without(self, endpoint: LocalEndpoint) -> None:
        assert alter_users(endpoint, upsertion("a"), upsertion("a", 2)) == {"a": (0, None)}
        both = [{"name": "a", "mechanism": 1}, {"name": "a", "mechanism": 2}]
        assert alter_users(endpoint, deletions=both) == {"a": (0, None)}
        message = "Attempt to delete a user credential that does not exist"
        assert alter_users(endpoint, deletions=both) == {"a": (91, message)}

    @pytest.mark.parametrize(
        ("wanted", "code", "message"),
        [
            ([upsertion("")], 93, "Username must not be empty"),
            ([upsertion("a", 3)], 33, "Unknown SCRAM mechanism"),
            ([upsertion("a", iterations=4095)], 93, "Too few iterations"),
            ([upsertion("a", iterations=16385)], 93, "Too many iterations"),
            (
                [upsertion("a"), upsertion("a")],
                92,
                "A user credential cannot be altered twice in the same request",
            ),
        ],
    )
    def test_what_kafka_refuses(
        self, wanted: list[dict[str, Any]], code: int, message: str, endpoint: LocalEndpoint
    ) -> None:
        results = alter_users(endpoint, *wanted, upsertion("other"))
        assert results == {wanted[0]["name"]: (code, message), "other": (0, None)}


@pytest.mark.usefixtures("controller")
class TestFeatures:
    @pytest.mark.parametrize("version", [0, 1])
    def test_no_feature_is_supported(self, version: int, endpoint: LocalEndpoint) -> None:
        update = {
            "feature": "metadata.version",
            "max_version_level": 7,
            "allow_downgrade": False,
            "upgrade_type": 1,
        }
        answer = endpoint.ask(
            UPDATE_FEATURES, version, {"timeout": MINUTE, "feature_updates": [update]}
        )
        (result,) = answer["results"]
        assert (answer["error_code"], result["error_code"]) == (0, 42)
        assert result["error_message"] == (
            "Could not apply finalized feature update because the provided feature is not "
            "supported."
        )


EMPTY: dict[str, Any] = {
    "timeout": MINUTE,
    "topics": [],
    "topic_names": [],
    "topic_partitions": None,
    "validate_only": False,
    "election_type": 0,
    "upsertions": [],
    "deletions": [],
    "feature_updates": [],
}


@pytest.mark.usefixtures("controller")
@pytest.mark.parametrize("api", ADMIN_APIS, ids=lambda api: api.name)
def test_every_version_of_an_empty_request_is_answered(api: Any, endpoint: LocalEndpoint) -> None:
    for version in api.requests:
        answer = endpoint.ask(api, version, EMPTY)
        assert answer.get("error_code", 0) == 0


def test_standby_is_not_controller(controller: LiveController, endpoint: LocalEndpoint) -> None:
    controller.lose_term()
    assert delete(endpoint, "t") == [("t", NOT_CONTROLLER)]
    assert grow(endpoint, {"name": "t", "count": 3}) == {"t": (NOT_CONTROLLER, None)}
    assert elect(endpoint, 1, topic_partitions=None)["error_code"] == NOT_CONTROLLER
    assert alter_users(endpoint, upsertion("a")) == {"a": (NOT_CONTROLLER, None)}
    for api in (ALTER_PARTITION_REASSIGNMENTS, LIST_PARTITION_REASSIGNMENTS, UPDATE_FEATURES):
        assert endpoint.ask(api, 0, EMPTY)["error_code"] == NOT_CONTROLLER
