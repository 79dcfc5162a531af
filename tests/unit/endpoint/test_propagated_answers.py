"""Answers to administrators leave when a broker shows what the answers say, and not before."""

from __future__ import annotations

import concurrent.futures
import datetime
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from regent.admin.commands import ElectionType
from regent.controller.view import ClusterView
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.served_apis import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    Api,
)
from tests.support.endpoint import LocalEndpoint, new_topic
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.waiting import wait_for

OLD, GROWN = TopicPartition("t", 0), TopicPartition("t", 1)
BROKERS = (1, 2, 3)
REQUEST_TIMED_OUT = 7

Shown = dict[TopicPartition, LeaderAndIsr]


class Change(NamedTuple):
    """A request of an administrator about topic ``t``.

    Attributes:
        exists: Whether the topic exists before; it has the replicas 2 and 1, and 1 leads.
        is_made: Whether the controller has made the change, as far as it can alone.
        is_shown: Whether a broker shows it.
        codes: The error codes of an answer.
    """

    api: Api
    fields: dict[str, Any]
    exists: bool
    is_made: Callable[[ClusterView], bool]
    is_shown: Callable[[Shown], bool]
    codes: Callable[[Any], list[int]]


def are_led(view: ClusterView, partitions: int) -> bool:
    topic = view.topics.get("t")
    return topic is not None and len(topic.partitions) == partitions and not topic.leaderless


CHANGES = {
    "CreateTopics": Change(
        CREATE_TOPICS,
        {
            "topics": [new_topic("t", replication_factor=3)],
            "validate_only": False,
        },
        exists=False,
        is_made=lambda view: are_led(view, 1),
        is_shown=lambda shown: OLD in shown,
        codes=lambda answer: [each["error_code"] for each in answer["topics"]],
    ),
    "CreatePartitions": Change(
        CREATE_PARTITIONS,
        {"topics": [{"name": "t", "count": 2, "assignments": None}], "validate_only": False},
        exists=True,
        is_made=lambda view: are_led(view, 2),
        is_shown=lambda shown: GROWN in shown,
        codes=lambda answer: [each["error_code"] for each in answer["results"]],
    ),
    "ElectLeaders": Change(
        ELECT_LEADERS,
        {
            "election_type": ElectionType.PREFERRED,
            "topic_partitions": [{"topic": "t", "partitions": (0,)}],
        },
        exists=True,
        is_made=lambda view: view.topics["t"].partitions[0].leader == 2,
        is_shown=lambda shown: shown[OLD].leader == 2,
        codes=lambda answer: [
            partition["error_code"]
            for topic in answer["replica_election_results"]
            for partition in topic["partition_result"]
        ],
    ),
    "DeleteTopics": Change(
        DELETE_TOPICS,
        {"topics": [{"name": "t", "topic_id": None}]},
        exists=True,
        is_made=lambda view: "t" not in view.topics or view.topics["t"].is_being_deleted,
        is_shown=lambda shown: OLD not in shown,
        codes=lambda answer: [each["error_code"] for each in answer["responses"]],
    ),
}


@pytest.fixture(params=CHANGES)
def change(
    request: pytest.FixtureRequest, cluster: SimulatedCluster, controller: LiveController
) -> Change:
    """A change that has not been asked for; no broker reads requests of the controller."""
    change = CHANGES[request.param]
    if change.exists:
        cluster.stop_broker(2)
        wait_for(lambda: 2 not in controller.view.brokers, "the broker to be gone")
        cluster.create_topic("t", [(2, 1)])
        wait_for(lambda: are_led(controller.view, 1), "the topic to be led")
        cluster.start_broker(2)
        wait_for(lambda: 2 in controller.view.topics["t"].partitions[0].isr, "broker 2 in sync")
        wait_for(
            lambda: all(OLD in cluster.shows(broker_id) for broker_id in BROKERS),
            "all brokers to show the topic",
        )
    for broker_id in BROKERS:
        cluster.pause_broker(broker_id)
    return change


def submit(
    endpoint: LocalEndpoint, change: Change, *, timeout: datetime.timedelta
) -> concurrent.futures.Future[Any]:
    return endpoint.submit(change.api, change.api.highest, {**change.fields, "timeout": timeout})


def test_answer_leaves_when_the_first_broker_shows_the_change(
    change: Change, cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint
) -> None:
    """Brokers that hang do not delay the answer, and clients are not sent to them."""
    at_answer: list[list[int]] = []

    def look(_: object) -> None:
        at_answer.append([b for b in BROKERS if change.is_shown(cluster.shows(b))])

    answer = submit(endpoint, change, timeout=datetime.timedelta(minutes=1))
    answer.add_done_callback(look)
    wait_for(lambda: change.is_made(controller.view), "the controller's part")
    cluster.resume_broker(2)
    assert change.codes(answer.result(timeout=60)) == [0]
    wait_for(lambda: at_answer, "the look at the brokers")
    assert at_answer == [[2]]
    assert endpoint.lagging_brokers() == {1, 3}
    for broker_id in BROKERS:
        cluster.resume_broker(broker_id)
    wait_for(lambda: not endpoint.lagging_brokers(), "the other brokers to follow")


def test_answer_times_out_if_no_broker_shows_it(change: Change, endpoint: LocalEndpoint) -> None:
    answer = submit(endpoint, change, timeout=datetime.timedelta(milliseconds=300))
    assert change.codes(answer.result(timeout=60)) == [REQUEST_TIMED_OUT]
