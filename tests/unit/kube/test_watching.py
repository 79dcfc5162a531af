"""Watches across ends, failures and objects of any size, against a small HTTP server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import kopf
import pytest
from aiohttp import web

from regent.kube.client import KubeClient
from regent.kube.errors import KubeApiError
from regent.kube.watching import watch_namespace
from regent.resources.kafka_topic import KafkaTopic

GONE = {"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}


def event(type_: str, name: str, version: int, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "resourceVersion": str(version)}
    return {"type": type_, "object": {"metadata": metadata, "spec": spec}}


def bookmark(version: int) -> dict[str, Any]:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


class Watched:
    """An API server that answers each watch with the next of its streams: events, or a status."""

    def __init__(self, *streams: list[dict[str, Any]] | int, cut: bool = False) -> None:
        self._streams = list(streams)
        self._cut = cut
        self.queries: list[Mapping[str, str]] = []
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.seen: list[tuple[str, str]] = []

    @property
    def since(self) -> list[str]:
        return [query["resourceVersion"] for query in self.queries]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.queries.append(dict(request.query))
        stream = self._streams.pop(0)
        if isinstance(stream, int):
            return web.json_response({"message": "no"}, status=stream)
        response = web.StreamResponse()
        await response.prepare(request)
        for each in stream:
            await response.write(json.dumps(each).encode() + b"\n")
        await self.may_end.wait()
        if self._cut and self._streams:
            assert request.transport is not None
            request.transport.abort()
        return response

    @asynccontextmanager
    async def client(self) -> AsyncIterator[KubeClient]:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()

        async def credentials() -> kopf.ConnectionInfo:
            return kopf.ConnectionInfo(server=f"http://127.0.0.1:{runner.addresses[0][1]}")

        try:
            async with KubeClient(
                max_connections=1, request_timeout_s=30, credentials=credentials
            ) as client:
                yield client
        finally:
            await runner.cleanup()

    async def watch(self) -> None:
        async with self.client() as client:
            await watch_namespace(
                client,
                KafkaTopic.kind,
                "shop",
                since="7",
                on_event=self._take,
                jitter=lambda: 0.0,
            )

    def _take(self, type_: str, body: Mapping[str, Any]) -> None:
        self.seen.append((type_, body["metadata"]["name"]))


async def test_a_watch_goes_on_from_the_last_version_it_has_shown() -> None:
    server = Watched(
        [event("ADDED", "a", 8), event("MODIFIED", "a", 9)],
        [event("DELETED", "a", 12)],
        [GONE],
    )
    await server.watch()
    assert server.since == ["7", "9", "12"]
    assert server.seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_bookmark_moves_the_version_and_is_no_event() -> None:
    server = Watched([bookmark(50)], [GONE])
    await server.watch()
    assert server.since == ["7", "50"]
    assert server.seen == []
    assert server.queries[0]["allowWatchBookmarks"] == "true"


async def test_a_connection_that_is_cut_loses_nothing() -> None:
    server = Watched([event("ADDED", "a", 8)], [event("DELETED", "a", 9)], [GONE], cut=True)
    await server.watch()
    assert ("DELETED", "a") in server.seen
    assert server.since[-1] in ("8", "9"), "from what was shown, and no version is made up"


@pytest.mark.parametrize("failure", [429, 500, 503])
async def test_an_api_server_in_trouble_is_tried_again(failure: int) -> None:
    server = Watched(failure, [event("ADDED", "a", 8)], [GONE])
    await server.watch()
    assert server.since == ["7", "7", "8"]


async def test_a_version_that_is_not_known_any_more_ends_the_watch() -> None:
    for stream in ([GONE], 410):
        server = Watched(stream)
        await server.watch()
        assert server.seen == []


@pytest.mark.parametrize("status", [403, 404])
async def test_a_refusal_is_raised(status: int) -> None:
    with pytest.raises(KubeApiError) as raised:
        await Watched(status).watch()
    assert raised.value.status == status


async def test_an_object_may_be_larger_than_what_is_read_at_a_time() -> None:
    large = [event("ADDED", "large", 8, config={"x": "y" * 3_000_000}), event("ADDED", "b", 9)]
    server = Watched(large, [GONE])
    await server.watch()
    assert server.seen == [("ADDED", "large"), ("ADDED", "b")]


async def test_streams_take_no_connection_from_requests() -> None:
    """A client with one connection still writes while it watches."""
    server = Watched([bookmark(8)], 404)
    server.may_end.clear()
    async with server.client() as client:
        stream = client.stream("/watch", query={"resourceVersion": "7"}, silent_after_s=30)
        assert await anext(stream) == bookmark(8)
        with pytest.raises(KubeApiError):
            await client.request("GET", "/other", query={})
        server.may_end.set()
        await stream.aclose()
