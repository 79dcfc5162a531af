"""kopf's stream and the lists beside it, against a small API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from kopf._cogs.clients.errors import APIError, check_response

from regent.kube.client import KubeClient
from regent.kube.watching import reason_of
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.resources.kind import API_VERSION, GROUP, VERSION
from tests.support.kind_watch import WatchedTopics
from tests.support.kubernetes_proxy import KubernetesProxy
from tests.unit.kube.small_server import GRANTED

NAMESPACE = "shop"
_KIND = KAFKA_TOPIC.kind
COLLECTION = _KIND.collection_path(NAMESPACE)


def _described(plural: str, kind: str, *, is_namespaced: bool = True) -> dict[str, Any]:
    return {
        "name": plural,
        "kind": kind,
        "singularName": kind.lower(),
        "namespaced": is_namespaced,
        "verbs": ["get", "list", "patch", "watch"],
    }


class SmallApiServer:
    """KafkaTopics of one namespace: list, watch and what kopf asks for before it watches.

    Attributes:
        refusals: HTTP statuses of the next lists, ``watch_refusals`` those of the next watches.
    """

    def __init__(self) -> None:
        self.refusals: list[int] = []
        self.watch_refusals: list[int] = []
        self._objects: dict[str, dict[str, Any]] = {}
        self._events: list[dict[str, Any]] = []
        self._version = 1
        self._changed = asyncio.Condition()

    async def create(self, *names: str) -> None:
        for name in names:
            self._version += 1
            body = {
                "apiVersion": API_VERSION,
                "kind": _KIND.kind,
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    "uid": f"uid-{self._version}",
                    "resourceVersion": str(self._version),
                },
                "spec": {"partitions": 1, "replicas": 1},
            }
            self._objects[name] = body
            await self._report("ADDED", body)

    async def delete(self, *names: str) -> None:
        for name in names:
            self._version += 1
            body = self._objects.pop(name)
            body["metadata"]["resourceVersion"] = str(self._version)
            await self._report("DELETED", body)

    async def _report(self, type_: str, body: dict[str, Any]) -> None:
        self._events.append({"type": type_, "object": json.loads(json.dumps(body))})
        async with self._changed:
            self._changed.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        group_version = {"groupVersion": API_VERSION, "version": VERSION}
        documents: dict[str, Any] = {
            "/api": {"versions": ["v1"]},
            "/api/v1": {"resources": [_described("namespaces", "Namespace", is_namespaced=False)]},
            "/apis": {
                "groups": [
                    {
                        "name": GROUP,
                        "versions": [group_version],
                        "preferredVersion": group_version,
                    }
                ]
            },
            f"/apis/{API_VERSION}": {"resources": [_described(_KIND.plural, _KIND.kind)]},
        }
        if request.path == COLLECTION:
            return await (self._watch if "watch" in request.query else self._list)(request)
        if request.path.endswith("/selfsubjectaccessreviews"):
            return web.json_response(GRANTED)
        assert request.path in documents, request.path
        return web.json_response(documents[request.path])

    async def _list(self, request: web.Request) -> web.Response:
        is_of_kopf = request.headers.get("User-Agent", "").startswith("kopf/")
        if self.refusals and not is_of_kopf:
            return web.json_response({"message": "not now"}, status=self.refusals.pop(0))
        return web.json_response(
            {
                "kind": f"{_KIND.kind}List",
                "metadata": {"resourceVersion": str(self._version)},
                "items": list(self._objects.values()),
            }
        )

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        if self.watch_refusals:
            status = self.watch_refusals.pop(0)
            return web.json_response({"message": "too old", "code": status}, status=status)
        since = int(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        sent = 0
        while True:
            for event in self._events[sent:]:
                if int(event["object"]["metadata"]["resourceVersion"]) > since:
                    await response.write(json.dumps(event).encode() + b"\n")
            sent = len(self._events)
            async with self._changed:
                await self._changed.wait_for(lambda: len(self._events) > sent)  # noqa: B023


@pytest.fixture
async def server() -> SmallApiServer:
    return SmallApiServer()


@pytest.fixture
async def proxy(
    server: SmallApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[KubernetesProxy]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with KubernetesProxy(_KIND, url) as between:
        monkeypatch.setenv("KUBECONFIG", str(between.kubeconfig(tmp_path / "kubeconfig")))
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        yield between
    await runner.cleanup()


@pytest.fixture
async def client() -> AsyncIterator[KubeClient]:
    async with KubeClient(max_connections=4, request_timeout_s=30) as opened:
        yield opened


async def refusal_of(status: int, body: str) -> Exception:
    """What kopf raises for an answer."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    app = web.Application()
    app.router.add_get("/", answer)
    async with TestClient(TestServer(app)) as http, http.get("/") as response:
        with pytest.raises(APIError) as refused:
            await check_response(response)
    return refused.value


