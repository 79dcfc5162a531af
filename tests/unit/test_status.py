"""What ``regent status`` prints of what a Regent tells."""

from __future__ import annotations

from typing import Any

import pytest

from regent.status import print_status


def report(**regent: Any) -> dict[str, Any]:
    """A report of a Regent that is the controller."""
    return {
        "controller": {"id": 1_000_000_001, "epoch": 7, "kind": "regent"},
        "brokers": [],
        "partitions": {
            "topics": 1,
            "total": 1,
            "online": 1,
            "offline": 0,
            "new": 0,
            "underReplicated": 0,
        },
        "problems": [],
        "regent": {
            "controllerId": 1_000_000_001,
            "isActive": True,
            "eventQueueSize": 0,
            "channelQueueSizes": {},
        }
        | regent,
    }


def test_refused_replicas_are_named_and_the_rest_is_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sample = [{"topic": "orders", "partition": 3, "broker_id": 2, "error": "UNKNOWN_SERVER_ERROR"}]
    print_status(
        report(
            refusedReplicas={"count": 5, "sample": sample},
            refusedMetadata={"2": "CLUSTER_AUTHORIZATION_FAILED"},
        )
    )
    text = capsys.readouterr().out
    assert "broker 2 refuses orders-3: UNKNOWN_SERVER_ERROR" in text
    assert "and 4 replicas more" in text
    assert "broker 2 refuses metadata: CLUSTER_AUTHORIZATION_FAILED" in text


def test_an_earlier_regent_does_not_tell_of_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    print_status(report())
    assert "Refused" not in capsys.readouterr().out


def test_why_a_regent_leaves_the_cluster_alone_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    print_status(report(isActive=False, refusal="there is no Kafka cluster"))
    assert "Left alone  there is no Kafka cluster" in capsys.readouterr().out
