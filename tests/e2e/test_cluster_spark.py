"""A rebalance whose plan is made in pods, by the real Spark operator, while Regents are killed.

The tests follow the life of one installation, in the order of the file; the last one ends it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kazoo.client import KazooClient

from regent.reconcile.reassignments.move_plan import MovePlan, read_plan
from sandbox import ManagedProcess, wait_until
from sandbox.node.installation import BROKER_PODS, KafkaPods, RegentRelease, SparkOperator
from sandbox.node.layers import Image
from sandbox.node.planner import planner_image
from tests.support.cluster_znodes import assignments, controller, leaderships, moving
from tests.support.helm_chart import ROOT
from tests.support.soak import soak

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    soak("spark"),
]

EXAMPLES = ROOT / "examples"
TOPIC = "events"
PARTITIONS = 12
RECORDS, RECORD_BYTES = 6_000, 8_000
BYTES_PER_SECOND = 200_000
OPTIONS = (
    *("--goal", "RackAwareGoal", "--goal", "ReplicaDistributionGoal"),
    *("--goal", "LeaderReplicaDistributionGoal"),
    *("--replica-balance", "1.0", "--leader-balance", "1.0"),
)
"""What the example says, for the planner's command line."""

JOBS = "sparkapplications.sparkoperator.k8s.io"
DRIVERS = "--selector=spark-role=driver"


@pytest.fixture(scope="module")
def planner() -> Image:
    return planner_image()


@pytest.fixture(scope="module")
def spark(kafka: KafkaPods, planner: Image) -> SparkOperator:
    operator = SparkOperator(kafka)
    operator.install(planner)
    return operator


@pytest.fixture(scope="module")
def regent(kafka: KafkaPods, spark: SparkOperator, planner: Image) -> RegentRelease:
    release = RegentRelease(kafka)
    release.install(**{"planner.spark": {"enabled": True, "images": [planner.name]}})
    return release


@pytest.fixture(scope="module")
def topic(regent: RegentRelease, kafka: KafkaPods) -> str:
    """A topic with records whose replicas are all on two of three brokers."""
    kafka.kubectl("apply", "-f", EXAMPLES / "kafkatopic-two-brokers.yaml")
    kafka.kubectl("wait", "--for=condition=Ready", "--timeout=120s", f"ktopic/{TOPIC}")
    # from here on the topic's place is not declared
    remove = json.dumps([{"op": "remove", "path": "/spec/replicaAssignment"}])
    kafka.kubectl("patch", "ktopic", TOPIC, "--type=json", "--patch", remove)
    kafka.kubectl(
        *("exec", BROKER_PODS[1], "--", "kafka-producer-perf-test", "--topic", TOPIC),
        *("--num-records", str(RECORDS), "--record-size", str(RECORD_BYTES), "--throughput", "-1"),
        *("--producer-props", "bootstrap.servers=kafka-a-0.kafka:9092", "acks=all"),
    )
    return TOPIC


class Jobs:
    """Every SparkApplication of a namespace that there ever is, from now on."""

    def __init__(self, kafka: KafkaPods, log: Path) -> None:
        cluster = kafka.cluster
        self._process = ManagedProcess(
            "kubectl get sparkapplications --watch",
            [
                *(cluster.binaries.path("kubectl"), "--kubeconfig", cluster.kubeconfig),
                *("--namespace", kafka.namespace, "get", JOBS, "--watch"),
                *("--output-watch-events", "--output=json"),
            ],
            log_path=log,
        )

    def start(self) -> None:
        self._process.start()

    def stop(self) -> None:
        self._process.kill()

    def seen(self) -> set[str]:
        """Names and uids."""
        found, text, decoder = set(), self._process.log_of_this_run(), json.JSONDecoder()
        while (text := text.lstrip()).startswith("{"):
            try:
                event, end = decoder.raw_decode(text)
            except json.JSONDecodeError:
                break  # the last one is being written
            metadata = event["object"]["metadata"]
            found.add(f"{metadata['name']} {metadata['uid']}")
            text = text[end:]
        return found


@pytest.fixture
def jobs(
    kafka: KafkaPods, spark: SparkOperator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Jobs]:
    watching = Jobs(kafka, tmp_path_factory.mktemp("jobs") / "log")
    watching.start()
    yield watching
    watching.stop()


