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


def test_one_that_does_not_say_has_no_line() -> None:
    controller = {**report()["controller"], "customResources": None}
    assert "Resources" not in render_status(report(controller=controller))


def test_a_regent_that_does_not_lead_says_why() -> None:
    regent = {
        "controllerId": 1000,
        "isActive": False,
        "refusal": "broker 1 uses inter.broker.protocol.version 3.0",
        "eventQueueSize": 0,
        "channelQueueSizes": {},
    }
    output = render_status(report(regent=regent, regentProblem=None))
    assert "1000 (standby)" in output
    assert "does not take the cluster: broker 1 uses inter.broker.protocol.version 3.0" in output


def test_requests_that_brokers_refuse_are_named() -> None:
    sample = [{"topic": "orders", "partition": 3, "broker_id": 2, "error": "UNKNOWN_SERVER_ERROR"}]
    regent = {
        "controllerId": 1000,
        "isActive": True,
        "eventQueueSize": 0,
        "channelQueueSizes": {"1": 0},
        "refusedReplicas": {"count": 5, "sample": sample},
        "refusedMetadata": {"2": "CLUSTER_AUTHORIZATION_FAILED"},
    }
    output = render_status(report(regent=regent, regentProblem=None))
    assert "broker 2 refuses orders-3: UNKNOWN_SERVER_ERROR" in output
    assert "and 4 replicas more" in output
    assert "broker 2 refuses metadata: CLUSTER_AUTHORIZATION_FAILED" in output


def test_the_right_that_regent_lacks_is_named() -> None:
    regent = {
        "controllerId": 1000,
        "isActive": True,
        "refusedMetadata": {"2": "CLUSTER_AUTHORIZATION_FAILED"},
        "eventQueueSize": 0,
        "channelQueueSizes": {},
    }
    output = render_status(report(regent=regent, regentProblem=None))
    assert "broker 2 refuses metadata: CLUSTER_AUTHORIZATION_FAILED; " in output
    assert "--operation ClusterAction --cluster" in output


def test_replicas_that_are_not_assigned_to_their_broker_are_named() -> None:
    sample = [{"topic": "gone", "partition": 3, "broker_id": 2, "size": 4711}]
    regent = {
        "controllerId": 1000,
        "isActive": True,
        "eventQueueSize": 0,
        "channelQueueSizes": {"1": 0},
        "unassignedReplicas": {"count": 3, "sample": sample},
    }
    output = render_status(report(regent=regent, regentProblem=None))
    assert "Unassigned  broker 2 has gone-3 (4711 bytes) without an assignment" in output
    assert "Unassigned  and 2 replicas more" in output


def test_what_keeps_kafkatopics_from_being_served_is_named() -> None:
    regent = {
        "controllerId": 1000,
        "isActive": True,
        "eventQueueSize": 0,
        "channelQueueSizes": {},
        "kubernetes": {
            "problem": None,
            "unlisted": "the CustomResourceDefinition is not installed",
            "unreadableNamespaces": {"shop": "missing right: list"},
            "unwritableNamespaces": {"bank": "missing right: patch"},
            "unkeptLease": "the Lease cannot be kept: no right to get it",
            "stall": "work on custom resources has been stuck for 130 s",
        },
    }
    output = render_status(report(regent=regent, regentProblem=None))
    assert "no KafkaTopic is served: the CustomResourceDefinition is not installed" in output
    assert "statuses in namespace shop may be out of date: missing right: list" in output
    assert "statuses in namespace bank may be out of date: missing right: patch" in output
    assert "Kubernetes  the Lease cannot be kept: no right to get it" in output
    assert "Kubernetes  work on custom resources has been stuck for 130 s" in output


def test_a_regent_of_an_earlier_version_reports_no_refusals() -> None:
    regent = {
        "controllerId": 1000, "isActive": True, "eventQueueSize": 0, "channelQueueSizes": {}
    }  # fmt: skip
    output = render_status(report(regent=regent, regentProblem=None))
    assert "Refused" not in output
    assert "Unassigned" not in output
    assert "Stopping" not in output


