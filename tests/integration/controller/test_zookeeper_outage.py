"""ZooKeeper goes away and comes back: for a moment, for longer than a session, or one of three."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from sandbox import KafkaCluster, KubernetesApi, ZooKeeper, ZooKeeperEnsemble, wait_until
from sandbox.zookeeper import four_letter_word
from tests.support.cluster import (
    Cluster,
    controller_id_of,
    regent,
)
from tests.support.figures import Figure
from tests.support.resources import Resources, topic
from tests.support.znodes import Znodes

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SHORT_SESSION_MS = 6_000
"""Of a Regent whose session ends while ZooKeeper is away."""


def test_a_restart_of_zookeeper_within_the_session_timeout_changes_nothing(
    cluster: Cluster, zookeeper: ZooKeeper, resources: Resources, figure: Figure
) -> None:
    znodes = cluster.znodes
    with regent(
        cluster,
        kubeconfig=resources.api.kubeconfig,
        namespace=resources.namespace,
        zookeeper_session_timeout_ms=30_000,
    ) as process:
        process.wait_until_active()
        resources.apply(topic("before-the-restart"))
        resources.wait_ready("before-the-restart")
        registration = znodes.dump("/controller")

        began = time.monotonic()
        zookeeper.kill()
        zookeeper.start()
        figure("ZooKeeper was away for", f"{time.monotonic() - began:.1f} s")
        resources.apply(topic("after-the-restart"))
        resources.wait_ready("after-the-restart")
        assert znodes.dump("/controller") == registration  # the same node of the same session
        assert (process.status() or {})["isActive"]
        assert znodes.broker_ids() == cluster.broker_ids
        cluster.wait_for_consistency()


def test_an_outage_longer_than_the_session_is_survived_and_clients_do_not_notice(
    cluster: Cluster, zookeeper: ZooKeeper, resources: Resources, figure: Figure
) -> None:
    znodes = cluster.znodes
    with regent(
        cluster,
        kubeconfig=resources.api.kubeconfig,
        namespace=resources.namespace,
        zookeeper_session_timeout_ms=SHORT_SESSION_MS,
    ) as process:
        process.wait_until_active()
        resources.apply(topic("through-the-outage"))
        resources.wait_ready("through-the-outage")
        epoch = znodes.controller_epoch()

        zookeeper.kill()
        killed_at = time.monotonic()
        wait_until(
            lambda: process.get("/readyz") is None,
            describe="Regent to trust its session no more",
            watch=[process],
        )
        figure("Regent says that it is not ready after", f"{time.monotonic() - killed_at:.1f} s")
        cluster.tools.produce("through-the-outage", ["one", "two", "three"])
        over_at = killed_at + 1.2 * SHORT_SESSION_MS / 1000
        wait_until(lambda: time.monotonic() > over_at, describe="its session to be over")
        zookeeper.start()
        figure("ZooKeeper was away for", f"{time.monotonic() - killed_at:.1f} s")
        began = time.monotonic()
        cluster.wait(
            znodes.controller_epoch,
            "an election after the outage",
            until=lambda now: now > epoch,
            logs=[process.log_path],
        )
        process.wait_until_active()
        figure("active again after another", f"{time.monotonic() - began:.1f} s")
        assert znodes.controller() == controller_id_of(process)

        resources.apply(topic("after-the-outage"))
        resources.wait_ready("after-the-outage", "through-the-outage")
        consumed = cluster.tools.consume("through-the-outage", 3)
        assert sorted(consumed) == ["one", "three", "two"]
        assert znodes.broker_ids() == cluster.broker_ids
        cluster.wait_for_announced_controller()
        cluster.wait_for_consistency()


@pytest.fixture
def ensemble() -> Iterator[ZooKeeperEnsemble]:
    with ZooKeeperEnsemble(3) as servers:
        yield servers


def test_the_loss_of_the_zookeeper_server_that_regent_is_connected_to_costs_no_session(
    ensemble: ZooKeeperEnsemble, kubernetes: KubernetesApi, resources: Resources, figure: Figure
) -> None:
    with (
        KafkaCluster(
            zookeeper=ensemble.connect_string, brokers=1, inter_broker_protocol_version="2.6"
        ) as kafka,
        Znodes(ensemble.connect_string) as znodes,
        regent(
            Cluster(kafka, znodes),
            kubeconfig=kubernetes.kubeconfig,
            namespace=resources.namespace,
            zookeeper_session_timeout_ms=20_000,
        ) as process,
    ):
        process.wait_until_active()
        registration = znodes.dump("/controller")
        server = server_of_session(ensemble, registration["/controller"].owner)
        figure("the lost server was", server.mode)

        server.kill()
        began = time.monotonic()
        resources.apply(topic("without-one", partitions=2, replicas=1))
        resources.wait_ready("without-one")
        figure("a topic created and served after", f"{time.monotonic() - began:.1f} s")
        assert znodes.dump("/controller") == registration
        assert server_of_session(ensemble, registration["/controller"].owner) is not server
        assert (process.status() or {})["isActive"]


def server_of_session(ensemble: ZooKeeperEnsemble, session_id: int) -> ZooKeeper:
    """The server that a session is connected to."""
    needle = f"sid={session_id:#x},"

    def look() -> ZooKeeper | None:
        for server in ensemble.servers:
            if server.is_running and needle in four_letter_word(server.port, "cons"):
                return server
        return None

    return wait_until(look, describe=f"a server with session {session_id:#x}")
