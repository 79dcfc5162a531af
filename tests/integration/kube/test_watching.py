"""List and watch against a real API server: nothing between them is missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from regent.kube.claim_index import ClaimIndex
from regent.kube.client import KubeClient
from regent.kube.health import KindHealth
from regent.kube.object_cache import ObjectCache, ObjectKey
from regent.kube.resync import Resync
from regent.kube.settings import KubeSettings
from regent.kube.waiting import cancel
from regent.kube.watching import watch_kind, watch_namespace
from regent.reconcile.topics.kind import KAFKA_TOPIC
from tests.integration.kube.conftest import Namespace, topic, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("kubeconfig")]


class CountingClient(KubeClient):
    """Counts the lists that are asked for."""

    lists = 0

    async def get(self, path: str, *, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        self.lists += "limit" in (query or {})
        return await super().get(path, query=query)


class Bench:
    def __init__(self, namespace: Namespace, client: CountingClient) -> None:
        self.namespace = namespace
        self.client = client
        self.cache = ObjectCache("KafkaTopic", ClaimIndex(KAFKA_TOPIC))
        self.resync = Resync(
            client,
            KAFKA_TOPIC.kind,
            KubeSettings(namespaces=(namespace.name,)),
            cache=self.cache,
            health=KindHealth("KafkaTopic"),
            jitter=lambda: 0.0,
            on_news=lambda _: None,
            on_resync=lambda: None,
        )

    def take(self, type_: str, body: Mapping[str, Any]) -> None:
        if type_ == "DELETED":
            self.cache.delete(self.cache.key_of(body), uid=body["metadata"]["uid"])
        else:
            self.cache.put(body)

    def knows(self, *names: str) -> bool:
        keys = {ObjectKey("KafkaTopic", self.namespace.name, name) for name in names}
        return set(self.cache.keys()) == keys

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        task = asyncio.create_task(
            watch_kind(
                self.client,
                KAFKA_TOPIC.kind,
                self.resync,
                on_event=self.take,
                jitter=lambda: 0.0,
            )
        )
        try:
            yield
            assert not task.done()
        finally:
            await cancel((task,))


@pytest.fixture
async def bench(namespace: Namespace, kubeconfig: None) -> AsyncIterator[Bench]:
    async with CountingClient(max_connections=4, request_timeout_s=30) as client:
        yield Bench(namespace, client)


async def test_what_is_deleted_between_the_list_and_the_watch_is_no_ghost(
    namespace: Namespace, bench: Bench
) -> None:
    namespace.apply(topic("stays"), topic("goes"))
    await bench.resync.load()
    assert bench.knows("stays", "goes")
    namespace.delete("goes")
    namespace.apply(topic("comes"))
    async with bench.watching():
        await wait_for(lambda: bench.knows("stays", "comes"), describe="both changes")
    assert bench.client.lists == 1, "the watch has shown it, and no further list"


async def test_what_is_deleted_while_no_watch_runs_is_no_ghost(
    namespace: Namespace, bench: Bench
) -> None:
    namespace.apply(topic("stays"), topic("goes"))
    async with bench.watching():
        await wait_for(lambda: bench.knows("stays", "goes"), describe="the list")
    namespace.delete("goes")
    async with bench.watching():
        await wait_for(lambda: bench.knows("stays"), describe="the deletion")
    assert bench.client.lists == 1


async def test_a_version_that_the_api_server_has_forgotten_takes_a_new_list(
    namespace: Namespace, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace.apply(topic("stays"), topic("goes"))
    await bench.resync.load()
    async with asyncio.timeout(120):
        await watch_namespace(
            bench.client,
            KAFKA_TOPIC.kind,
            namespace.name,
            since="1",
            on_event=lambda *_: None,
            jitter=lambda: 0.0,
        )
    namespace.delete("goes")
    monkeypatch.setattr(Resync, "watched", {namespace.name: "1"}, raising=True)
    async with bench.watching():
        await wait_for(lambda: bench.knows("stays"), describe="the deletion to show in a list")
    assert bench.client.lists >= 2