def rebalance(name: str, planner: Image, **goals: object) -> str:
    """The example with this image, and slow enough to be killed meanwhile; as JSON."""
    document = yaml.safe_load((EXAMPLES / "partitionreassignment-spark.yaml").read_text())
    document["metadata"]["name"] = name
    spec = document["spec"]
    spec["rebalance"] |= goals
    spec["rebalance"]["spark"]["image"] = planner.name
    spec["throttle"]["bytesPerSecond"] = BYTES_PER_SECOND
    return json.dumps(document)


def read(kafka: KafkaPods, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kafka.kubectl("get", kind, name, "--output=json"))
    return found


def wait_for_phase(kafka: KafkaPods, name: str, phase: str) -> dict[str, Any]:
    """Wait for a phase of a PartitionReassignment; returns its status."""
    status: dict[str, Any] = wait_until(
        lambda: read(kafka, "reassignment", name).get("status", {}),
        until=lambda found: found.get("phase") == phase,
        describe=f"{name} to be {phase}",
    )
    return status


def wait_for_driver(kafka: KafkaPods) -> None:
    wait_until(
        lambda: kafka.kubectl("get", "pods", DRIVERS, "--output=jsonpath={..status.phase}"),
        until=lambda phases: "Running" in phases.split(),
        describe="a driver to run",
    )


def kill_the_active(regent: RegentRelease, zookeeper: KazooClient) -> None:
    """Kill the pod that is the controller, and wait until the other one is."""
    regent.kubectl("rollout", "status", "deployment/regent", "--timeout=300s")
    killed = regent.active()
    (standby,) = set(regent.pods()) - {killed}
    successor = regent.status(standby)["controllerId"]
    regent.kill(killed)
    wait_until(
        lambda: controller(zookeeper),
        until=lambda found: found == successor,
        describe=f"the other pod, {standby}, to be the controller",
    )


def snapshot_of(regent: RegentRelease) -> str:
    """The cluster, as the planner reads it."""
    return regent.kubectl(
        "exec", regent.active(), "--", "regent", "snapshot", "--config", "/etc/regent/settings.yaml"
    )


def planned_without_spark(snapshot: str) -> dict[str, list[int]]:
    """What the planner moves where when it runs on this machine."""
    done = subprocess.run(
        [sys.executable, "-m", "regent_rebalance", "make", "/dev/stdin", "--json", *OPTIONS],
        input=snapshot,
        check=True,
        capture_output=True,
        text=True,
    )
    rows = json.loads(done.stdout)["partitions"]
    return {f"{row['topic']}-{row['partition']}": row["replicas"] for row in rows}


def targets(plan: MovePlan) -> dict[str, list[int]]:
    return {f"{move.topic}-{move.partition}": list(move.target) for move in plan.moves}


def test_the_planners_image_has_its_search_compiled(
    regent: RegentRelease, kafka: KafkaPods, topic: str, planner: Image
) -> None:
    """For the image's user: what is not found there is compiled, and written there."""
    script = """
        python3 -m regent_rebalance make /dev/stdin --goal DiskUsageDistributionGoal >&2
        echo planned $?
        find /opt/numba -type f -newer /opt/entrypoint.sh
    """
    said = kafka.kubectl(
        *("run", "compiled", f"--image={planner.name}", "--image-pull-policy=Never"),
        *("--restart=Never", "--rm", "--stdin", "--quiet", "--pod-running-timeout=2m"),
        *("--", "sh", "-c", script),
        stdin=snapshot_of(regent),
    )
    assert [line for line in said.splitlines() if line.startswith(("planned", "/opt"))] == [
        "planned 0"
    ]


