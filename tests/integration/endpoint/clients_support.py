"""Clusters for clients that know Regent's address only."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import KafkaTools
from sandbox.ports import lease_port
from sandbox.regent_process import RegentProcess
from tests.integration.endpoint.stopping import spread_topic
from tests.support.cluster import Cluster, controller_id_of, regent
from tests.support.soak import versions

TOPIC = "watched"
PARTITIONS = 6
SETTINGS: dict[str, Any] = {
    "endpoint_port": 0,
    "endpoint_announced_listeners": "BROKERS,PLAINTEXT",
    "endpoint_listener": "PLAINTEXT",
}
"""Clients see Regent, too."""


def brokers_of(*gate: str, others: Iterable[str] = ()) -> pytest.MarkDecorator:
    """Return the mark of tests with brokers of several versions."""
    chosen = versions(*gate, others=others)
    return pytest.mark.parametrize("version", chosen, indirect=True, scope="module")


def served_requests(process: RegentProcess, api: str) -> int:
    """Requests of an API that have reached the endpoint of a Regent."""
    pattern = rf'^regent_endpoint_requests_total{{api="{api}"}} (\d+)'
    found = re.search(pattern, process.metrics(), re.MULTILINE)
    return 0 if found is None else int(found[1])


class ServedCluster:
    """A cluster led by a Regent that clients see.

    Attributes:
        address: Of Regent's endpoint.
        command_config: A file with properties for Kafka's tools, if they need any.
    """

    def __init__(self, cluster: Cluster, process: RegentProcess) -> None:
        self.cluster = cluster
        self.process = process
        status = cluster.wait(process.status, "the status")
        self.address = str(status["endpoint"]["served"]["PLAINTEXT"])
        self.controller_id = controller_id_of(process)
        self.command_config: Path | None = None

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def tools(self, release: str) -> KafkaTools:
        """Kafka's tools with Regent's address."""
        return KafkaTools(self.address, version=release, zookeeper=self.cluster.kafka.zookeeper)

    def tools_at_a_broker(self, release: str) -> KafkaTools:
        """The same with a broker's address."""
        return KafkaTools(self.cluster.running[0].bootstrap_servers, version=release)

    def requests(self, api: str) -> int:
        """Requests of an API that have reached the endpoint."""
        return served_requests(self.process, api)

    def wait_until_announced(self) -> None:
        """Wait until every running broker shows Regent to clients."""
        for broker in self.cluster.running:
            self.cluster.wait(
                lambda broker_id=broker.broker_id: self.cluster.metadata(broker_id).brokers,  # type: ignore[misc]
                "Regent to be announced",
                until=lambda brokers: self.controller_id in brokers,
            )


@contextlib.contextmanager
def served_cluster(cluster: Cluster) -> Iterator[ServedCluster]:
    """Regent leads the brokers, which host a topic, all of them."""
    spread_topic(cluster, TOPIC, PARTITIONS)
    with (
        lease_port() as lease,  # which it keeps over restarts
        regent(cluster, **{**SETTINGS, "endpoint_port": lease.port}) as process,
    ):
        process.wait_until_active()
        served = ServedCluster(cluster, process)
        served.wait_until_announced()
        yield served