def test_whether_the_standbys_cache_is_current_is_shown() -> None:
    standby = {
        "phase": "current", "problem": None, "znodes": 8, "partitions": 5, "dirty": 0,
        "malformed": 0, "differences": 0,
    }  # fmt: skip
    regent = {
        "controllerId": 1000, "isActive": False, "eventQueueSize": 0, "channelQueueSizes": {},
    }  # fmt: skip

    def shown(**changes: object) -> str:
        with_standby = {**regent, "warmStandby": {**standby, **changes}}
        return render_status(report(regent=with_standby, regentProblem=None))

    assert "Standby     cache current: 5 partitions\n" in shown()
    assert (
        ": 5 partitions, 3 znodes to be read, 2 znodes left out, 1 znodes have differed"
        in shown(dirty=3, malformed=2, differences=1)
    )
    assert "cache unsupported: 5 partitions (too old)" in shown(
        phase="unsupported", problem="too old"
    )
    for earlier in (regent, {**regent, "warmStandby": None}):
        assert "Standby" not in render_status(report(regent=earlier, regentProblem=None))


def test_other_replicas_are_named_with_what_keeps_them_from_being_heard() -> None:
    regent = {
        "controllerId": 1000, "isActive": False, "eventQueueSize": 0, "channelQueueSizes": {},
    }  # fmt: skip

    def shown(replicas: object) -> list[str]:
        output = render_status(report(regent={**regent, "replicas": replicas}, regentProblem=None))
        return [line for line in output.splitlines() if line.startswith("Replica ")]

    others = {"Regent 7 at a:1": None, "Regent 8 at b:2": "refused"}
    assert shown({"others": others, "suspicions": {}, "problem": None}) == [
        "Replica     Regent 7 at a:1 answers",
        "Replica     Regent 8 at b:2 is not heard: refused",
    ]
    assert shown({"others": {}, "suspicions": {}, "problem": "NOAUTH"}) == [
        "Replica     others are not known: NOAUTH"
    ]
    assert shown(None) == []


def test_brokers_that_are_stopping_are_named() -> None:
    regent = {
        "controllerId": 1000,
        "isActive": True,
        "shuttingDownBrokers": [2, 3],
        "eventQueueSize": 0,
        "channelQueueSizes": {},
    }
    assert "Stopping    2, 3: " in render_status(report(regent=regent, regentProblem=None))


def test_what_is_served_and_what_is_not_is_shown() -> None:
    regent = {
        "controllerId": 1000,
        "isActive": True,
        "endpoint": {
            "served": {"PLAINTEXT": "regent:9092"},
            "servedListeners": {"EXTERNAL": "kafka.example:9095"},
            "listenersNotServed": {"CLIENTS": "SASL_SSL"},
        },
        "eventQueueSize": 0,
        "channelQueueSizes": {},
    }
    output = render_status(report(regent=regent, regentProblem=None))
    assert "Endpoint    regent:9092 (PLAINTEXT)" in output
    assert "Endpoint    kafka.example:9095 (EXTERNAL)" in output
    assert "Endpoint    listener CLIENTS (SASL_SSL) is not served" in output
    without = render_status(report(regent=regent | {"endpoint": None}, regentProblem=None))
    assert "Endpoint    " not in without


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
    regent = {
        "controllerId": 1,
        "isActive": True,
        "eventQueueSize": 0,
        "channelQueueSizes": {},
        "zooKeeperProblem": "refused",
        "unreachedBrokers": {"3": "BROKERS://h:1 as User:regent: no; see a file"},
        "endpoint": {
            "served": {},
            "listenersNotServed": {},
            "problem": "the certificate in /c.pem expired",
            "refusedPeers": [peer, unnamed],
        },
    }
    lines = [line.strip() for line in render_status(report(regent=regent)).splitlines()]
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
    regent = {
        "controllerId": 1000, "isActive": False, "refusal": command, "eventQueueSize": 0,
        "channelQueueSizes": {},
    }  # fmt: skip
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


def test_of_many_znodes_that_cannot_be_read_the_first_are_named() -> None:
    output = render_status(report(problems=[f"/brokers/topics/t: {n}: x" for n in range(3_000)]))
    lines = [line for line in output.splitlines() if line.startswith("Unreadable")]
    assert len(lines) == 51
    assert lines[-1] == "Unreadable  and 2,950 more, which --json names"
