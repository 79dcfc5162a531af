"""What Regent must not be the controller of, and brokers that do not obey it, with real parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from sandbox import KafkaBroker, ZooKeeper, wait_until
from sandbox.regent_process import RegentProcess

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


@pytest.fixture
def kazoo(zookeeper: ZooKeeper) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper.connect_string)
    client.start(timeout=20)
    yield client
    client.stop()
    client.close()


def refusal(regent: RegentProcess, part: str) -> str:
    """Why a Regent does not want to be the controller, once it says so."""
    status: dict[str, Any] = wait_until(
        regent.status,
        until=lambda status: bool(status and part in (status["refusal"] or "")),
        describe=f"{regent.name} to refuse: {part}",
        watch=[regent.process],
    )
    assert not status["isActive"]
    return str(status["refusal"])


def launched(zookeeper: str, **settings: str | int) -> RegentProcess:
    process = RegentProcess(zookeeper=zookeeper, settings=settings, forked=True)
    process.launch()
    return process


def test_a_mistyped_chroot_is_not_created_and_a_cluster_that_appears_there_is_served(
    zookeeper: ZooKeeper, kazoo: KazooClient
) -> None:
    chroot = "/kafak"
    regent = launched(zookeeper.connect_string + chroot)
    try:
        assert "Check the chroot" in refusal(regent, "there is no Kafka cluster")
        assert regent.get("/readyz") is None
        assert kazoo.exists(chroot) is None
        with KafkaBroker(
            zookeeper=zookeeper.connect_string + chroot, inter_broker_protocol_version="2.6"
        ):
            status = regent.wait_until_active()
            cluster_id = json.loads(kazoo.get(f"{chroot}/cluster/id")[0])["id"]
            assert status["clusterId"] == cluster_id
            assert status["refusal"] is None
            regent.stop()
    finally:
        regent.close()


def test_a_root_without_a_cluster_is_left_untouched(
    zookeeper: ZooKeeper, kazoo: KazooClient
) -> None:
    """The cluster lives below a chroot that was forgotten."""
    before = kazoo.get_children("/")
    regent = launched(zookeeper.connect_string)
    try:
        refusal(regent, "there is no Kafka cluster")
        assert kazoo.get_children("/") == before
        regent.stop()
    finally:
        regent.close()


def test_the_id_of_a_broker_is_refused_and_so_is_a_protocol_that_brokers_do_not_run(
    zookeeper: ZooKeeper, kazoo: KazooClient
) -> None:
    connect_string = f"{zookeeper.connect_string}/ids"
    with KafkaBroker(
        zookeeper=connect_string,
        broker_id=5_000,
        inter_broker_protocol_version="2.6",
        config={"reserved.broker.max.id": 5_000},
    ):
        before = kazoo.get("/ids/controller_epoch")[0]
        regent = launched(connect_string, controller_id=5_000)
        try:
            assert "controller_id 5000" in refusal(regent, "a broker is registered under it")
            assert kazoo.get("/ids/controller_epoch")[0] == before
            regent.stop()
        finally:
            regent.close()
        regent = launched(connect_string, inter_broker_protocol="3.9")
        try:
            refusal(regent, "but the brokers run 2.6")
            assert json.loads(kazoo.get("/ids/feature")[0])["status"] == 0
            regent.stop()
        finally:
            regent.close()


def test_a_broker_that_does_not_obey_is_named_with_its_partitions_and_its_error(
    zookeeper: ZooKeeper, kazoo: KazooClient
) -> None:
    """An authorizer that does not know Regent's user."""
    connect_string = f"{zookeeper.connect_string}/refused"
    with KafkaBroker(
        zookeeper=connect_string,
        inter_broker_protocol_version="2.6",
        config={
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:somebody-else",
        },
    ):
        regent = launched(connect_string, inter_broker_protocol="2.6")
        try:
            regent.wait_until_active()
            topic = {"version": 2, "partitions": {"0": [1], "1": [1]}}
            topic |= {"adding_replicas": {}, "removing_replicas": {}}
            kazoo.create("/refused/brokers/topics/orders", json.dumps(topic).encode())
            status: dict[str, Any] = wait_until(
                regent.status,
                until=lambda status: bool(
                    status
                    and len(status["refusedReplicas"]["sample"]) == 2
                    and status["refusedMetadata"]
                ),
                describe="the refusals to be shown",
                watch=[regent.process],
            )
            error = "CLUSTER_AUTHORIZATION_FAILED"
            assert status["refusedReplicas"]["count"] == 2
            assert status["refusedReplicas"]["sample"] == [
                {"topic": "orders", "partition": partition, "broker_id": 1, "error": error}
                for partition in (0, 1)
            ]
            assert status["refusedMetadata"] == {"1": error}
            gauge = "kafka_controller_kafkacontroller_refusedreplicascount 2.0"
            assert gauge in regent.metrics().splitlines()
            regent.stop()
        finally:
            regent.close()
