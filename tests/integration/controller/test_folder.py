"""A folder of resources, as Git keeps it, applied to a real cluster under load.

Twenty KafkaTopics, a PartitionReassignment and a BrokerDrain arrive at the same time, on five
brokers in three racks. All of them become what they declare, nothing that was acknowledged is lost,
and applying the same folder again writes nothing anywhere. Once with Regent as the controller, once
in client mode, where a broker is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from regent.kube.settings import KubeSettings
from sandbox import KafkaCluster, KubernetesApi, ZooKeeper
from sandbox.regent_process import RegentProcess
from tests.support.cluster import SESSION_TIMEOUT_MS, Cluster, regent
from tests.support.figures import Figure
from tests.support.reassigning import create_topic, wait_for_hosts
from tests.support.resources import TIMEOUT_S, Resources, condition, topic
from tests.support.soak import soak
from tests.support.workload import consume_all, workload
from tests.support.znodes import Znodes, difference

pytestmark = [pytest.mark.integration, pytest.mark.slow]

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
DRAINED = 5
TOPICS = 20
MOVED = {p: [4, 2, 3] if p % 2 else [3, 4, 2] for p in range(6)}
BUSY = {
    "busy-drained": {p: [5, 1, 3] if p % 2 else [1, 3, 5] for p in range(4)},
    "busy-moved": {p: [1, 2, 3] for p in MOVED},
}
"""Topics that are written to all the time. Their KafkaTopics find and adopt them."""

QUESTION = "question"

DETAIL_WRITE_S = 2.0
"""How long writing a detail that is due may take."""


@pytest.fixture(
    scope="module", params=["controller", pytest.param("client", marks=soak("controller"))]
)
def mode(request: pytest.FixtureRequest) -> str:
    """The setting of that name."""
    mode: str = request.param
    return mode


@pytest.fixture(scope="module")
def cluster(zookeeper: ZooKeeper, mode: str) -> Iterator[Cluster]:
    connect_string = f"{zookeeper.connect_string}/folder-{mode}"
    with (
        KafkaCluster(
            zookeeper=connect_string,
            brokers=len(RACKS),
            racks=("a", "b", "c"),
            inter_broker_protocol_version="2.6",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            config={"auto.leader.rebalance.enable": False},
            heap_mb=256,
        ) as kafka,
        Znodes(connect_string) as znodes,
    ):
        cluster = Cluster(kafka, znodes)
        yield cluster
        cluster.close()


@pytest.fixture(scope="module")
def resources(kubernetes: KubernetesApi, mode: str) -> Resources:
    return Resources(kubernetes, f"folder-{mode}")


@pytest.fixture(scope="module")
def process(cluster: Cluster, resources: Resources, mode: str) -> Iterator[RegentProcess]:
    with regent(
        cluster, kubeconfig=resources.api.kubeconfig, namespace=resources.namespace, mode=mode
    ) as started:
        if mode == "controller":
            started.wait_until_active()
        yield started


def topics() -> list[dict[str, Any]]:
    """Twenty KafkaTopics of different shapes; the busy ones are among them."""
    safe = {"min.insync.replicas": 2}
    busy = [topic(name, partitions=len(BUSY[name]), replicas=3, config=safe) for name in BUSY]
    others = [
        topic(
            f"topic-{number:02d}",
            partitions=1 + number % 4,
            replicas=2 + number % 2,
            config={"retention.ms": 60_000 * (1 + number), **(safe if number % 2 else {})},
        )
        for number in range(TOPICS - len(busy))
    ]
    return [*busy, *others]


def moves() -> list[dict[str, Any]]:
    """The PartitionReassignment and the BrokerDrain."""
    api = {"apiVersion": "kafka.regent.dev/v1alpha1"}
    assignments = [
        {"topic": "busy-moved", "partition": partition, "replicas": replicas}
        for partition, replicas in MOVED.items()
    ]
    return [
        {
            **api,
            "kind": "PartitionReassignment",
            "metadata": {"name": "busy-moved"},
            "spec": {"assignments": assignments, "approval": {"policy": "Automatic"}},
        },
        {
            **api,
            "kind": "BrokerDrain",
            "metadata": {"name": f"broker-{DRAINED}"},
            "spec": {"brokers": [DRAINED], "concurrency": {"perBroker": 20}},
        },
    ]


class Folder:
    """The folder, and what becomes of it in the cluster."""

    def __init__(self, path: Path, resources: Resources, cluster: Cluster, audit: Path) -> None:
        self._path = path
        self._resources = resources
        self._by_kind = {
            "KafkaTopic": resources,
            "PartitionReassignment": resources.of("reassignment"),
            "BrokerDrain": resources.of("drain"),
        }
        self._cluster = cluster
        self._audit = audit
        self._questions = 0
        for body in (*topics(), *moves()):
            file = path / body["kind"].lower() / f"{body['metadata']['name']}.yaml"
            file.parent.mkdir(exist_ok=True)
            file.write_text(yaml.safe_dump(body))

    def apply(self) -> list[str]:
        """``kubectl apply`` of everything in the folder; what kubectl says of each resource."""
        said = self._resources.kubectl("apply", "--recursive", "-f", str(self._path))
        return [line.rpartition(" ")[2] for line in said.splitlines()]

    def wait(self) -> None:
        """``kubectl wait`` for the whole folder."""
        for kind, type_ in (
            ("reassignment", "Completed"),
            ("drain", "Drained"),
            ("drain", "Ready"),
            ("ktopic", "Ready"),
        ):
            self._resources.kubectl(
                "wait", f"--for=condition={type_}", f"--timeout={TIMEOUT_S}s", kind, "--all"
            )

    def versions(self) -> dict[str, str]:
        """resourceVersion of every resource but the question."""
        return {
            f"{kind}/{name}": item["metadata"]["resourceVersion"]
            for kind, resources in self._by_kind.items()
            for item in resources.all()
            if (name := item["metadata"]["name"]) != QUESTION
        }

    def await_an_answer(self) -> None:
        """Wait until Regent has seen everything up to now: it answers what is asked last.

        The question is a KafkaTopic with a mistake, so ZooKeeper hears nothing of it.
        """
        self._questions += 1
        mistake = {"no.such.key": self._questions}
        self._resources.apply(topic(QUESTION, config=mistake))
        self._resources.wait_for_condition(QUESTION, "Stalled", "True", "InvalidConfig")

    def settle(self) -> dict[str, str]:
        """Wait until nothing is written any more; the versions.

        A detail may wait ``status_detail_interval_s`` for its turn, so only silence that is longer
        says that none waits.
        """
        silence_s = KubeSettings().status_detail_interval_s + DETAIL_WRITE_S
        seen, since = self.versions(), time.monotonic()

        def silent_for_s() -> float:
            nonlocal seen, since
            asked_at = time.monotonic()
            self.await_an_answer()  # whatever was due before it has had its turn
            now = self.versions()
            if now != seen:
                seen, since = now, time.monotonic()
            return asked_at - since

        self._cluster.wait(
            silent_for_s,
            "the statuses to rest",
            until=lambda seconds: seconds > silence_s,
            interval_s=1.0,
        )
        return seen

    def forget_the_question(self) -> None:
        self._resources.kubectl("delete", "ktopic", QUESTION, "--ignore-not-found")

    def writes(self, *, since: int) -> list[str]:
        """What was written to the resources but the question, by anybody: the audit log says."""
        with self._audit.open() as log:
            log.seek(since)
            entries = [json.loads(line) for line in log if line.endswith("\n")]
        return [
            f"{entry['user']['username']}: {entry['verb']} {reference.get('name')}"
            for entry in entries
            if (reference := entry["objectRef"]).get("namespace") == self._resources.namespace
            and reference.get("name") != QUESTION
            and entry["verb"] not in ("get", "list", "watch")
        ]


@pytest.fixture
def folder(
    tmp_path: Path, resources: Resources, cluster: Cluster, audit_log: Path
) -> Iterator[Folder]:
    path = tmp_path / "folder"
    path.mkdir()
    folder = Folder(path, resources, cluster, audit_log)
    yield folder
    folder.forget_the_question()


def test_a_folder_becomes_true_under_load_and_the_second_time_nothing_is_written(
    cluster: Cluster,
    resources: Resources,
    process: RegentProcess,
    folder: Folder,
    audit_log: Path,
    tmp_path: Path,
    figure: Figure,
) -> None:
    for name, assignment in BUSY.items():
        create_topic(cluster, name, assignment)
    with (
        workload(cluster.tools, "busy-drained", tmp_path, keys=16) as drained,
        workload(cluster.tools, "busy-moved", tmp_path, keys=16) as moved,
    ):
        loads = {"busy-drained": drained, "busy-moved": moved}
        for load in loads.values():
            load.wait_for_progress()
        # Brokers create the topic of the consumers' offsets, on any of them: it is drained, too.
        cluster.tools.consume("busy-moved", 1)
        since = audit_log.stat().st_size
        assert folder.apply() == ["created"] * (TOPICS + 2)
        folder.wait()
        for load in loads.values():
            load.wait_for_progress()
    for name, load in loads.items():
        acknowledged = load.acknowledged()
        figure(f"acknowledged in {name}", len(acknowledged))
        figure(f"longest time without an acknowledgement in {name}, ms", load.longest_gap_ms())
        assert load.failed() == []
        assert acknowledged.keys() <= set(consume_all(cluster.tools, name))
    _require_what_is_declared(cluster)

    before = folder.settle()
    first = folder.writes(since=since)
    assert len(first) > TOPICS, "the audit log counts"
    figure("writes to resources, kubectl's among them, until all were as declared", len(first))
    znodes, since = cluster.znodes.dump(), audit_log.stat().st_size
    assert folder.apply() == ["unchanged"] * (TOPICS + 2)
    folder.await_an_answer()
    assert folder.writes(since=since) == []
    assert folder.versions() == before
    assert difference(znodes, cluster.znodes.dump()) == {}
    assert folder.versions().keys() == {
        f"{body['kind']}/{body['metadata']['name']}" for body in (*topics(), *moves())
    }
    healthy = {
        body["metadata"]["name"]
        for body in resources.all()
        if condition(body, "Healthy").get("status") == "True"
    }
    assert {body["metadata"]["name"] for body in topics()} <= healthy


def _require_what_is_declared(cluster: Cluster) -> None:
    """ZooKeeper and the brokers' disks have what the folder declares."""
    cluster.wait_in_sync()
    placed: dict[tuple[str, int], list[int]] = {}
    for body in topics():
        name, spec = body["metadata"]["name"], body["spec"]
        assignment = cluster.znodes.assignment(name) or {}
        assert len(assignment) == spec["partitions"], name
        assert {len(replicas) for replicas in assignment.values()} == {spec["replicas"]}, name
        config = {key: str(value) for key, value in spec["config"].items()}
        assert cluster.znodes.config(name) == config
        placed |= {(name, partition): replicas for partition, replicas in assignment.items()}
    for (name, partition), replicas in placed.items():
        assert DRAINED not in replicas, (name, partition, replicas)
        racks = {RACKS[broker] for broker in replicas}
        assert len(racks) == len(replicas), (name, partition, replicas)
    assert cluster.znodes.assignment("busy-moved") == MOVED
    wait_for_hosts(cluster, placed)
