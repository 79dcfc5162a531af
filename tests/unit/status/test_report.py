"""The exit status tells scripts how the cluster is; the text tells people everything."""

from __future__ import annotations

from typing import Any

import pytest

from regent.model.active_regent import ServedResources
from regent.status.report import ExitStatus, exit_status
from regent.status.text import render_status

Report = dict[str, Any]


def report(**values: Any) -> Report:
    return {
        "clusterId": "c",
        "controller": {"id": 1000, "epoch": 7, "kind": "regent"},
        "brokers": [],
        "deposedControllers": [],
        "partitions": {
            "topics": 1, "total": 2, "online": 2, "offline": 0, "new": 0, "unknown": 0,
            "underReplicated": 0,
        },
        "problems": [],
        "regent": None,
        "regentProblem": "no Regent answers at http://127.0.0.1:8080: refused",
        **values,
    }  # fmt: skip


UNKNOWN = {"id": None, "epoch": 7, "kind": "unknown"}
NOBODY = {"id": None, "epoch": 7, "kind": "none"}
OFFLINE = {**report()["partitions"], "online": 1, "offline": 1}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ExitStatus.HEALTHY),
        ({"partitions": OFFLINE}, ExitStatus.OFFLINE_PARTITIONS),
        ({"controller": NOBODY}, ExitStatus.NO_CONTROLLER),
        ({"controller": NOBODY, "partitions": OFFLINE}, ExitStatus.NO_CONTROLLER),
        ({"problems": ["/brokers/topics/t: no JSON"]}, ExitStatus.UNREADABLE_ZNODES),
        ({"problems": ["/controller: x"], "controller": UNKNOWN}, ExitStatus.UNREADABLE_ZNODES),
        ({"problems": ["x"], "partitions": OFFLINE}, ExitStatus.OFFLINE_PARTITIONS),
    ],
)
def test_the_exit_status_names_the_worst(values: Report, expected: ExitStatus) -> None:
    assert exit_status(report(**values)) is expected


def test_a_pipe_gets_whole_lines() -> None:
    endpoints = [f"LISTENER_{n}://broker-1.kafka.example.com:{n}" for n in range(9000, 9020)]
    broker = {"id": 1, "epoch": 2, "rack": "[bold]a", "leads": 0, "hosts": 0, "outOfSync": 0}
    output = render_status(
        report(brokers=[{**broker, "endpoints": endpoints}], problems=["/x: " + "y" * 500])
    )
    assert " ".join(endpoints) in output
    assert "[bold]a" in output
    assert "/x: " + "y" * 500 in output


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        (ServedResources("kafka/regent"), "Lease kafka/regent, all namespaces"),
        (ServedResources("kafka/a", ("x", "y")), "Lease kafka/a, namespaces x, y"),
        (
            ServedResources("k/a", ("x",), "east", is_default=True),
            "Lease k/a, namespaces x, clusterRef east or none",
        ),
        (ServedResources(None), "none: it runs without_kubernetes"),
    ],
)
def test_which_resources_the_controller_serves_is_said(
    served: ServedResources, expected: str
) -> None:
    controller = {**report()["controller"], "customResources": served.report()}
    assert f"\nResources   {expected}\n" in render_status(report(controller=controller))


REGENT: Report = {
    "controllerId": 1000, "isActive": True, "eventQueueSize": 0, "channelQueueSizes": {"1": 0},
}  # fmt: skip
"""The answer of a Regent of an earlier version, which says no more."""


def shown(**fields: Any) -> str:
    """The text about a Regent whose answer has these fields, too."""
    return render_status(report(regent=REGENT | fields, regentProblem=None))


REPLICA = {"topic": "orders", "partition": 3, "broker_id": 2}
TOLD = {
    "it does not lead": (
        {"isActive": False, "refusal": "broker 1 uses inter.broker.protocol.version 3.0"},
        ["1000 (standby)", "does not take the cluster: broker 1 uses"],
    ),
    "brokers refuse requests": (
        {
            "refusedReplicas": {"count": 5, "sample": [{**REPLICA, "error": "NO"}]},
            "refusedMetadata": {"2": "CLUSTER_AUTHORIZATION_FAILED"},
        },
        [
            "broker 2 refuses orders-3: NO",
            "and 4 replicas more",
            "broker 2 refuses metadata: CLUSTER_AUTHORIZATION_FAILED",
            "--operation ClusterAction --cluster",
        ],
    ),
    "replicas are not assigned to their broker": (
        {"unassignedReplicas": {"count": 3, "sample": [{**REPLICA, "size": 4711}]}},
        ["broker 2 has orders-3 (4711 bytes)", "Unassigned  and 2 replicas more"],
    ),
    "KafkaTopics are not served": (
        {
            "kubernetes": {
                "problem": None,
                "unlisted": "no definition",
                "unreadableNamespaces": {"shop": "missing right: list"},
                "unwritableNamespaces": {"bank": "missing right: patch"},
                "unkeptLease": "the Lease cannot be kept",
                "stall": "stuck for 130 s",
            },
        },
        [
            "no KafkaTopic is served: no definition",
            "namespace shop may be out of date: missing right: list",
            "namespace bank may be out of date: missing right: patch",
            "Kubernetes  the Lease cannot be kept",
            "Kubernetes  stuck for 130 s",
        ],
    ),
    "brokers are stopping": ({"shuttingDownBrokers": [2, 3]}, ["Stopping    2, 3: "]),
    "some listeners are served": (
        {
            "endpoint": {
                "served": {"PLAINTEXT": "regent:9092"},
                "servedListeners": {"EXTERNAL": "kafka.example:9095"},
                "listenersNotServed": {"CLIENTS": "SASL_SSL"},
            },
        },
        [
            "Endpoint    regent:9092 (PLAINTEXT)",
            "Endpoint    kafka.example:9095 (EXTERNAL)",
            "Endpoint    listener CLIENTS (SASL_SSL) is not served",
        ],
    ),
}


