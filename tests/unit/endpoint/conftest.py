"""A live controller of three simulated brokers, and its endpoint."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.endpoint import LocalEndpoint
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with SimulatedCluster(brokers=3) as cluster:
        yield cluster


@pytest.fixture
def endpoint() -> LocalEndpoint:
    return LocalEndpoint()


@pytest.fixture
def controller(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> Iterator[LiveController]:
    with LiveController(cluster, serve=endpoint.serve) as controller:
        yield controller
