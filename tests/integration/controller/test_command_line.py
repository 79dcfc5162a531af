"""What people run and scrape: `regent status`, `regent run` with mistakes, the HTTP endpoint."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from regent.model.active_regent import ServedResources
from sandbox import ZooKeeper, wait_until
from sandbox.ports import LOOPBACK
from sandbox.process import Outcome
from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, controller_id_of, regent
from tests.support.command_line import run_regent, run_without_reader
from tests.support.znodes import Znodes, difference

pytestmark = pytest.mark.integration

NOBODY_LISTENS = "127.0.0.1:1"

KAFKA_METRICS = [
    "kafkacontroller_activecontrollercount",
    "kafkacontroller_offlinepartitionscount",
    "kafkacontroller_globaltopiccount",
    "kafkacontroller_globalpartitioncount",
    "kafkacontroller_activebrokercount",
    "kafkacontroller_fencedbrokercount",
    "kafkacontroller_topicstodeletecount",
    "kafkacontroller_replicastodeletecount",
    "kafkacontroller_topicsineligibletodeletecount",
    "kafkacontroller_replicasineligibletodeletecount",
    "kafkacontroller_controllerstate",
    "controllereventmanager_eventqueuesize",
    "controllereventmanager_eventqueuetimems_count",
    "controllerstats_leaderelectionrateandtimems_count",
    "controllerstats_uncleanleaderelections_total",
    "controllerchannelmanager_totalqueuesize",
    "controllerchannelmanager_queuesize",
]


def status_of(zookeeper: str, process: RegentProcess | None = None, *, exit_code: int = 0) -> Any:
    port = 1 if process is None else process.port
    outcome = run_regent(
        "status", "--json", "--zookeeper", zookeeper, "--url", f"http://{LOOPBACK}:{port}"
    )
    assert outcome.exit_code == exit_code, outcome
    return json.loads(outcome.stdout)


@pytest.fixture(scope="module")
def process(cluster: Cluster) -> Iterator[RegentProcess]:
    with regent(cluster) as started:
        started.wait_until_active()
        yield started


@pytest.fixture(scope="module", autouse=True)
def status_without_zookeeper() -> Iterator[Future[Outcome]]:
    """`regent status` that finds no ZooKeeper. It tries for some time, while others are tested."""
    with ThreadPoolExecutor() as pool:
        yield pool.submit(run_regent, "status", "--zookeeper", NOBODY_LISTENS)


# The first tests are made before Regent starts.


def test_status_shows_a_brokers_own_controller(cluster: Cluster) -> None:
    cluster.tools.create_topic("shown", partitions=6, replication_factor=3)
    cluster.wait_for_consistency()
    controller_id = cluster.wait_for_announced_controller()
    before = cluster.znodes.dump()
    report = status_of(cluster.kafka.zookeeper)
    epoch = cluster.znodes.controller_epoch()
    assert report["controller"] == {
        "id": controller_id,
        "epoch": epoch,
        "kind": "broker",
        "customResources": None,
    }
    assert report["regent"] is None
    assert "no Regent answers" in report["regentProblem"]
    assert len(report["clusterId"]) == 22
    assert report["problems"] == []
    assert {k: v for k, v in report["partitions"].items() if k != "topics"} == {
        "total": len(cluster.znodes.states()),
        "online": len(cluster.znodes.states()),
        "offline": 0,
        "new": 0,
        "unknown": 0,
        "underReplicated": 0,
    }
    assert [broker["id"] for broker in report["brokers"]] == cluster.broker_ids
    assert sum(broker["leads"] for broker in report["brokers"]) == report["partitions"]["total"]

    text = run_regent("status", "--zookeeper", cluster.kafka.zookeeper).stdout
    assert f"broker {controller_id}'s own controller, epoch {epoch}" in text
    assert "no Regent answers at http://127.0.0.1:8080" in text
    for broker in cluster.kafka.brokers:
        assert broker.bootstrap_servers in text
    assert not difference(before, cluster.znodes.dump())  # it reads, and leaves nothing behind


def test_status_shows_that_there_is_no_controller(zookeeper: ZooKeeper) -> None:
    connect_string = f"{zookeeper.connect_string}/none"
    with Znodes(zookeeper.connect_string) as znodes:
        create = znodes.client.create
        create("/none/brokers/ids", makepath=True)
        create("/none/controller_epoch", b"7")
        create(
            "/none/brokers/topics/t",
            b'{"version":2,"partitions":{"0":[1],"1":[2]}}',
            makepath=True,
        )
        create(
            "/none/brokers/topics/t/partitions/0/state",
            b'{"controller_epoch":7,"leader":-1,"version":1,"leader_epoch":3,"isr":[1]}',
            makepath=True,
        )
        create("/none/brokers/topics/broken", b"{")
        report = status_of(connect_string, exit_code=4)
        assert report["controller"] == {
            "id": None,
            "epoch": 7,
            "kind": "none",
            "customResources": None,
        }
        assert report["brokers"] == []
        partitions = report["partitions"]
        assert (partitions["total"], partitions["offline"], partitions["new"]) == (2, 1, 1)
        assert "/brokers/topics/broken" in report["problems"][0]
        text = run_regent("status", "--zookeeper", connect_string).stdout
        assert "Controller  none, epoch 7" in text
        assert "/brokers/topics/broken" in text


def test_status_of_a_chroot_that_does_not_exist_says_so_and_does_not_create_it(
    zookeeper: ZooKeeper,
) -> None:
    outcome = run_regent("status", "--zookeeper", f"{zookeeper.connect_string}/mistyped")
    assert outcome.exit_code == 1
    assert "there is no /mistyped in ZooKeeper" in outcome.stderr
    with Znodes(zookeeper.connect_string) as znodes:
        assert znodes.get("/mistyped") is None


def test_release_goes_on_where_the_brokers_to_be_restarted_are_not_known(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """The cluster may be gone already. Whoever uninstalls Regent still has to get rid of it."""
    outcome = run_regent(
        *("release", "--all", "--zookeeper", f"{zookeeper.connect_string}/gone"),
        KUBECONFIG=str(tmp_path / "none"),
    )
    note, error = outcome.stderr.splitlines()
    assert note.startswith(
        "Note: not known which brokers are to be restarted first: there is no /gone in ZooKeeper"
    )
    assert error.startswith("Error: no service account and no usable kubeconfig")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--zookeeper HOST:PORT"),
        (["--zookeeper", "host:port"], "'port' in 'host:port' is not a port"),
        (["--zookeeper", "host//x"], "'//x' is not a path in ZooKeeper"),
        (["--zookeeper", "zk:2181", "--http-port", "abc"], "invalid settings:\n  http_port: "),
        (["--zookeeper", "zk:2181", "--zookeeper-session-timeout-ms", "5"], "1000 (given: '5')"),
        (["--zookeeper", "zk:2181", "--config", "{file}"], "zookeper: there is no such setting"),
        (
            ["--zookeeper", "zk:2181", "--broker-tls", "--broker-tls-ca-file", "/none"],
            "TLS for brokers: [Errno 2] No such file or directory: '/none'",
        ),
        (
            ["--zookeeper", "zk:2181", "--zookeeper-tls", "--zookeeper-tls-ca-file", "/none"],
            "TLS for ZooKeeper: [Errno 2] No such file or directory: '/none'",
        ),
        (
            ["--zookeeper", "zk:2181", "--zookeeper-sasl-username", "u"],
            "zookeeper_sasl_username: needs zookeeper_sasl_password_file",
        ),
        (
            [
                *("--zookeeper", "zk:2181", "--broker-sasl-username", "u"),
                *("--broker-sasl-password-file", "/none"),
            ],
            "broker_sasl_password_file cannot be read",
        ),
        (["--zookeeper", "zk:2181", "--http-port", "{port}"], "Address already in use"),
        (["--zookeeper", "zk:2181", "--http-port", "0"], "set KUBECONFIG"),
    ],
    ids=lambda value: None if isinstance(value, list) else value,
)
def test_run_with_settings_that_cannot_work_says_which_and_fails(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("zookeper: zk:2181\n")
    with contextlib.closing(socket.create_server((LOOPBACK, 0))) as taken:
        port = taken.getsockname()[1]
        outcome = run_regent(
            "run",
            *(argument.format(file=file, port=port) for argument in arguments),
            KUBECONFIG=os.devnull,
        )
    assert outcome.exit_code not in (0, None)
    assert said in outcome.stderr
    assert "Error: " in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_without_zookeeper_regent_is_alive_but_not_ready() -> None:
    started = RegentProcess(zookeeper=NOBODY_LISTENS)
    try:
        started.launch()
        wait_until(
            lambda: answer(started, "/readyz"),
            describe="the HTTP endpoint to answer",
            watch=[started],
        )
        status, text = answer(started, "/readyz")
        assert status == 503
        assert text.startswith("no ZooKeeper session")
        assert answer(started, "/healthz") == (200, "ok\n")
        started.stop()
        assert started.process.exit_code == 0
    finally:
        started.close()


# From here on Regent runs.


def test_status_shows_regent(cluster: Cluster, process: RegentProcess) -> None:
    epoch = cluster.znodes.controller_epoch()
    controller_id = controller_id_of(process)
    cluster.wait(
        lambda: sorted((process.status() or {})["channelQueueSizes"]),
        "channels to all brokers, of which is told when the failover is over",
        until=lambda found: found == ["1", "2", "3"],
    )
    report = status_of(cluster.kafka.zookeeper, process)
    assert report["controller"] == {
        "id": controller_id,
        "epoch": epoch,
        "kind": "regent",
        "customResources": ServedResources(lease=None).report(),
    }
    assert report["regent"]["isActive"]
    assert report["regent"]["controllerEpoch"] == epoch
    assert sorted(report["regent"]["channelQueueSizes"]) == ["1", "2", "3"]
    text = run_regent(
        *("status", "--zookeeper", cluster.kafka.zookeeper),
        *("--url", f"http://{LOOPBACK}:{process.port}"),
    ).stdout
    assert f"Regent ({controller_id}), epoch {epoch}" in text
    assert "Resources   none: it runs without_kubernetes" in text
    assert f"Regent      {controller_id} (active)" in text


@pytest.mark.parametrize("command", [["status"], ["status", "--json"], ["why", "shown"]])
def test_a_command_whose_output_nobody_reads_ends_quietly(
    cluster: Cluster, process: RegentProcess, command: list[str]
) -> None:
    url = f"http://{LOOPBACK}:{process.port}"
    outcome = run_without_reader(*command, "--zookeeper", cluster.kafka.zookeeper, "--url", url)
    assert (outcome.exit_code, outcome.stderr) == (-signal.SIGPIPE, "")


def test_status_of_one_cluster_does_not_take_the_regent_of_another_for_its_own(
    zookeeper: ZooKeeper, process: RegentProcess
) -> None:
    with Znodes(zookeeper.connect_string) as znodes:
        znodes.client.create("/another/brokers/ids", makepath=True)
    report = status_of(f"{zookeeper.connect_string}/another", process, exit_code=4)
    assert report["regent"] is None
    assert "serves another Kafka cluster" in report["regentProblem"]


def test_status_with_offline_partitions_says_so_by_its_exit_status(zookeeper: ZooKeeper) -> None:
    with Znodes(zookeeper.connect_string) as znodes:
        create = znodes.client.create
        create("/offline/brokers/ids", makepath=True)
        create("/offline/controller", b'{"version":1,"brokerid":7,"timestamp":"0"}')
        create("/offline/brokers/topics/t", b'{"partitions":{"0":[1]}}', makepath=True)
        create(
            "/offline/brokers/topics/t/partitions/0/state",
            b'{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":3,"isr":[1]}',
            makepath=True,
        )
    report = status_of(f"{zookeeper.connect_string}/offline", exit_code=5)
    assert report["partitions"]["offline"] == 1


def test_metrics_have_the_names_of_kafkas_controller_and_its_numbers(
    cluster: Cluster, process: RegentProcess
) -> None:
    def samples() -> dict[str, str]:
        lines = process.metrics().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line[:1] != "#")

    def missing() -> set[str]:
        names = {sample.partition("{")[0] for sample in samples()}
        return {f"kafka_controller_{name}" for name in KAFKA_METRICS} - names

    cluster.wait(missing, "all metrics to be there", until=lambda left: not left)
    expected = {
        "activecontrollercount": 1,
        "activebrokercount": 3,
        "globalpartitioncount": len(cluster.znodes.states()),
    }

    def values() -> dict[str, float]:
        found = samples()
        return {name: float(found[f"kafka_controller_kafkacontroller_{name}"]) for name in expected}

    # Numbers are taken when an event is over: the failover may still be going on.
    cluster.wait(values, f"the numbers {expected}", until=lambda found: found == expected)


def test_probes_of_an_active_regent(process: RegentProcess) -> None:
    assert answer(process, "/healthz") == (200, "ok\n")
    assert answer(process, "/readyz") == (200, "ok\n")
    assert answer(process, "/nothing")[0] == 404


def test_status_without_zookeeper_says_whom_it_asked(
    status_without_zookeeper: Future[Outcome],
) -> None:
    outcome = status_without_zookeeper.result()
    assert outcome.exit_code == 3
    assert outcome.stderr.startswith(
        f"Error: no ZooKeeper session within 10.0 s; asked {NOBODY_LISTENS}: no connection"
    )
    assert "refused" in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1


def answer(process: RegentProcess, path: str) -> tuple[int, str]:
    """Status and body of an answer of the HTTP endpoint.

    Raises:
        OSError: There is none.
    """
    connection = http.client.HTTPConnection(LOOPBACK, process.port, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()