@pytest.mark.parametrize(("fields", "expected"), TOLD.values(), ids=TOLD.keys())
def test_what_a_regent_answers_is_told(fields: Report, expected: list[str]) -> None:
    output = shown(**fields)
    assert [text for text in expected if text not in output] == []


def test_a_regent_of_an_earlier_version_reports_no_refusals() -> None:
    output = shown(endpoint=None, warmStandby=None, replicas=None)
    labels = ("Refused", "Unassigned", "Stopping", "Endpoint ", "Standby", "Replica ")
    assert [label for label in labels if label in output] == []


def test_whether_the_standbys_cache_is_current_is_shown() -> None:
    standby = {
        "phase": "current", "problem": None, "znodes": 8, "partitions": 5, "dirty": 0,
        "malformed": 0, "differences": 0,
    }  # fmt: skip
    assert "Standby     cache current: 5 partitions\n" in shown(warmStandby=standby)
    unlike = shown(warmStandby={**standby, "dirty": 3, "malformed": 2, "differences": 1})
    assert "3 znodes to be read, 2 znodes left out, 1 znodes have differed" in unlike
    unsupported = shown(warmStandby={**standby, "phase": "unsupported", "problem": "too old"})
    assert "cache unsupported: 5 partitions (too old)" in unsupported


def test_other_replicas_are_named_with_what_keeps_them_from_being_heard() -> None:
    others = {"Regent 7 at a:1": None, "Regent 8 at b:2": "refused"}
    output = shown(replicas={"others": others, "suspicions": {}, "problem": None})
    assert "Replica     Regent 7 at a:1 answers\n" in output
    assert "Replica     Regent 8 at b:2 is not heard: refused\n" in output
    output = shown(replicas={"others": {}, "suspicions": {}, "problem": "NOAUTH"})
    assert "Replica     others are not known: NOAUTH\n" in output


def test_who_is_refused_and_which_broker_is_not_reached_is_shown_with_what_to_do() -> None:
    peer = {
        "kind": "authorization",
        "principal": "User:mallory",
        "address": "10.0.0.1",
        "listener": "CLIENTS",
        "reason": "Create on Topic t is not granted",
        "remedy": "kafka-acls --add",
    }
    unnamed = {name: value for name, value in peer.items() if name != "principal"}
    output = shown(
        zooKeeperProblem="refused",
        unreachedBrokers={"3": "BROKERS://h:1 as User:regent: no; see a file"},
        endpoint={
            "served": {},
            "listenersNotServed": {},
            "problem": "the certificate in /c.pem expired",
            "refusedPeers": [peer, unnamed],
        },
    )
    lines = [line.strip() for line in output.splitlines()]
    what = "from 10.0.0.1, listener CLIENTS: authorization: Create on Topic t is not granted"
    for expected in (
        "ZooKeeper   it has no connection: refused",
        "Unreached   broker 3 at BROKERS://h:1 as User:regent: no; see a file",
        "Endpoint    the certificate in /c.pem expired",
        f"Refused     User:mallory {what}; kafka-acls --add",
        f"Refused     a client {what}; kafka-acls --add",
    ):
        assert expected in lines


def test_what_others_wrote_gives_the_terminal_no_commands() -> None:
    command = "\x1b]0;title\x07\x1b[2J"
    broker = {"id": 1, "epoch": 2, "rack": command, "leads": 0, "hosts": 0, "outOfSync": 0}
    regent = {**REGENT, "isActive": False, "refusal": command}
    output = render_status(
        report(
            brokers=[{**broker, "endpoints": [command]}],
            problems=[command + "\ud800é"],
            regent=regent,
            regentProblem=None,
        )
    )
    assert "\x1b]" not in output
    assert "[2J" in output
    assert "\\x1b]0;title" in output
    assert "\\ud800é" in output
