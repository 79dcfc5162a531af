"""A real ZooKeeper server. All integration tests use the rest of its wrapper."""

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss

from sandbox import ZooKeeper
from sandbox.znodes import end_session, end_session_of_owner, znode_exists
from tests.support.present import present

pytestmark = pytest.mark.integration


@pytest.fixture
def zookeeper() -> Iterator[KazooClient]:
    """A client of a server, both of which are gone afterwards."""
    with ZooKeeper() as server:
        client = KazooClient(hosts=server.connect_string, timeout=60.0)
        client.start(timeout=120)
        yield client
        client.stop()
        client.close()
    assert not server.is_running
    assert not server.state_path.exists()


def test_packets_above_zookeepers_default_limit_end_the_connection(zookeeper: KazooClient) -> None:
    """As in production: a packet that Regent must not send has to fail here, too."""
    zookeeper.create("/large", b"x" * 1_000_000)
    with pytest.raises(ConnectionLoss):
        zookeeper.create("/larger", b"x" * 1_100_000)


def test_the_session_that_holds_a_znode_ends_on_demand(zookeeper: KazooClient) -> None:
    (address,) = (f"{host}:{port}" for host, port in zookeeper.hosts)
    zookeeper.create("/chroot/held", ephemeral=True, makepath=True)
    session_id, _ = present(zookeeper.client_id)
    end_session_of_owner(f"{address}/chroot", "/held")
    assert not znode_exists(address, "/chroot/held")
    end_session(address, session_id)  # it is over
    # a znode that is gone, and one without a session
    end_session_of_owner(f"{address}/chroot", "/held")
    end_session_of_owner(address, "/chroot")
    assert znode_exists(address, "/chroot")