async def test_an_answer_without_a_body_is_named_by_its_status() -> None:
    assert "502" in reason_of(await refusal_of(502, ""))
    assert reason_of(await refusal_of(502, "no upstream")) == "no upstream"
    assert reason_of(TimeoutError()) == "TimeoutError()"


async def test_what_the_stream_shows_costs_no_second_list(
    server: SmallApiServer, proxy: KubernetesProxy, client: KubeClient
) -> None:
    await server.create("a", "b")
    topics = WatchedTopics(client, NAMESPACE)
    async with topics.watching():
        await topics.wait_confirmed()
        await server.create("c")
        await server.delete("a")
        await topics.wait_known("b", "c")
    assert proxy.lists == 2, "Regent's first list and kopf's"


async def test_what_is_deleted_between_the_lists_is_looked_up_once(
    server: SmallApiServer, proxy: KubernetesProxy, client: KubeClient
) -> None:
    await server.create("stays", "goes")
    topics = WatchedTopics(client, NAMESPACE)
    await topics.resync.load()
    await topics.wait_known("stays", "goes")
    await server.delete("goes")
    async with topics.watching():
        await topics.wait_known("stays")
        await topics.wait_confirmed()
    assert proxy.lists == 3


async def test_if_everything_is_deleted_between_the_lists_it_is_found(
    server: SmallApiServer, proxy: KubernetesProxy, client: KubeClient
) -> None:
    await server.create("goes", "too")
    topics = WatchedTopics(client, NAMESPACE, silent_after_s=0.5)
    await topics.resync.load()
    await server.delete("goes", "too")
    async with topics.watching():
        await topics.wait_known()


async def test_a_look_up_that_fails_is_repeated(
    server: SmallApiServer, proxy: KubernetesProxy, client: KubeClient
) -> None:
    await server.create("stays", "goes")
    topics = WatchedTopics(client, NAMESPACE, silent_after_s=0.5)
    await topics.resync.load()
    await server.delete("goes")
    server.refusals = [500, 403]
    async with topics.watching():
        await topics.wait_known("stays")
    assert server.refusals == []


async def test_a_version_that_is_forgotten_is_listed_again_whichever_way_the_server_says_it(
    server: SmallApiServer,
    proxy: KubernetesProxy,
    client: KubeClient,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By the status of its answer, or in a stream that has begun."""
    caplog.set_level("WARNING", "regent.kube.watching")
    await server.create("stays")
    server.watch_refusals = [410, 410]
    topics = WatchedTopics(client, NAMESPACE)
    async with topics.watching():
        await topics.wait_confirmed()
        await server.create("comes")
        await topics.wait_known("stays", "comes")
        await proxy.wait_for_lists(4)
    assert server.watch_refusals == []
    assert caplog.records == [], "the watch was not made anew with all that is before it"


async def test_what_is_deleted_while_the_watch_cannot_go_on_is_looked_up(
    server: SmallApiServer, proxy: KubernetesProxy, client: KubeClient
) -> None:
    await server.create("stays", "goes")
    topics = WatchedTopics(client, NAMESPACE)
    async with topics.watching():
        await topics.wait_confirmed()
        async with proxy.losing_events():
            await server.delete("goes")
            await server.create("comes")
        await topics.wait_known("stays", "comes")
    assert proxy.watches >= 2
