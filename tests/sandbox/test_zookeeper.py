"""Real ZooKeeper servers. Clients are kazoo, as in the operator."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss

from sandbox import ZooKeeper, ZooKeeperEnsemble, wait_until
from sandbox.znodes import end_session_of_owner, znode_exists

pytestmark = pytest.mark.integration


@contextmanager
def client(connect_string: str) -> Iterator[KazooClient]:
    zookeeper = KazooClient(hosts=connect_string, timeout=30.0)
    zookeeper.start(timeout=120)
    try:
        yield zookeeper
    finally:
        zookeeper.stop()
        zookeeper.close()


def test_data_survives_stop_kill_and_restart_but_not_close() -> None:
    server = ZooKeeper()
    with server:
        with client(server.connect_string) as zookeeper:
            zookeeper.create("/kept", b"data")
        assert znode_exists(server.connect_string, "/kept")
        assert not znode_exists(f"{server.connect_string}/kept", "/kept")
        server.restart()
        with client(server.connect_string) as zookeeper:
            assert zookeeper.get("/kept")[0] == b"data"
            zookeeper.create("/kept/too", b"more")
        server.kill()
        assert not server.is_running
        server.start()
        with client(server.connect_string) as zookeeper:
            assert zookeeper.get("/kept/too")[0] == b"more"
        assert server.mode == "standalone"
    assert not server.is_running
    with pytest.raises(OSError, match="refused"):
        znode_exists(server.connect_string, "/kept")
    assert not server.state_path.exists()


def test_packets_above_zookeepers_default_limit_end_the_connection() -> None:
    """As in production: what Regent must not send has to fail here, too."""
    with ZooKeeper() as server, client(server.connect_string) as zookeeper:
        zookeeper.create("/large", b"x" * 1_000_000)
        with pytest.raises(ConnectionLoss):
            zookeeper.create("/larger", b"x" * 1_100_000)


def test_a_paused_server_answers_nobody_and_goes_on_where_it_was() -> None:
    with ZooKeeper() as server, client(server.connect_string) as zookeeper:
        zookeeper.create("/here", ephemeral=True)
        server.pause()
        assert server.mode is None
        server.resume()
        assert zookeeper.retry(zookeeper.exists, "/here") is not None


def test_the_session_that_holds_a_znode_ends_on_demand() -> None:
    with ZooKeeper() as server, client(server.connect_string) as zookeeper:
        zookeeper.create("/chroot/held", ephemeral=True, makepath=True)
        end_session_of_owner(f"{server.connect_string}/chroot", "/held")
        assert not znode_exists(server.connect_string, "/chroot/held")
        # a znode that is gone, and one without a session
        end_session_of_owner(f"{server.connect_string}/chroot", "/held")
        end_session_of_owner(server.connect_string, "/chroot")
        assert znode_exists(server.connect_string, "/chroot")


@pytest.mark.parametrize(("kafka_version", "zookeeper"), [("2.4.1", "3.5."), ("1.1.1", "3.4.")])
def test_older_servers_come_from_older_kafka(kafka_version: str, zookeeper: str) -> None:
    with ZooKeeper(version=kafka_version) as server:
        assert f"zookeeper.version={zookeeper}" in server.process.log_of_this_run()
        with client(server.connect_string) as connection:
            connection.create("/here")


def test_an_ensemble_survives_the_loss_of_its_leader() -> None:
    with ZooKeeperEnsemble(3) as ensemble:
        assert sorted(str(server.mode) for server in ensemble.servers) == [
            "follower",
            "follower",
            "leader",
        ]
        with client(ensemble.connect_string) as zookeeper:
            zookeeper.create("/kept", b"data")
        lost = ensemble.leader
        lost.kill()
        successor = wait_until(
            lambda: ensemble.leader,
            timeout_s=30,
            describe="another leader",
            watch=[server for server in ensemble.servers if server is not lost],
        )
        assert successor is not lost
        ensemble.start()  # brings back what does not run
        assert lost.mode == "follower"
        with client(lost.connect_string) as zookeeper:
            assert zookeeper.get("/kept")[0] == b"data"
