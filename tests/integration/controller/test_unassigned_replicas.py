"""What a broker's controller has left on brokers is reported, and stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from regent.controller.brokers import unassigned_replicas
from tests.support.cluster import Cluster, cluster_of
from tests.support.commands import controller_in_this_process
from tests.support.reassigning import create_topic, hosts
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, pytest.mark.slow, soak("controller")]

TOPIC = "left-by-a-broker"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """One of its own: brokers go on telling clients of what is left behind."""
    with cluster_of("3.9.1") as own:
        yield own


def test_replicas_of_a_topic_that_nobody_knows_are_named_by_broker(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A StopReplica that never arrived looks like a topic whose znodes somebody has removed."""
    create_topic(cluster, TOPIC, {0: [1, 2], 1: [2, 3]})
    cluster.tools.produce(TOPIC, ["a record"])
    cluster.kill_broker(3)
    cluster.znodes.client.delete(f"/brokers/topics/{TOPIC}", recursive=True)
    monkeypatch.setattr(unassigned_replicas, "SOON_MS", 1)
    with controller_in_this_process(cluster, 1_000_000_555) as service:

        def reported() -> set[tuple[int, int]]:
            status: Any = service.status()
            return {
                (each["partition"], each["broker_id"])
                for each in status["unassignedReplicas"]["sample"]
                if each["topic"] == TOPIC
            }

        live = {(0, 1), (0, 2), (1, 2)}
        cluster.wait(reported, "the live brokers' replicas", until=lambda found: found == live)
        cluster.broker(3).start()
        every = {*live, (1, 3)}
        cluster.wait(reported, "those of the started one", until=lambda found: found == every)
        cluster.wait(
            lambda: service.gauges.unassigned_replicas_count,
            "as many to be counted",
            until=lambda count: count == len(every),
        )
    assert [hosts(cluster, TOPIC, partition) for partition in (0, 1)] == [[1, 2], [2, 3]]
