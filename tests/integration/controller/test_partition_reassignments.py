"""PartitionReassignments against real brokers and a real API server."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from sandbox.errors import SandboxError
from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster
from tests.support.figures import Figure
from tests.support.reassigning import (
    create_topic,
    under_way,
    wait_for_hosts,
    wait_until_moved,
)
from tests.support.resources import Resources, condition
from tests.support.soak import soak
from tests.support.throttling import bytes_on, held_back, produce, throttles

pytestmark = [pytest.mark.integration]


@pytest.fixture(scope="module")
def moves(resources: Resources) -> Resources:
    """The PartitionReassignments of the module's namespace."""
    return resources.of("reassignment")


def reassignment(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kafka.regent.dev/v1alpha1",
        "kind": "PartitionReassignment",
        "metadata": {"name": name},
        "spec": spec,
    }


def assign(topic: str, targets: dict[int, list[int]]) -> list[dict[str, Any]]:
    return [
        {"topic": topic, "partition": partition, "replicas": replicas}
        for partition, replicas in targets.items()
    ]


def test_exactly_the_plan_that_was_approved_is_executed(
    cluster: Cluster, moves: Resources, process: RegentProcess
) -> None:
    create_topic(cluster, "approved", {p: [1, 2] for p in range(6)})
    targets = {p: [3, 1] if p % 2 else [2, 3] for p in range(6)}
    moves.apply(reassignment("approved", assignments=assign("approved", targets)))
    found = moves.wait_for_condition("approved", "Stalled", "True", "ApprovalNeeded")
    status = moves.get("approved")["status"]
    assert status["plan"]["hash"] in found["message"]
    assert (status["phase"], status["summary"]) == ("AwaitingApproval", "0/6")
    assert (status["plan"]["partitions"], status["plan"]["replicaMoves"]) == (6, 6)
    assert cluster.znodes.assignment("approved") == {p: [1, 2] for p in range(6)}

    moves.patch("approved", approval={"planHash": status["plan"]["hash"]})
    done = moves.wait_until_true("approved", "Completed")
    assert done["plan"] == status["plan"]
    assert (done["phase"], done["summary"]) == ("Completed", "6/6")
    assert condition({"status": done}, "Ready")["reason"] == "Reassigned"
    wait_until_moved(cluster, {("approved", p): r for p, r in targets.items()})
    wait_for_hosts(cluster, {("approved", p): r for p, r in targets.items()})
    expected = [
        "ApprovalNeeded",
        "ReassignmentCompleted",
        "ReassignmentPlanned",
        "ReassignmentStarted",
    ]
    assert sorted(moves.wait_for_events("approved", *expected)) == expected, "each Event once"

    version = moves.get("approved")["metadata"]["resourceVersion"]
    moves.patch("approved", approval={"planHash": status["plan"]["hash"]})
    assert moves.get("approved")["metadata"]["resourceVersion"] == version, "nothing to write"


def test_the_replication_factor_grows_and_shrinks(
    cluster: Cluster, moves: Resources, process: RegentProcess
) -> None:
    create_topic(cluster, "factor", {p: [1 + p % 3] for p in range(6)})
    automatic = {"policy": "Automatic"}
    moves.apply(reassignment("grow", replicationFactor={"factor": 3}, approval=automatic))
    moves.wait_until_true("grow", "Completed")
    grown = cluster.znodes.assignment("factor") or {}
    assert {p: (r[0], sorted(r)) for p, r in grown.items()} == {
        p: (1 + p % 3, [1, 2, 3]) for p in range(6)
    }
    moves.apply(reassignment("shrink", replicationFactor={"factor": 2}, approval=automatic))
    moves.wait_until_true("shrink", "Completed")
    shrunk = cluster.znodes.assignment("factor") or {}
    assert {p: (r[0], len(r)) for p, r in shrunk.items()} == {p: (1 + p % 3, 2) for p in range(6)}
    loads = Counter(broker for replicas in shrunk.values() for broker in replicas)
    assert loads == {1: 4, 2: 4, 3: 4}


