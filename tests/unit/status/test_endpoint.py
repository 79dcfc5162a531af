"""Which Regent is believed, and what is said of one that is not."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from regent.observability.http import HttpEndpoint, JsonAnswer
from regent.settings import Settings
from regent.sockets.listening import listening_socket
from regent.status.endpoint import EndpointAnswer, ask_regent, ask_why, default_url, of_this_cluster

URL = "http://regent"
ACTIVE: Mapping[str, Any] = {
    "controllerId": 1000,
    "isActive": True,
    "eventQueueSize": 0,
    "channelQueueSizes": {},
}
STANDBY = {**ACTIVE, "isActive": False}


def cluster(*, cluster_id: str | None = "ours", controller_id: int | None = 1000) -> dict[str, Any]:
    kind = "none" if controller_id is None else "regent"
    return {"clusterId": cluster_id, "controller": {"id": controller_id, "kind": kind}}


@pytest.fixture
def other_server() -> Iterator[tuple[int, list[bytes]]]:
    """A server that gives one answer, which the test sets, to one client."""
    answer: list[bytes] = []

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(answer[0])

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1], answer
        thread.join()


NOT_FOUND = JsonAnswer(HTTPStatus.NOT_FOUND, {**ACTIVE, "problem": "there is no topic 'unknown'"})


async def nothing_known(topic: str, partition: int | None) -> JsonAnswer:
    return NOT_FOUND


@pytest.fixture
def regent_url() -> Iterator[str]:
    """The endpoint of a Regent that is the controller, and knows no topic."""
    endpoint = HttpEndpoint(
        listening=listening_socket("127.0.0.1", 0, setting="http"),
        registry=CollectorRegistry(),
        liveness=lambda: None,
        readiness=lambda: None,
        status=lambda: dict(ACTIVE),
        state_changes=nothing_known,
    )
    endpoint.start()
    try:
        yield f"http://127.0.0.1:{endpoint.port}"
    finally:
        endpoint.close()


def test_a_regent_is_asked_over_http(regent_url: str) -> None:
    assert ask_regent(regent_url) == EndpointAnswer(status=ACTIVE)


def test_what_a_regent_answers_about_a_topic_it_does_not_know_is_an_answer(regent_url: str) -> None:
    assert ask_why(regent_url, "unknown", 3) == EndpointAnswer(status=NOT_FOUND.body)


CAUSE = {"kind": "broker failed", "event": "BrokerChange", "timeMs": 1, "brokers": []}
STATE = {"leader": 1, "leaderEpoch": 0, "isr": [1], "controllerEpoch": 1, "partitionEpoch": 0}
TRAIL: Mapping[str, Any] = {
    "partition": 0,
    "offlineDirs": [],
    "refusals": [],
    "before": STATE,
    "dropped": 0,
    "changes": [{"cause": CAUSE, "kind": "observed", "after": None}],
}
WHY: Mapping[str, Any] = {
    "controllerId": 1000,
    "isActive": True,
    "problem": None,
    "topic": "t",
    "controllerEpoch": 1,
    "termBeganMs": 1,
    "evictedPartitions": 0,
    "removed": None,
    "partitions": [TRAIL],
    "brokers": {"1": {"isLive": True, "isShuttingDown": False, "last": CAUSE}},
}


def ask_why_of(body: object, other_server: tuple[int, list[bytes]]) -> EndpointAnswer:
    port, answer = other_server
    answer.append(http("200 OK", json.dumps(body).encode()))
    return ask_why(f"http://127.0.0.1:{port}", "t", None)


def test_a_trail_is_an_answer(other_server: tuple[int, list[bytes]]) -> None:
    assert ask_why_of(WHY, other_server) == EndpointAnswer(status=WHY)


@pytest.mark.parametrize(
    "fields",
    [
        {"partitions": None},
        {"partitions": [{"partition": 0}]},
        {"partitions": [{**TRAIL, "partition": -1}]},
        {"partitions": [{**TRAIL, "before": {**STATE, "isr": 1}}]},
        {"partitions": [{**TRAIL, "changes": [{}]}]},
        {"partitions": [{**TRAIL, "refusals": ["no"]}]},
        {"termBeganMs": 10**18},
        {"removed": {**CAUSE, "timeMs": -1}},
        {"brokers": {"1": None}},
        {"problem": 1},
        {"controllerId": None},
    ],
)
def test_a_trail_of_another_shape_is_not_that_of_a_regent(
    other_server: tuple[int, list[bytes]], fields: dict[str, object]
) -> None:
    assert "is not a Regent" in str(ask_why_of({**WHY, **fields}, other_server).problem)


def test_a_password_for_a_proxy_is_not_repeated() -> None:
    url = "http://me:s3cret@127.0.0.1:1"
    for answer in (ask_regent(url), ask_why(url, "orders", None)):
        assert "no Regent answers at http://127.0.0.1:1: " in str(answer.problem)
        assert "s3cret" not in str(answer.problem)


def http(status: str, body: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


@pytest.mark.parametrize(
    ("sent", "of_status", "of_why"),
    [
        (b"SSH-2.0-OpenSSH_9.9\r\n", "no Regent answers", "no Regent answers"),
        (http("404 Not Found", b"try\n"), "no Regent answers", ": 404, "),
        (http("200 OK", b"{}"), "is not a Regent", "is not a Regent"),
        (http("200 OK", b"[]"), "is not a Regent", "is not a Regent"),
        (http("200 OK", b"<xml>"), "is not a Regent", "is not a Regent"),
        (http("200 OK", b"\xff\xfe"), "is not a Regent", "is not a Regent"),
        (http("200 OK", b"[" * 9999), "is not a Regent", "is not a Regent"),
        (http("503 Unavailable", b'{"problem": "busy"}'), "no Regent answers", "not answer: busy"),
    ],
    ids=["SSH", "404", "another object", "a list", "no JSON", "no text", "nested", "busy"],
)
@pytest.mark.parametrize("asks_why", [False, True], ids=["status", "why"])
def test_something_else_listens(
    other_server: tuple[int, list[bytes]], sent: bytes, of_status: str, of_why: str, asks_why: bool
) -> None:
    port, answer = other_server
    answer.append(sent)
    url = f"http://127.0.0.1:{port}"
    found = ask_why(url, "t", None) if asks_why else ask_regent(url)
    assert found.status is None
    assert (of_why if asks_why else of_status) in str(found.problem)


@pytest.mark.parametrize(
    "fields",
    [
        {"refusedReplicas": 5},
        {"refusedReplicas": {}},
        {"refusedReplicas": {"count": 1, "sample": [{"topic": "t"}]}},
        {"refusedMetadata": [1]},
        {"unassignedReplicas": {"count": 1, "sample": [{"topic": "t"}]}},
        {"refusal": {"a": 1}},
        {"channelQueueSizes": {"1": None}},
    ],
)
def test_fields_of_another_shape_are_not_those_of_a_regent(
    other_server: tuple[int, list[bytes]], fields: dict[str, object]
) -> None:
    port, answer = other_server
    answer.append(http("200 OK", json.dumps({**ACTIVE, **fields}).encode()))
    assert "is not a Regent" in str(ask_regent(f"http://127.0.0.1:{port}").problem)


@pytest.mark.parametrize("head", [b"A: ", b"Content-Length: 99999\r\n\r\n"], ids=["head", "body"])
def test_a_server_that_drips_is_not_waited_for(head: bytes) -> None:
    """Each byte comes in time; all of them would take for ever."""
    has_given_up = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            client, _ = listening.accept()
            with client, contextlib.suppress(OSError):
                client.sendall(b"HTTP/1.1 200 OK\r\n" + head)
                while not has_given_up.wait(0.02):
                    client.sendall(b"H")

        thread = threading.Thread(target=drip)
        thread.start()
        answer = ask_regent(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout_s=0.3)
        has_given_up.set()
        thread.join()
    assert "not within 0.3 s" in str(answer.problem)


@pytest.mark.parametrize(
    ("status", "here"),
    [
        ({**ACTIVE, "clusterId": "ours"}, cluster()),
        ({**STANDBY, "clusterId": "ours"}, cluster(controller_id=2)),
        ({**ACTIVE, "clusterId": "ours"}, cluster(controller_id=2)),
        (ACTIVE, cluster()),
        (STANDBY, cluster(controller_id=2)),
        ({**ACTIVE, "clusterId": None}, cluster(cluster_id=None)),
        (ACTIVE, {"clusterId": None, "controller": {"id": None, "kind": "unknown"}}),
    ],
    ids=[
        *("active", "standby", "just replaced", "no id yet", "standby without id", "no id at all"),
        "/controller is closed",
    ],
)
def test_a_regent_of_this_cluster_is_believed(
    status: Mapping[str, Any], here: dict[str, Any]
) -> None:
    answer = EndpointAnswer(status=status)
    assert of_this_cluster(answer, here, url=URL) is answer


@pytest.mark.parametrize(
    ("status", "here", "problem"),
    [
        ({**ACTIVE, "clusterId": "theirs"}, cluster(), "another Kafka cluster: theirs, not ours"),
        ({**STANDBY, "clusterId": "theirs"}, cluster(), "another Kafka cluster: theirs, not ours"),
        (ACTIVE, cluster(controller_id=7), "controller with id 1000 there, here it is 7"),
        (ACTIVE, cluster(controller_id=None), "controller with id 1000 there, here it is none"),
    ],
)
def test_a_regent_of_another_cluster_is_not(
    status: Mapping[str, Any], here: dict[str, Any], problem: str
) -> None:
    answer = of_this_cluster(EndpointAnswer(status=status), here, url=URL)
    assert answer.status is None
    assert problem in str(answer.problem)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9"),
        ("0.0.0.0", "http://127.0.0.1:9"),
        ("::", "http://[::1]:9"),
        ("fd00::1", "http://[fd00::1]:9"),
    ],
)
def test_the_default_is_where_a_regent_with_the_same_settings_listens(host: str, url: str) -> None:
    assert default_url(Settings(zookeeper="z:1", http_host=host, http_port=9)) == url
