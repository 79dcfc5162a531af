"""The HTTP sessions of kopf's watch streams: kopf begins a watch that has ended again at once, and
waits as long as a server says. Both are bounded here. It also uses a session for as long as it is
not refused (401): one whose certificates are out of date is found out here. And it asks once what
kinds there are, and never watches one that is not there at that moment.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable, Collection, Set
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import aiohttp
import kopf
from aiohttp.base_protocol import BaseProtocol

from regent.kube.client import retry_after_s, ssl_context, transport_of
from regent.kube.errors import KubeError, KubeLoginError
from regent.kube.login import login
from regent.kube.work_queue import backoff_s
from regent.resources.kind import API_VERSION, GROUP, ResourceKind

logger = logging.getLogger(__name__)

PAUSE_MAX_S: Final = 5.0
"""Between the beginnings of two watches of the same objects, at most: the second one shows what has
happened meanwhile."""

RELIST_PAUSE_MAX_S: Final = 30.0
"""Between two lists, at most, as long as each version is forgotten at once: as client-go does."""

_REPORTED_AFTER: Final = 5
"""So many watches in a row ended as soon as they had begun: that is no restart of a server."""

_WAIT_UNASKED_S: Final = 1.0

_FORGOTTEN: Final = (
    b'{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}\n'
)


class WatchPacing:
    """An aiohttp middleware for watches and the lists before them.

    - Watches of the same objects begin with growing pauses as long as they end at once, whoever
      ends them: a proxy that knows no streams, an API server that is about to end.
    - kopf lists again where the API server has forgotten the version of a watch (410). As long as
      that happens again at once, lists begin with growing pauses, too: a list is of everything.
    - A server may say that by the status of its answer, too, which would end kopf: it gets
      that as it knows it, by the stream.
    - Who asks for fewer requests (429) is asked again after the time that it wants, up to a minute.
    """

    def __init__(self, *, jitter: Callable[[], float] = random.random) -> None:
        self._jitter = jitter
        self._began_at: dict[str, float] = {}
        self._brief: dict[str, int] = {}
        self._is_listed: dict[str, bool] = {}
        self._forgotten: dict[str, int] = {}

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        is_watch = request.url.query.get("watch") == "true"
        if is_watch:
            await self._turn(request.url.path)
        else:
            await self._turn_of_list(request.url.path)
        response = await handler(request)
        while response.status == HTTPStatus.TOO_MANY_REQUESTS:
            wanted_s = retry_after_s(response.headers.get("Retry-After"))
            response.release()
            await asyncio.sleep(max(wanted_s or 0.0, _WAIT_UNASKED_S))
            response = await handler(request)
        if is_watch and response.status == HTTPStatus.GONE:
            _tell_by_stream(response)
        return response

    async def _turn(self, path: str) -> None:
        """Wait until a watch of these objects may begin."""
        now = asyncio.get_running_loop().time
        since_s = now() - self._began_at.get(path, float("-inf"))
        count = self._brief.get(path, 0) + 1 if since_s < PAUSE_MAX_S else 0
        self._brief[path] = count
        if count == _REPORTED_AFTER:
            logger.warning(
                "Watches end as soon as they have begun, they are begun with pauses now: does what "
                "is in front of the API server pass on answers that have no end?",
                extra={"path": path},
            )
        if count:
            pause_s = min(PAUSE_MAX_S, backoff_s(count, jitter=1.0))
            await asyncio.sleep(max(0.0, pause_s - since_s))
        self._began_at[path] = now()
        self._is_listed[path] = False

    async def _turn_of_list(self, path: str) -> None:
        """Wait until a list of these objects may begin. The first one after a watch says that its
        version is forgotten."""
        if self._is_listed.get(path, True):
            return
        self._is_listed[path] = True
        since_s = asyncio.get_running_loop().time() - self._began_at[path]
        count = self._forgotten.get(path, 0) + 1 if since_s < RELIST_PAUSE_MAX_S else 0
        self._forgotten[path] = count
        if count == _REPORTED_AFTER:
            logger.warning(
                "The API server forgets the versions of its lists at once (410), so nothing can be "
                "watched; lists begin with pauses now",
                extra={"path": path},
            )
        if count > 1:
            await asyncio.sleep(
                min(RELIST_PAUSE_MAX_S, backoff_s(count - 1, jitter=self._jitter()))
            )


def _tell_by_stream(response: aiohttp.ClientResponse) -> None:
    """Make of an answer a stream that says that the version is forgotten."""
    response.release()
    loop = asyncio.get_running_loop()
    stream = aiohttp.StreamReader(BaseProtocol(loop), limit=2**16, loop=loop)
    stream.feed_data(_FORGOTTEN)
    stream.feed_eof()
    response.status, response.content = HTTPStatus.OK, stream


class RenewalCheck:
    """An aiohttp middleware: when the API server cannot be reached, it looks whether its address or
    certificates are others by now than those that the session is bound to.

    Args:
        transport: What the session is bound to.
        on_outdated: Called when another session could be made that is bound to something else.
    """

    def __init__(self, transport: tuple[object, ...], on_outdated: Callable[[], None]) -> None:
        self._transport = transport
        self._on_outdated = on_outdated

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        try:
            return await handler(request)
        except aiohttp.ClientConnectionError:
            if await self._is_outdated():
                logger.info("The API server's address or certificates are others by now")
                self._on_outdated()
            raise

    async def _is_outdated(self) -> bool:
        try:
            info = await login()
            ssl_context(info)  # somebody may just be writing the files
        except KubeLoginError:
            return False
        return await asyncio.to_thread(transport_of, info) != self._transport


class DiscoveryCheck:
    """An aiohttp middleware: kopf looks once, when it begins, which kinds the API server knows. One
    that is not among them it leaves out without a word for as long as it runs. Who has
    listed a kind knows that it is there, or was a moment ago: its definition may be about to go,
    or another API server may not show it yet. So such a look fails, and kopf is begun anew.

    Args:
        kinds: What is to be watched.
    """

    def __init__(self, kinds: Collection[ResourceKind]) -> None:
        self._kinds = kinds

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        path = request.url.path
        if path.endswith("/apis"):
            await self._expect({GROUP}, response, "groups")
        elif path.endswith(f"/apis/{API_VERSION}"):
            await self._expect({kind.plural for kind in self._kinds}, response, "resources")
        return response

    async def _expect(self, names: Set[str], response: aiohttp.ClientResponse, field_: str) -> None:
        if response.status == HTTPStatus.NOT_FOUND:
            found: set[Any] = set()
        elif response.status == HTTPStatus.OK:
            listed = json.loads(await response.read()).get(field_)
            found = {each.get("name") for each in listed or ()}
        else:
            return  # kopf deals with it
        missing = sorted(names - found) if self._kinds else ()
        if missing:
            raise KubeError(
                f"the API server does not show {', '.join(missing)} among its {field_} (yet)"
            )


@dataclass(frozen=True, kw_only=True)
class _Login(kopf.AiohttpSession):
    """A session. It is the same login as another one with the same credentials: by that kopf knows
    those that were refused."""

    credentials: kopf.ConnectionInfo
    aiohttp_session: aiohttp.ClientSession = field(compare=False)


class WatchSessions:
    """Makes the sessions of one run of kopf.

    Args:
        kinds: What it watches.
        on_outdated: Called when such a run should end, as new sessions would be bound to another
            address or to other certificates.
    """

    def __init__(
        self,
        kinds: Collection[ResourceKind] = (),
        *,
        on_outdated: Callable[[], None] = lambda: None,
    ) -> None:
        self._discovery = DiscoveryCheck(kinds)
        self._on_outdated = on_outdated
        self._pacing = WatchPacing()
        self._sessions: list[aiohttp.ClientSession] = []

    async def login(self) -> kopf.AiohttpSession:
        """Read the credentials that are valid now; a session with them.

        Raises:
            KubeLoginError: If there are none, or they cannot be read.
        """
        info = await login()
        transport = await asyncio.to_thread(transport_of, info)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=ssl_context(info)),
            headers=info.as_http_headers(),
            middlewares=(
                self._discovery,
                self._pacing,
                RenewalCheck(transport, self._on_outdated),
            ),
        )
        self._sessions.append(session)
        return _Login(
            server=info.server,
            default_namespace=info.default_namespace,
            credentials=info,
            aiohttp_session=session,
        )

    async def close(self) -> None:
        """Close all that kopf has not closed: it never uses those of refused credentials."""
        for session in self._sessions:
            await session.close()