def test_mistakes_are_refused_by_the_api_server_or_all_named_at_once(
    cluster: Cluster, moves: Resources, process: RegentProcess
) -> None:
    create_topic(cluster, "mistaken", {0: [1, 2]})
    good = assign("mistaken", {0: [1, 3]})
    for spec, text in (
        ({}, "set exactly one of assignments, planJSON, replicationFactor, rebalance"),
        ({"assignments": good, "replicationFactor": {"mistaken": 1}}, "set exactly one of"),
        ({"assignments": good, "rebalance": {}}, "set exactly one of"),
        ({"rebalance": {"goals": ["CpuUsageDistributionGoal"]}}, "Unsupported value"),
        ({"rebalance": {"drainedBrokers": [1, 1]}}, "Duplicate value"),
        ({"assignments": good, "throttel": 1}, 'unknown field "spec.throttel"'),
        ({"assignments": assign("mistaken", {0: [1, 1]})}, "Duplicate value"),
        ({"replicationFactor": {"mistaken": 0}}, "greater than or equal to 1"),
        ({"assignments": good, "approval": {"planHash": "yes"}}, "planHash"),
        ({"assignments": good, "undoWindowSeconds": -1}, "greater than or equal to 0"),
        ({"assignments": good, "ttlSecondsAfterFinished": -1}, "greater than or equal to 0"),
    ):
        with pytest.raises(SandboxError, match=re.escape(text)):
            moves.create(reassignment("mistaken", **spec))
    bad = [*assign("mistaken", {0: [1, 9], 7: [1]}), *assign("nowhere", {0: [1]})]
    moves.apply(reassignment("mistaken", assignments=bad))
    moves.wait_for_condition("mistaken", "Reconciling", "True", "UnknownTopic")
    problems = moves.get("mistaken")["status"]["problems"]
    assert [problem["reason"] for problem in problems] == [
        "UnknownTopic",
        "UnknownTopic",
        "BrokersUnavailable",
    ]
    with pytest.raises(SandboxError, match="assignments is immutable"):
        moves.patch("mistaken", assignments=good)
    assert cluster.znodes.assignment("mistaken") == {0: [1, 2]}
    moves.delete("mistaken")


def test_a_cancelled_reassignment_goes_back_to_where_it_was(
    cluster: Cluster, moves: Resources, process: RegentProcess
) -> None:
    origin = {p: [2, 1] for p in range(4)}
    create_topic(cluster, "cancelled", origin)
    moves.apply(
        reassignment(
            "cancelled",
            assignments=assign("cancelled", {p: [3, 2] for p in origin}),
            approval={"policy": "Automatic"},
            desiredState="Paused",
        )
    )
    moves.wait_for_condition("cancelled", "Ready", "True", "Paused")
    with held_back(cluster, "cancelled", 3):
        moves.patch("cancelled", desiredState="Running")
        cluster.wait(lambda: under_way(cluster, "cancelled"), "the moves to be under way")
        cluster.broker(3).pause()
        cluster.broker(3).end_session()
        try:
            moves.wait_for_condition("cancelled", "Reconciling", "True", "BrokersUnavailable")
            found = condition(moves.get("cancelled"), "Ready")
            assert "brokers [3] are not alive" in found["message"]
            moves.patch("cancelled", desiredState="Cancelled")
            moves.wait_for_condition("cancelled", "Ready", "True", "ReassignmentCancelled")
        finally:
            cluster.broker(3).resume()
    assert cluster.znodes.assignment("cancelled") == origin
    assert not under_way(cluster, "cancelled")
    cluster.wait(
        lambda: cluster.znodes.broker_ids(), "broker 3 to be back", until=lambda ids: 3 in ids
    )
    cluster.wait_in_sync("cancelled")

    moves.patch("cancelled", desiredState="Running")
    moves.wait_until_true("cancelled", "Completed")
    assert cluster.znodes.assignment("cancelled") == {p: [3, 2] for p in origin}


