"""A small HTTP server in the place of the API server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import kopf
from aiohttp import web

from regent.resources.kafka_topic import KafkaTopic

TOPIC = KafkaTopic.kind
LIST = {"kind": "KafkaTopicList", "metadata": {"resourceVersion": "3"}}
OLD = {"resourceVersion": "3", "continue": "old"}
GRANTED = {"kind": "SelfSubjectAccessReview", "metadata": {}, "status": {"allowed": True}}
STORED = {"name": "thing", "uid": "u", "resourceVersion": "1"}
THING = {"kind": "Thing", "metadata": STORED}


class Server:
    """Answers as told and remembers what it was asked."""

    def __init__(self) -> None:
        self.valid_token = "one"
        self.answers: list[web.Response] = []
        self.requests: list[tuple[str, str, str, str]] = []
        self.url = ""
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def handle(self, request: web.Request) -> web.Response:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        body = (await request.read()).decode()
        self.requests.append(
            (request.method, str(request.rel_url), request.headers.get("Content-Type", ""), body)
        )
        self.asked.set()
        await self.gate.wait()
        if token != self.valid_token:
            return web.json_response({"message": "who are you"}, status=401)
        return self.answers.pop(0) if self.answers else web.json_response(THING)


@asynccontextmanager
async def serving(fake: Server, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve it; its URL."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    port = runner.addresses[0][1]
    yield f"{'http' if context is None else 'https'}://127.0.0.1:{port}"
    await runner.cleanup()


async def with_authority(url: str, authority: Path) -> kopf.ConnectionInfo:
    return kopf.ConnectionInfo(server=url, ca_path=str(authority), token="one")


class Credentials:
    """What a login reads; counts how often."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.token = "one"
        self.reads = 0

    async def __call__(self) -> kopf.ConnectionInfo:
        self.reads += 1
        return kopf.ConnectionInfo(server=self._server.url, token=self.token)
