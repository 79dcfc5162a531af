"""What the hook answers where the API server refuses it something."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from regent.kube.client import KubeClient
from regent.kube.errors import KubeApiError
from regent.kube.eviction.hook import EvictionHook
from regent.kube.eviction.reviews import EvictionReview, Verdict
from regent.kube.settings import KubeSettings
from tests.unit.kube.eviction.builders import NOW, SETTINGS, pod
from tests.unit.kube.small_server import Credentials, Server, serving

DRAINS = "/apis/kafka.regent.dev/v1alpha1/namespaces/{}/brokerdrains"


class Cluster(Server):
    """Has one pod, and no BrokerDrains.

    Attributes:
        statuses: Of the answers to what is not granted, by method and path.
    """

    def __init__(self) -> None:
        super().__init__()
        self.statuses: dict[tuple[str, str], int] = {}
        self.created: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        status = self.statuses.get((request.method, request.path))
        if status is not None:
            return web.json_response({"kind": "Status", "message": "not granted"}, status=status)
        if request.path.startswith("/api/v1/"):
            return web.json_response({"kind": "Pod", **with_version(pod())})
        if request.method == "POST":
            body = await request.json()
            self.created.append(body["metadata"]["name"])
            return web.json_response(with_version(body), status=201)
        page = {"kind": "BrokerDrainList", "metadata": {"resourceVersion": "3"}, "items": []}
        return web.json_response(page)


def with_version(body: dict[str, Any]) -> dict[str, Any]:
    known = json.loads(json.dumps(body))
    known["metadata"] |= {"uid": "uid-1", "resourceVersion": "1"}
    return dict(known)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    fake = Cluster()
    async with serving(fake) as fake.url:
        yield fake


async def asked(cluster: Cluster, *namespaces: str) -> Verdict:
    settings = KubeSettings(namespaces=namespaces)
    async with KubeClient(
        max_connections=4, request_timeout_s=60, credentials=Credentials(cluster)
    ) as client:
        hook = EvictionHook(client, SETTINGS, settings, now=lambda: NOW)
        return await hook.verdict(EvictionReview("u", "kafka", "broker-4", is_dry_run=False))


async def test_a_namespace_that_may_not_be_read_keeps_no_broker_from_being_drained(
    cluster: Cluster,
) -> None:
    """It has been deleted, and its Role with it. A Regent that cannot answer lets the pod go."""
    cluster.statuses["GET", DRAINS.format("gone")] = 403
    verdict = await asked(cluster, "gone", "kafka")
    assert verdict.refused_with == 429
    assert "BrokerDrain kafka/eviction-broker-4 was created" in verdict.message
    assert cluster.created == ["eviction-broker-4"]


@pytest.mark.parametrize("namespaces", [("kafka",), ()])
async def test_a_pod_stays_if_its_drain_may_not_be_looked_for(
    cluster: Cluster, namespaces: tuple[str, ...]
) -> None:
    everywhere = "/apis/kafka.regent.dev/v1alpha1/brokerdrains"
    for path in (DRAINS.format("kafka"), everywhere):
        cluster.statuses["GET", path] = 403
    verdict = await asked(cluster, *namespaces)
    assert verdict.refused_with == 429
    assert "refuses to list BrokerDrains" in verdict.message
    assert "not granted" in verdict.message


async def test_a_pod_stays_whose_drain_may_not_be_made(cluster: Cluster) -> None:
    cluster.statuses["POST", DRAINS.format("kafka")] = 403
    verdict = await asked(cluster, "kafka")
    assert verdict.refused_with == 429
    assert "refuses BrokerDrain kafka/eviction-broker-4" in verdict.message


async def test_who_evicts_learns_that_the_namespace_of_drains_is_missing(cluster: Cluster) -> None:
    """That is no change by somebody else."""
    cluster.statuses["POST", DRAINS.format("kafka")] = 404
    verdict = await asked(cluster, "kafka")
    assert verdict.refused_with == 429
    assert verdict.message.endswith("not granted")


async def test_without_an_answer_the_failure_policy_decides(cluster: Cluster) -> None:
    cluster.statuses["GET", DRAINS.format("kafka")] = 500
    with pytest.raises(KubeApiError):
        await asked(cluster, "kafka")