def test_copies_are_throttled_by_the_brokers_and_not_when_they_have_arrived(
    cluster: Cluster, moves: Resources, process: RegentProcess, figure: Figure
) -> None:
    create_topic(cluster, "throttled", {0: [1]})
    size = 64_000_000
    produce(cluster, "throttled", size)
    moves.apply(
        reassignment(
            "throttled",
            assignments=assign("throttled", {0: [2]}),
            approval={"policy": "Automatic"},
            throttle={"bytesPerSecond": 1024},
        )
    )
    copied = cluster.wait(
        lambda: bytes_on(cluster, 2, "throttled-0"), "the copy to begin", interval_s=0.02
    )
    assert under_way(cluster, "throttled"), "it was copied as if there were no throttle"
    figure("bytes copied under the throttle", f"{copied:,} of {size:,}")
    assert throttles(cluster, "throttled") == {
        "throttled": {
            "leader.replication.throttled.replicas": "0:1",
            "follower.replication.throttled.replicas": "0:2",
        },
        "broker 1": {"leader.replication.throttled.rate": "1024"},
        "broker 2": {"follower.replication.throttled.rate": "1024"},
        "topics": ["throttled"],
        "brokers": ["1", "2"],
    }
    cluster.kill_regent(process)
    process.start()
    process.wait_until_active()
    assert throttles(cluster, "throttled")["topics"] == ["throttled"]
    moves.patch("throttled", throttle={"bytesPerSecond": 1_000_000_000})
    moves.wait_until_true("throttled", "Completed")
    assert throttles(cluster, "throttled") == {}
    wait_for_hosts(cluster, {("throttled", 0): [2]})


def test_a_regent_that_is_killed_goes_on_with_the_same_plan_and_copies_nothing_twice(
    cluster: Cluster, moves: Resources, process: RegentProcess, figure: Figure
) -> None:
    partitions = 60
    create_topic(cluster, "killed", {p: [1 + p % 2] for p in range(partitions)})
    targets = {p: [3] for p in range(partitions)}
    create_topic(cluster, "slow", {0: [1]})
    plan = reassignment(
        "killed",
        assignments=[*assign("killed", targets), *assign("slow", {0: [3]})],
        approval={"policy": "Automatic"},
        concurrency={"total": 4},
    )

    def arrived() -> int:
        return list((cluster.znodes.assignment("killed") or {}).values()).count([3])

    at_kills: list[int] = []
    with held_back(cluster, "slow", 3):
        moves.apply(plan)
        for least in (5, 25):
            cluster.wait(
                arrived, f"{least} to arrive", until=lambda n, at=least: n >= at, interval_s=0.02
            )
            cluster.kill_regent(process)
            at_kills.append(arrived())
            process.start()
            process.wait_until_active()
        assert moves.get("killed")["status"]["phase"] != "Completed"
    status = moves.wait_until_true("killed", "Completed")
    figure("partitions that had arrived at the kills", f"{at_kills} of {partitions}")
    assert status["summary"] == f"{partitions + 1}/{partitions + 1}"
    reasons = moves.wait_for_events("killed", "ReassignmentCompleted")
    # One that was not sent yet is lost with the process.
    assert reasons.count("ReassignmentStarted") <= 1
    moved = {("slow", 0): [3], **{("killed", p): r for p, r in targets.items()}}
    wait_until_moved(cluster, moved)
    log = cluster.broker(3).log_path.read_text()
    created = Counter(re.findall(r"Created log for partition ((?:killed|slow)-\d+) ", log))
    assert created == {f"{topic}-{p}": 1 for topic, p in moved}


