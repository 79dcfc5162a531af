"""A topic's node is removed from ZooKeeper by hand, and a topic of that name is created later.

Brokers still have the former replicas, and ignore leader epochs that are not higher than theirs.
"""

from __future__ import annotations

import pytest

from regent.zk_data import paths
from tests.support.cluster import Cluster, regent
from tests.support.clusters import Clusters
from tests.support.reassigning import create_topic
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, pytest.mark.slow]

NAME = "removed"
VANISHED = "Topics have vanished from ZooKeeper"


def test_the_next_topic_of_that_name_is_served(cluster: Cluster) -> None:
    next_topic_is_served(cluster)


@soak("versions")
def test_the_next_topic_is_served_by_brokers_of_2_4(clusters: Clusters) -> None:
    next_topic_is_served(clusters.healthy("2.4.1"))


def next_topic_is_served(cluster: Cluster) -> None:
    with regent(cluster) as process:
        process.wait_until_active()
        create_topic(cluster, NAME, {0: [1, 2, 3]})
        cluster.wait_in_sync(NAME)
        raise_epochs(cluster, elections=3)
        cluster.tools.produce(NAME, ["former"])
        former = cluster.znodes.state(NAME)

        for path in (paths.topic(NAME), paths.topic_config(NAME)):
            cluster.znodes.client.delete(path, recursive=True)
        cluster.wait(
            lambda: VANISHED in [entry["message"] for entry in process.log_entries()],
            "Regent to notice",
        )
        create_topic(cluster, NAME, {0: [1, 2, 3]})
        cluster.wait_in_sync(NAME)
        assert cluster.znodes.state(NAME)["leader_epoch"] > former["leader_epoch"]
        cluster.tools.produce(NAME, ["later"])
        assert cluster.tools.consume(NAME, 2) == ["former", "later"]
        raise_epochs(cluster, elections=1)
        cluster.wait_for_consistency()


def raise_epochs(cluster: Cluster, *, elections: int) -> None:
    """The leader crashes and returns, several times."""
    for _ in range(elections):
        leader = cluster.znodes.state(NAME)["leader"]
        cluster.kill_broker(leader)
        cluster.wait(
            lambda: cluster.znodes.state(NAME)["leader"],
            "another broker to lead",
            until=lambda now, before=leader: now not in (before, -1),
        )
        cluster.broker(leader).launch()
        cluster.wait_in_sync(NAME)
