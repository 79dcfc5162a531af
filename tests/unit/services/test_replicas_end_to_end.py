"""Two whole controllers that know each other: one leaves or falls silent, the other one follows.

ZooKeeper and the brokers are in memory, heartbeats go over real sockets. The places in the queue of
the replicas are made here; that kazoo's recipe follows them is tested with real servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from regent.network.heartbeats import Heartbeats
from regent.replicas.suspicion import SuspicionSettings
from regent.services.controller_loop import ReplicaSettings
from regent.sockets.listening import listening_socket
from regent.zk_data.operations import Create
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.thread_shortage import thread_shortage
from tests.support.waiting import wait_for

LOCALHOST = "127.0.0.1"
QUEUE = "/regent/election"
IDS = {"first": 1_000_000_001, "second": 1_000_000_002}


class Replica:
    """A controller with heartbeats."""

    def __init__(self, cluster: SimulatedCluster, name: str, *, contends: bool) -> None:
        self.cluster = cluster
        self.heartbeats = Heartbeats(
            instance=name,
            listening=listening_socket(LOCALHOST, 0, setting="replica"),
            settings=SuspicionSettings(heartbeat_s=0.02, silence_s=5.0),
            tls=None,
        )
        self.controller = LiveController(
            cluster,
            contends=contends,
            warm_standby=True,
            replicas=ReplicaSettings(self.heartbeats, lambda: LOCALHOST),
            controller_id=IDS[name],
            election_backoff_ms=600_000,  # who is deposed here is not told that it is not elected
        )

    def queue_up(self) -> None:
        """Have a place behind the others."""
        wait_for(lambda: self.controller.service.has_session, "a session")
        self.cluster.call(self.controller.connections.queue_up, QUEUE)

    def status(self) -> dict[str, object]:
        return self.controller.service.status()

    def knows_another(self) -> bool:
        replicas = self.status()["replicas"]
        assert isinstance(replicas, dict)
        return list(replicas["others"].values()) == [None]


@pytest.fixture(params=[True, False], ids=["ZooKeeper 3.6", "ZooKeeper 3.5"])
def cluster(request: pytest.FixtureRequest) -> Iterator[SimulatedCluster]:
    with SimulatedCluster(session_timeout_s=60) as cluster:
        cluster.has_recursive_watches = request.param
        cluster.write(Create("/regent"), Create(QUEUE))
        yield cluster


@pytest.fixture
def replicas(cluster: SimulatedCluster) -> Iterator[tuple[Replica, Replica]]:
    """One that leads, and one that is ready."""
    with ExitStack() as stack:
        first = Replica(cluster, "first", contends=True)
        second = Replica(cluster, "second", contends=False)
        for replica in (first, second):
            stack.enter_context(replica.controller)
            replica.queue_up()
        for replica in (first, second):
            wait_for(replica.knows_another, "replicas that know each other")
        wait_for(lambda: first.heartbeats.ready() == {"second"}, "the second one to be ready")
        yield first, second


def test_stopping_hands_over(cluster: SimulatedCluster, replicas: tuple[Replica, Replica]) -> None:
    first, second = replicas
    epoch = cluster.controller_epoch
    cluster.brokers_may_control = True
    first.controller.service.stop()
    second.controller.wait_until_active()
    assert second.controller.view.controller_epoch == epoch + 1
    assert cluster.controller_epoch == epoch + 1


def test_where_no_thread_can_be_started_it_leads_and_knows_others_later() -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(SimulatedCluster(session_timeout_s=60))
        cluster.write(Create("/regent"), Create(QUEUE))
        first = Replica(cluster, "first", contends=True)
        with thread_shortage(started_by="controller") as refused:
            stack.enter_context(first.controller)
            wait_for(lambda: refused, "a thread to be refused")
            wait_for(first.controller.service.remark, "the failure to be shown")
            remark = str(first.controller.service.remark())
            assert "other replicas has failed, and is tried again: RuntimeError" in remark
            assert first.controller.view.is_active
        second = Replica(cluster, "second", contends=False)
        stack.enter_context(second.controller)
        second.queue_up()
        wait_for(lambda: first.heartbeats.ready() == {"second"}, "the second one to be ready")


def test_silence_is_followed(cluster: SimulatedCluster, replicas: tuple[Replica, Replica]) -> None:
    first, second = replicas
    epoch = cluster.controller_epoch
    cluster.brokers_may_control = True
    first.heartbeats.close()
    second.controller.wait_until_active()
    assert cluster.controller_epoch == epoch + 1
    wait_for(lambda: not first.controller.view.is_active, "the first one to resign")
    counts = second.controller.service.suspicions
    assert {reason: count for reason, count in counts.items() if count} == {"dead": 1}
