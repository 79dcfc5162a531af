"""A real ZooKeeper server. All integration tests use the rest of its wrapper."""

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss

from sandbox import ZooKeeper
from sandbox.znodes import end_session_of_owner, znode_exists

pytestmark = pytest.mark.integration


def test_packets_above_zookeepers_default_limit_end_the_connection() -> None:
    """As in production: a packet that Regent must not send has to fail here, too."""
    with ZooKeeper() as server:
        zookeeper = KazooClient(hosts=server.connect_string, timeout=60.0)
        zookeeper.start(timeout=120)
        try:
            zookeeper.create("/large", b"x" * 1_000_000)
            with pytest.raises(ConnectionLoss):
                zookeeper.create("/larger", b"x" * 1_100_000)
        finally:
            zookeeper.stop()
            zookeeper.close()
    assert not server.is_running
    assert not server.state_path.exists()


def test_the_session_that_holds_a_znode_ends_on_demand() -> None:
    with ZooKeeper() as server:
        zookeeper = KazooClient(hosts=server.connect_string, timeout=60.0)
        zookeeper.start(timeout=120)
        try:
            zookeeper.create("/chroot/held", ephemeral=True, makepath=True)
            end_session_of_owner(f"{server.connect_string}/chroot", "/held")
            assert not znode_exists(server.connect_string, "/chroot/held")
            # a znode that is gone, and one without a session
            end_session_of_owner(f"{server.connect_string}/chroot", "/held")
            end_session_of_owner(server.connect_string, "/chroot")
            assert znode_exists(server.connect_string, "/chroot")
        finally:
            zookeeper.stop()
            zookeeper.close()
