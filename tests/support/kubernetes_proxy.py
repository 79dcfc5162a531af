"""Between Kubernetes clients in this process and an API server: counts, holds up and loses."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import yaml
from aiohttp import web

from regent.kube.waiting import cancel
from regent.resources.kind import ResourceKind
from sandbox import wait_until_async

_GONE = {
    "type": "ERROR",
    "object": {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "too old resource version: 1 (2)",
        "reason": "Expired",
        "code": 410,
    },
}


class _Watch:
    """A watch that is open, until it is deaf or its version has been forgotten."""

    def __init__(self) -> None:
        self.is_deaf = False
        self.expired = asyncio.Event()

    async def pass_lines(
        self, answer: aiohttp.ClientResponse, response: web.StreamResponse
    ) -> None:
        rest = b""
        async for chunk in answer.content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if not self.is_deaf:
                    await response.write(line + b"\n")


class KubernetesProxy:
    """Passes everything on, and does to what is asked about one kind what a test wants.

    Args:
        authority: What to verify the API server with; None: it speaks plain HTTP.

    Attributes:
        held: How many writes wait for :meth:`release_writes`.
    """

    def __init__(
        self, kind: ResourceKind, server: str, *, token: str = "", authority: Path | None = None
    ) -> None:
        self.lists = self.watches = self.held = 0
        self._kind = kind
        self._server = server
        self._headers = {"Authorization": f"Bearer {token}"}
        self._tls = ssl.create_default_context(cafile=str(authority)) if authority else None
        self._may_list = asyncio.Event()
        self._may_list.set()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._writes_take_s = 0.0
        self._open: set[_Watch] = set()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls or True),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._may_list.set()
        self._may_write.set()
        await self._runner.cleanup()
        await self._session.close()

    def kubeconfig(self, path: Path) -> Path:
        """A kubeconfig for this proxy, written to a file."""
        server = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "proxy", "cluster": {"server": server}}],
                    "users": [{"name": "proxy", "user": {"token": "any"}}],
                    "contexts": [
                        {"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}
                    ],
                    "current-context": "proxy",
                }
            )
        )
        return path

    def hold_lists_of_kopf(self) -> None:
        """Lists that kopf asks for from now on wait, those of Regent do not."""
        self._may_list.clear()

    def release_lists(self) -> None:
        """Lists need not wait any more."""
        self._may_list.set()

    def hold_writes(self) -> None:
        """Writes of objects that are asked for from now on wait."""
        self._may_write.clear()

    def slow_writes(self, answered_after_s: float) -> None:
        """Writes of objects that are asked for from now on are carried out after this time."""
        self._writes_take_s = answered_after_s

    def release_writes(self) -> None:
        """Writes need not wait any more."""
        self._may_write.set()

    async def wait_for_held(self, count: int) -> None:
        """Wait until so many writes wait."""

        async def waiting() -> bool:
            return self.held >= count

        await wait_until_async(waiting, describe=f"{count} writes to wait")

    async def wait_for_lists(self, count: int) -> None:
        """Wait until so many lists have been asked for."""

        async def asked_for() -> bool:
            return self.lists >= count

        await wait_until_async(asked_for, describe=f"{count} lists to be asked for")

    @asynccontextmanager
    async def losing_events(self) -> AsyncIterator[None]:
        """The watches show nothing that happens within, and at the end the API server has forgotten
        their version (410)."""

        async def is_watching() -> bool:
            return bool(self._open)

        await wait_until_async(is_watching, describe="a watch to begin")
        lost = set(self._open)
        for watch in lost:
            watch.is_deaf = True
        yield
        for watch in lost:
            watch.expired.set()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        is_listed = request.method == "GET" and request.path.endswith(f"/{self._kind.plural}")
        if is_listed and request.query.get("watch") == "true":
            return await self._watch(request)
        if is_listed:
            self.lists += 1
            if request.headers.get("User-Agent", "").startswith("kopf/"):
                await self._may_list.wait()
        if request.method == "PATCH" and f"/{self._kind.plural}/" in request.path:
            await self._hold()
        async with self._ask(request, data=await request.read()) as answer:
            return web.Response(
                status=answer.status, body=await answer.read(), content_type=answer.content_type
            )

    async def _hold(self) -> None:
        self.held += 1
        await self._may_write.wait()
        await asyncio.sleep(self._writes_take_s)
        self.held -= 1

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.watches += 1
        response = web.StreamResponse()
        async with self._ask(request) as answer:
            response.set_status(answer.status)
            await response.prepare(request)
            watch = _Watch()
            passing = asyncio.create_task(watch.pass_lines(answer, response))
            expiring = asyncio.create_task(watch.expired.wait())
            self._open.add(watch)
            try:
                await asyncio.wait((passing, expiring), return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._open.discard(watch)
                await cancel((passing, expiring))
            if watch.expired.is_set():
                await response.write(json.dumps(_GONE).encode() + b"\n")
            return response

    def _ask(
        self, request: web.Request, *, data: bytes = b""
    ) -> aiohttp.client._RequestContextManager:
        headers: Mapping[str, Any] = {
            name: value
            for name, value in request.headers.items()
            if name in ("Accept", "Content-Type")
        }
        return self._session.request(
            request.method,
            self._server + request.path_qs,
            data=data or None,
            headers={**headers, **self._headers},
        )