def test_one_plan_and_one_job_though_regent_is_killed_while_spark_runs_and_while_replicas_move(
    regent: RegentRelease,
    kafka: KafkaPods,
    zookeeper: KazooClient,
    topic: str,
    planner: Image,
    jobs: Jobs,
) -> None:
    before, expected = assignments(zookeeper), planned_without_spark(snapshot_of(regent))
    kafka.kubectl("apply", "-f", "-", stdin=rebalance("balance", planner))
    wait_for_driver(kafka)
    kill_the_active(regent, zookeeper)
    planned = wait_for_phase(kafka, "balance", "AwaitingApproval")
    (job,) = jobs.seen()
    plan = read_plan(planned["plan"]["document"], expected_hash=planned["plan"]["hash"])
    assert targets(plan) == expected
    assert "unmetGoals" not in planned["rebalance"]
    assert (
        planned["plan"]["replicaMoves"] == planned["rebalance"]["lowerBound"] == PARTITIONS * 2 / 3
    )
    assert assignments(zookeeper) == before, "nothing moves before the plan is approved"

    approval = {"spec": {"approval": {"planHash": plan.hash}}}
    kafka.kubectl("patch", "reassignment", "balance", "--type=merge", "-p", json.dumps(approval))
    wait_until(
        lambda: moving(zookeeper, topic),
        describe="replicas to move",
    )
    kill_the_active(regent, zookeeper)
    assert moving(zookeeper, topic), "the other pod leads while replicas move"
    faster = {"spec": {"throttle": {"bytesPerSecond": 1_000_000_000}}}
    kafka.kubectl("patch", "reassignment", "balance", "--type=merge", "-p", json.dumps(faster))
    done = wait_for_phase(kafka, "balance", "Completed")
    assert done["plan"]["hash"] == plan.hash
    assert assignments(zookeeper) == before | targets(plan)
    assert jobs.seen() == {job}


def test_the_job_ran_as_driver_and_executor(
    regent: RegentRelease, kafka: KafkaPods, topic: str
) -> None:
    (job,) = json.loads(kafka.kubectl("get", JOBS, "--output=json"))["items"]
    status = job["status"]
    log = kafka.kubectl("logs", status["driverInfo"]["podName"])
    assert status["applicationState"] == {"state": "COMPLETED"}, log
    assert len(status["executorState"]) == 1


def test_the_cluster_is_as_balanced_as_the_plan_said(
    regent: RegentRelease, kafka: KafkaPods, zookeeper: KazooClient, topic: str
) -> None:
    found = {name: each for name, each in assignments(zookeeper).items() if name.startswith(topic)}
    assert Counter(broker for replicas in found.values() for broker in replicas) == dict.fromkeys(
        BROKER_PODS, PARTITIONS * 2 // len(BROKER_PODS)
    )
    led = Counter(leader for name, (leader, _) in leaderships(zookeeper).items() if name in found)
    assert led == dict.fromkeys(BROKER_PODS, PARTITIONS // len(BROKER_PODS))


def test_no_record_is_lost(kafka: KafkaPods, topic: str) -> None:
    counted = kafka.kubectl(
        *("exec", BROKER_PODS[3], "--", "sh", "-c"),
        "kafka-console-consumer --bootstrap-server kafka-c-0.kafka:9092 --from-beginning "
        f"--topic {topic} --max-messages {RECORDS} --timeout-ms 60000 | wc -l",
    )
    assert int(counted) == RECORDS


def left_of_jobs(kafka: KafkaPods) -> list[str]:
    """Objects of any job of the namespace: its Secret, what Spark has made, its pods."""
    listed = (
        kafka.kubectl("get", kinds, selector, "--output=name")
        for kinds, selector in (
            (f"{JOBS},secrets", "--selector=app.kubernetes.io/managed-by=regent"),
            ("pods,services,configmaps", "--selector=spark-app-selector"),
        )
    )
    return [name for names in listed for name in names.split()]


def test_what_is_uninstalled_while_spark_plans_leaves_nothing_stuck(
    regent: RegentRelease,
    kafka: KafkaPods,
    zookeeper: KazooClient,
    topic: str,
    planner: Image,
    spark: SparkOperator,
) -> None:
    kafka.kubectl("apply", "-f", "-", stdin=rebalance("empty", planner, drainedBrokers=[3]))
    kafka.kubectl("delete", "reassignment", "balance", "--timeout=60s")
    wait_for_driver(kafka)
    before = leaderships(zookeeper)
    regent.uninstall()
    wait_until(
        lambda: controller(zookeeper),
        until=lambda found: found in BROKER_PODS,
        describe="a broker to be the controller",
    )
    assert leaderships(zookeeper) == before
    assert regent.pods() == []
    kafka.kubectl("delete", "reassignment,ktopic", "--all", "--timeout=60s")
    wait_until(
        lambda: left_of_jobs(kafka),
        until=lambda found: found == [],
        describe="nothing of the job to be left",
    )
    spark.uninstall()
    for namespace in (regent.namespace, spark.namespace):
        kafka.cluster.kubectl("delete", "namespace", namespace, "--timeout=120s")
    assert topic in kafka.tool("kafka-topics", "--list").split()
