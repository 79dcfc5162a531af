"""Snapshot files, as ``regent snapshot`` writes them and as people do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from regent.model.errors import ConfigurationError
from regent.planning.snapshot import Snapshot, SnapshotBroker, SnapshotPartition, SnapshotTopic
from regent.planning.snapshot_reading import decode_snapshot

SNAPSHOT = Snapshot(
    (SnapshotBroker(1, "a", True, 100), SnapshotBroker(2, None, False)),
    (
        SnapshotPartition("orders", 0, (1, 2), 1, (5, -1), (1,)),
        SnapshotPartition("orders", 1, (2,), -1, (-1,)),
    ),
    topics={"orders": SnapshotTopic(2)},
)


def test_what_is_written_can_be_read() -> None:
    assert decode_snapshot(SNAPSHOT.encode(), source="file") == SNAPSHOT


def test_what_may_be_left_out() -> None:
    content = {
        "version": 1,
        "brokers": [{"id": 2}, {"id": 1, "rack": ""}],
        "partitions": [
            {"topic": "b", "partition": 0, "replicas": [2, 1]},
            {"topic": "a", "partition": 0, "replicas": [1]},
        ],
    }
    assert decode_snapshot(json.dumps(content).encode(), source="file") == Snapshot(
        (SnapshotBroker(1, None, True), SnapshotBroker(2, None, True)),
        (
            SnapshotPartition("a", 0, (1,), 1, (-1,)),
            SnapshotPartition("b", 0, (2, 1), 2, (-1, -1)),
        ),
    )


def test_what_only_the_planner_needs_may_be_there() -> None:
    content = {
        "version": 1,
        "brokers": [
            {"id": 1, "networkInBytes": 125, "networkOutBytes": 125, "logDirs": None},
            {"id": 2, "networkInBytes": None},
        ],
        "partitions": [
            {"topic": "a", "partition": 0, "replicas": [1], "bytesIn": 1, "bytesOut": 3}
        ],
        "notes": ["a note"],
    }
    assert decode_snapshot(json.dumps(content).encode(), source="file") == Snapshot(
        (SnapshotBroker(1, None, True), SnapshotBroker(2, None, True)),
        (SnapshotPartition("a", 0, (1,), 1, (-1,)),),
    )


def partition(**changed: Any) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "replicas": [1, 2], **changed}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (partition(replicas=[]), "t-0: has no replicas"),
        (partition(partition=2**31), r"t-2147483648: a partition's number"),
        (partition(topic="\x1b[2J"), r"'\\x1b\[2J'-0: is of no legal topic"),
        (partition(replicas=[1, 1]), "t-0: replicas .* name a broker twice"),
        (partition(replicas=[1, 9]), "t-0: broker 9 has a replica and is not among the brokers"),
        (partition(leader=3), "t-0: leader 3 has no replica"),
        (partition(sizes=[1]), "t-0: 1 sizes for 2 replicas"),
        (partition(isr=[]), "t-0: isr .* is empty"),
        (partition(isr=[1, 1]), "t-0: isr .* twice"),
        (partition(isr=[1, 3]), "t-0: broker 3 is in its isr and has no replica"),
        (partition(isr=[2]), "t-0: leader 1 is not in its isr"),
        (partition(partition=-1), "t--1: a partition's number"),
        (partition(topic="a/b"), "a/b-0: is of no legal topic"),
    ],
)
def test_a_partition_that_cannot_be(changed: dict[str, Any], message: str) -> None:
    content = {"version": 1, "brokers": [{"id": 1}, {"id": 2}, {"id": 3}], "partitions": [changed]}
    with pytest.raises(ConfigurationError, match=f"^file: {message}"):
        decode_snapshot(json.dumps(content).encode(), source="file")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"version": 2}, "file: snapshots of version 2 are not known"),
        ({"brokers": []}, "file names no brokers"),
        ({"brokers": [{"id": 1}, {"id": 1}]}, "file: broker 1 is listed twice"),
        ({"brokers": [{"id": -1}]}, "file: broker -1: ids are from 0"),
        ({"brokers": [{"id": 2**31}]}, "file: broker 2147483648: ids are from 0 to 2147483647"),
        ({"partitions": [partition(), partition()]}, "file: t-0: is listed twice"),
        ({"topics": {"t": {"minIsr": 0}}}, "file: topic t: minIsr 0 is below 1"),
        ({"partitions": 5}, "file is no snapshot: .* regent snapshot -o"),
        ({"topics": {"\x1b[2J": {"minIsr": 0}}}, r"file: topic '\\x1b\[2J': minIsr 0"),
        (
            {"brokers": [{"id": 1, "rack": "\x1b[2J"}]},
            r"file: broker 1: rack '\\x1b\[2J' has a control character",
        ),
    ],
)
def test_a_file_that_cannot_be(changed: dict[str, Any], message: str) -> None:
    content = {"version": 1, "brokers": [{"id": 1}, {"id": 2}], "partitions": [], **changed}
    with pytest.raises(ConfigurationError, match=message):
        decode_snapshot(json.dumps(content).encode(), source="file")


def test_a_file_that_is_no_json() -> None:
    with pytest.raises(ConfigurationError, match=r"file is no snapshot"):
        decode_snapshot(b"PAR1", source="file")
    with pytest.raises(ConfigurationError, match=r"file is no snapshot"):
        decode_snapshot(b'{"more":' + b"[" * 100_000, source="file")
