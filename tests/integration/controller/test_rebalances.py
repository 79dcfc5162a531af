"""spec.rebalance with real brokers, a real API server, and the planner as a child process: where
Regent is the controller, and where a broker is."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import pytest

from regent.reconcile.reassignments.move_plan import MovePlan, read_plan
from sandbox import KubernetesApi
from sandbox.errors import SandboxError
from sandbox.regent_process import RegentProcess
from tests.integration.controller.test_partition_reassignments import (
    reassignment,
)
from tests.support.cluster import Cluster, regent
from tests.support.clusters import Clusters
from tests.support.figures import Figure
from tests.support.metadata import Partition
from tests.support.reassigning import (
    create_topic,
    wait_for_hosts,
    wait_until_moved,
)
from tests.support.resources import Resources, condition
from tests.support.soak import soak

pytestmark = pytest.mark.integration

PARTITIONS = 18

_CREATED = re.compile(r"Created log for partition (\S+)-(\d+) ")


class Side(NamedTuple):
    """Who is the controller, of brokers of which version."""

    mode: str
    version: str


@pytest.fixture(
    scope="module",
    params=[
        Side("controller", "3.9.1"),
        pytest.param(Side("client", "3.9.1"), marks=pytest.mark.slow),
        pytest.param(Side("client", "2.4.1"), marks=[pytest.mark.slow, soak("versions")]),
    ],
    ids="-".join,
)
def side(request: pytest.FixtureRequest) -> Side:
    given: Side = request.param
    return given


@pytest.fixture(scope="module")
def cluster(side: Side, clusters: Clusters) -> Cluster:
    cluster = clusters.healthy(side.version)
    return cluster.in_client_mode() if side.mode == "client" else cluster


@pytest.fixture(scope="module")
def moves(side: Side, kubernetes: KubernetesApi) -> Resources:
    """The PartitionReassignments of a namespace of its own."""
    namespace = f"rebalances-{side.mode}-{side.version.replace('.', '-')}"
    return Resources(kubernetes, namespace, kind="reassignment")


@pytest.fixture(scope="module")
def process(side: Side, cluster: Cluster, moves: Resources) -> Iterator[RegentProcess]:
    """A Regent that serves the namespace, and is the controller if it is to be."""
    with regent(cluster, kubeconfig=moves.api.kubeconfig, namespace=moves.namespace) as started:
        if side.mode == "controller":
            started.wait_until_active()
        yield started


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


def created_logs(cluster: Cluster, targets: Collection[Partition]) -> Counter[tuple[str, int, int]]:
    """How often each broker has created a log for these partitions: topic, partition, broker."""
    found = Counter(
        (topic, int(number), broker.broker_id)
        for broker in cluster.running
        for topic, number in _CREATED.findall(broker.log_path.read_text())
    )
    return Counter({each: count for each, count in found.items() if each[:2] in targets})


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
    side: Side, cluster: Cluster, moves: Resources, process: RegentProcess, figure: Figure
) -> None:
    skewed = f"skewed-{side.mode}"  # the logs of the brokers have what both sides did
    create_topic(cluster, skewed, {p: [1, 2] for p in range(PARTITIONS)})
    produce(cluster, skewed, 3000)
    before = {topic: cluster.znodes.assignment(topic) for topic in cluster.znodes.topics()}

    for name in ("balance", "twin"):
        moves.apply(reassignment(name, rebalance={}))
    status, plan = wait_for_plan(moves, "balance")
    assert wait_for_plan(moves, "twin")[0]["plan"] == status["plan"], "the same plan, and hash"
    assert {topic: cluster.znodes.assignment(topic) for topic in before} == before
    assert status["rebalance"]["lowerBound"] == status["plan"]["replicaMoves"] > 0
    assert status["rebalance"]["bytes"] > 0
    assert "unmetGoals" not in status["rebalance"]
    controller = cluster.znodes.controller()

    moves.patch("balance", approval={"planHash": status["plan"]["hash"]})
    done = moves.wait_until_true("balance", "Completed")
    assert done["plan"] == status["plan"]
    assert done["rebalance"] == status["rebalance"]
    targets = {(m.topic, m.partition): list(m.target) for m in plan.moves}
    wait_until_moved(cluster, targets)
    wait_for_hosts(cluster, targets)
    # Other modules of tests may have moved the partitions of internal topics before.
    own = [move for move in plan.moves if move.topic == skewed]
    created = created_logs(cluster, {(move.topic, move.partition) for move in own})
    assert created == Counter(
        (m.topic, m.partition, broker) for m in own for broker in {*m.replicas, *m.target}
    ), "each replica of the plan was copied once, and nothing else was"
    assert cluster.znodes.controller() == controller
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
    assert moves.wait_until_true("twin", "Completed")["plan"]["partitions"] == 0


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

    rates = {"goals": ["RackAwareGoal", "NetworkInboundUsageDistributionGoal"]}
    with pytest.raises(SandboxError, match="goals of networks need history"):
        moves.apply(reassignment("rates", rebalance=rates))
    moves.apply(reassignment("rates", rebalance={**rates, "history": {"percentile": 99}}))
    found = moves.wait_for_condition("rates", "Reconciling", "True", "HistoryUnusable")
    assert "planner_history says where samples are" in found["message"]
    assert "plan" not in moves.get("rates")["status"]

    leaders = {
        "goals": ["MinTopicLeadersPerBrokerGoal"],
        "minTopicLeadersPerBroker": {"no-such-topic": 1},
    }
    moves.apply(reassignment("unknown", rebalance=leaders))
    moves.wait_for_condition("unknown", "Stalled", "True", "InvalidRebalance")
    found = condition(moves.get("unknown"), "Ready")
    assert "the snapshot has no topic 'no-such-topic'" in found["message"]
    moves.delete("nowhere", "unknown", "rates")


def test_absent_brokers_and_topics_are_remarks_of_a_plan(
    cluster: Cluster, moves: Resources, process: RegentProcess
) -> None:
    absent = {"drainedBrokers": [77], "excludedBrokers": [78], "pinnedTopics": ["no-such-topic"]}
    goals = {"goals": ["RackAwareGoal"], **absent}
    moves.apply(reassignment("absent", rebalance=goals))
    remarks = moves.wait_until_true("absent", "Completed")["rebalance"]["remarks"]
    assert [remark.split(",")[0] for remark in remarks if "has no" in remark] == [
        "drained brokers: the snapshot has no broker 77",
        "excluded brokers: the snapshot has no broker 78",
        "pinned topics: the snapshot has no topic no-such-topic",
    ]
    moves.delete("absent")


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