@soak("controller")  # Regent waits half a minute for a silent broker
def test_the_status_says_how_many_bytes_are_copied_how_fast_and_until_when(
    cluster: Cluster, moves: Resources, process: RegentProcess, figure: Figure
) -> None:
    create_topic(cluster, "measured", {0: [1]})
    size, rate = 64_000_000, 250_000
    produce(cluster, "measured", size)
    moves.apply(
        reassignment(
            "measured",
            assignments=assign("measured", {0: [2]}),
            approval={"policy": "Automatic"},
            throttle={"bytesPerSecond": rate},
        )
    )

    def progress() -> dict[str, Any]:
        found: dict[str, Any] = moves.get("measured").get("status", {}).get("progress", {})
        return found

    found = cluster.wait(progress, "a rate", until=lambda each: each.get("bytesPerSecond", 0) > 0)
    figure(
        "bytes, of all, a second", [found[f"bytes{n}"] for n in ("Copied", "Total", "PerSecond")]
    )
    assert found["bytesTotal"] == bytes_on(cluster, 1, "measured-0") >= size
    assert 0 < found["bytesCopied"] < found["bytesTotal"]
    assert found["estimatedEnd"] > moves.get("measured")["status"]["startedAt"]

    cluster.broker(2).pause()
    try:
        silent = cluster.wait(
            progress, "the figures to be left out", until=lambda each: "bytesUnknown" in each
        )
    finally:
        cluster.broker(2).resume()
    assert "broker 2 does not say" in silent["bytesUnknown"]
    assert "bytesTotal" not in silent
    cluster.wait(progress, "figures again", until=lambda each: "bytesTotal" in each)
    moves.patch("measured", throttle={"bytesPerSecond": 1_000_000_000})
    done = moves.wait_until_true("measured", "Completed")["progress"]
    assert done["bytesCopied"] == done["bytesTotal"] == found["bytesTotal"]
    assert "estimatedEnd" not in done


def test_what_was_moved_is_undone_after_a_kill_and_the_resource_goes_when_its_time_is_over(
    cluster: Cluster, moves: Resources, process: RegentProcess
) -> None:
    origin = {p: [1 + p % 2, 3] for p in range(40)}
    create_topic(cluster, "undone", origin)
    targets = {p: [3, 1 + p % 2] if p % 4 == 0 else [2 - p % 2, 3] for p in origin}
    moves.apply(
        reassignment(
            "undone",
            assignments=assign("undone", targets),
            approval={"policy": "Automatic"},
            concurrency={"total": 2},
        )
    )
    done = moves.wait_until_true("undone", "Completed")
    wait_until_moved(cluster, {("undone", p): r for p, r in targets.items()})
    assert done["plan"]["document"]

    moves.patch("undone", desiredState="Undone")

    def back() -> int:
        found = cluster.znodes.assignment("undone") or {}
        return sum(found[p] == origin[p] for p in origin)

    cluster.wait(back, "some to be back", until=lambda n: n >= 5, interval_s=0.02)
    cluster.kill_regent(process)
    process.start()
    process.wait_until_active()
    moves.wait_for_condition("undone", "Ready", "True", "ReassignmentUndone")
    status = moves.get("undone")["status"]
    assert status["phase"] == "Undone"
    assert "document" not in status["plan"]
    assert cluster.znodes.assignment("undone") == origin
    wait_until_moved(cluster, {("undone", p): r for p, r in origin.items()})
    reasons = moves.wait_for_events("undone", "ReassignmentUndone")
    assert reasons.count("ReassignmentUndone") == 1

    moves.patch("undone", ttlSecondsAfterFinished=0)
    moves.wait_gone("undone")


def test_a_reassignment_that_was_completed_too_long_ago_is_not_undone(
    cluster: Cluster, moves: Resources, process: RegentProcess
) -> None:
    create_topic(cluster, "late", {0: [1, 2]})
    moves.apply(
        reassignment(
            "late",
            assignments=assign("late", {0: [3, 2]}),
            approval={"policy": "Automatic"},
            undoWindowSeconds=0,
        )
    )
    moves.wait_until_true("late", "Completed")
    moves.patch("late", desiredState="Undone")
    found = moves.wait_for_condition("late", "Stalled", "True", "UndoWindowOver")
    assert "create another PartitionReassignment for the way back" in found["message"]
    assert cluster.znodes.assignment("late") == {0: [3, 2]}
    moves.patch("late", desiredState="Running")
    moves.wait_for_condition("late", "Ready", "True", "Reassigned")
