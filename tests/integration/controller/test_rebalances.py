"""spec.rebalance with real brokers, a real API server, and the planner as a child process."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from regent.reconcile.reassignments.move_plan import MovePlan, read_plan
from sandbox.errors import SandboxError
from sandbox.regent_process import RegentProcess
from tests.integration.controller.cluster import Cluster, cluster_of
from tests.integration.controller.reassigning import (
    create_topic,
    wait_for_hosts,
    wait_until_moved,
)
from tests.integration.controller.resources import Resources, condition
from tests.integration.controller.test_partition_reassignments import (
    reassignment,
    wait_completed,
)
from tests.support.figures import Figure

pytestmark = pytest.mark.integration

PARTITIONS = 18


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Brokers of the module's own: a plan is for all topics, also those that other tests leave."""
    with cluster_of("3.9.1") as own:
        own.wait_for_a_broker_as_controller()
        yield own


@pytest.fixture(scope="module")
def moves(resources: Resources) -> Resources:
    """The PartitionReassignments of the module's namespace."""
    return Resources(resources.api, resources.namespace, kind="reassignment")


def produce(cluster: Cluster, topic: str, records: int) -> None:
    cluster.tools.run(
        "kafka-producer-perf-test",
        f"--topic={topic}",
        f"--num-records={records}",
        "--record-size=1000",
        "--throughput=-1",
        "--producer-props",
        f"bootstrap.servers={cluster.tools.bootstrap_servers}",
        "acks=all",
    )


def wait_for_plan(moves: Resources, name: str) -> tuple[dict[str, Any], MovePlan]:
    """The status of a resource that waits for approval, and its plan."""
    moves.wait_for_condition(name, "Stalled", "True", "ApprovalNeeded")
    status: dict[str, Any] = moves.get(name)["status"]
    stored = status["plan"]
    return status, read_plan(stored["document"], expected_hash=stored["hash"])


def counts(cluster: Cluster) -> tuple[Counter[int], Counter[int]]:
    """Replicas, and leaders, by broker, of the whole cluster."""
    leaderships = cluster.leaderships().values()
    return (
        Counter(broker for each in leaderships for broker in each.replicas),
        Counter(each.leader for each in leaderships),
    )


def limits(total: int, brokers: int) -> range:
    """What brokers may have with a threshold of 1.10, see docs/planner.md."""
    average = total / brokers
    return range(math.floor(0.91 * average), math.ceil(1.09 * average) + 1)


def test_a_skewed_cluster_is_balanced_by_the_plan_that_was_approved(
    cluster: Cluster, moves: Resources, process: RegentProcess, figure: Figure
) -> None:
    create_topic(cluster, "skewed", {p: [1, 2] for p in range(PARTITIONS)})
    produce(cluster, "skewed", 3000)
    before = {topic: cluster.znodes.assignment(topic) for topic in cluster.znodes.topics()}

    for name in ("balance", "twin"):
        moves.apply(reassignment(name, rebalance={}))
    status, plan = wait_for_plan(moves, "balance")
    assert wait_for_plan(moves, "twin")[0]["plan"] == status["plan"], "the same plan, and hash"
    assert {topic: cluster.znodes.assignment(topic) for topic in before} == before
    assert status["rebalance"]["lowerBound"] == status["plan"]["replicaMoves"] > 0
    assert status["rebalance"]["bytes"] > 0
    assert "unmetGoals" not in status["rebalance"]

    moves.patch("balance", approval={"planHash": status["plan"]["hash"]})
    done = wait_completed(moves, "balance")
    assert done["plan"] == status["plan"]
    assert done["rebalance"] == status["rebalance"]
    targets = {(m.topic, m.partition): list(m.target) for m in plan.moves}
    wait_until_moved(cluster, targets)
    wait_for_hosts(cluster, targets)
    leaderships = cluster.leaderships()
    assert {tp: leaderships[tp].leader for tp in targets} == {
        tp: replicas[0] for tp, replicas in targets.items()
    }
    replicas, leaders = counts(cluster)
    figure("replicas by broker", dict(sorted(replicas.items())))
    figure("leaders by broker", dict(sorted(leaders.items())))
    assert set(replicas.values()) <= set(limits(replicas.total(), 3))
    assert set(leaders.values()) <= set(limits(leaders.total(), 3))

    # Its partitions have moved, so the other plan is made again: nothing is left to be moved.
    assert wait_completed(moves, "twin")["plan"]["partitions"] == 0


def test_what_the_planner_cannot_do_is_said_in_its_words(
    cluster: Cluster, moves: Resources, process: RegentProcess
) -> None:
    create_topic(cluster, "two", {0: [1, 2]})
    moves.apply(reassignment("nowhere", rebalance={"drainedBrokers": [1, 2]}))
    moves.wait_for_condition("nowhere", "Stalled", "True", "GoalsInfeasible")
    problems = moves.get("nowhere")["status"]["problems"]
    assert {each["field"] for each in problems} == {"spec.rebalance"}
    assert any("broker" in each["message"] for each in problems)
    with pytest.raises(SandboxError, match="rebalance is immutable"):
        moves.patch("nowhere", rebalance={"drainedBrokers": [1]})

    moves.apply(reassignment("unknown", rebalance={"excludedBrokers": [77]}))
    moves.wait_for_condition("unknown", "Stalled", "True", "InvalidRebalance")
    found = condition(moves.get("unknown"), "Ready")
    assert "the snapshot has no broker 77" in found["message"]
    moves.delete("nowhere", "unknown")


def test_a_broker_that_is_down_is_waited_for_and_nothing_is_moved_off_it(
    cluster: Cluster, moves: Resources, process: RegentProcess
) -> None:
    create_topic(cluster, "waiting", {p: [1, 3] for p in range(6)})
    cluster.kill_broker(3)
    try:
        moves.apply(reassignment("patient", rebalance={}))
        moves.wait_for_condition("patient", "Reconciling", "True", "BrokersUnavailable")
        assert "plan" not in moves.get("patient")["status"]
    finally:
        cluster.broker(3).start()
    moves.wait_for_condition("patient", "Reconciling", "False")
    assert moves.get("patient")["status"]["phase"] in ("AwaitingApproval", "Completed")
    moves.delete("patient")
