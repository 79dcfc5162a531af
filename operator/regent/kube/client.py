"""A small asynchronous client for the Kubernetes API.

Why not the official one: it is synchronous, so each of ten thousand status writes would occupy a
thread, and it brings a model class for everything Kubernetes knows. Why not kopf's: its request
function is private and lives in kopf's task context, which ends before Regent is done writing. What
is left to do is little: aiohttp, kopf's public ``ConnectionInfo``, four verbs.

Tokens and certificates are renewed in place, by the kubelet and by others. So credentials are read
again after ``CREDENTIALS_MAX_AGE_S`` and whenever the server answers 401.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import kopf

from regent.kube.errors import (
    KubeApiError,
    KubeConflictError,
    KubeLoginError,
    KubeNotFoundError,
    KubeTooLargeError,
    KubeUnavailableError,
)
from regent.kube.login import login

CREDENTIALS_MAX_AGE_S: Final = 60.0

RETRY_AFTER_MAX_S: Final = 60.0
"""API servers ask for a second or two. What stands in front of them may ask for anything."""

_TOO_LARGE_FOR_ETCD: Final = "etcdserver: request is too large"

_STORED_METADATA: Final = ("name", "uid", "resourceVersion")
"""What every stored object has. (What is only asked, such as for a right, is not stored.)"""

MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"


class KubeClient:
    """One HTTP session with the API server. Use it as an asynchronous context manager."""

    def __init__(
        self,
        *,
        max_connections: int,
        request_timeout_s: float,
        credentials: Callable[[], Awaitable[kopf.ConnectionInfo]] = login,
        on_request: Callable[[str, int | None], None] = lambda verb, status: None,
        on_wait: Callable[[float], None] = lambda waited_s: None,
    ) -> None:
        """
        Args:
            max_connections: So many requests are under way at the same time. The others wait, in
                the order in which they came, for as long as it takes.
            request_timeout_s: For the answer to a request, from the end of its wait on.
            on_request: Called with the verb and the HTTP status of each answer; None: there was
                none.
            on_wait: Called with the seconds that a request has waited for others to end.
        """
        self._on_request = on_request
        self._on_wait = on_wait
        self._max_connections = max_connections
        self._timeout = aiohttp.ClientTimeout(total=request_timeout_s)
        self._credentials = credentials
        self._info: kopf.ConnectionInfo | None = None
        self._info_read_at = 0.0
        self._transport: tuple[object, ...] = ()
        self._session: _Session | None = None
        self._is_closed = False
        self._retired: set[_Session] = set()
        self._refreshing = asyncio.Lock()
        self._reading: asyncio.Future[kopf.ConnectionInfo] | None = None
        self._reading_began_at = 0.0
        self._server_time: tuple[datetime, float] | None = None
        self._date: str | None = None

    async def __aenter__(self) -> KubeClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session; open requests fail, those that wait, too."""
        self._is_closed = True
        current, self._session = self._session, None
        for session in (*self._retired, *(() if current is None else (current,))):
            await session.http.close()
        self._retired.clear()

    def server_time(self) -> datetime | None:
        """The present by the API server's clock, to within some seconds; None: it has not said.

        Times in objects that the API server has written are to be compared with this clock.
        """
        if self._server_time is None:
            return None
        said, at = self._server_time
        return said + timedelta(seconds=asyncio.get_running_loop().time() - at)

    async def get(self, path: str, *, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Read an object or one page of a list. Raises as :meth:`request` does."""
        return await self.request("GET", path, query=query)

    async def create(
        self, path: str, body: Mapping[str, Any], *, dry_run: bool = False
    ) -> dict[str, Any]:
        """Create an object in the collection ``path``; with ``dry_run`` the API server only says
        what would come of it. Raises as :meth:`request` does: KubeConflictError if there is one of
        that name."""
        query = {"dryRun": "All"} if dry_run else None
        return await self.request("POST", path, body=body, query=query)

    async def merge_patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Apply a JSON merge patch; the object afterwards. With ``metadata.resourceVersion`` in the
        body it applies to exactly that version. Raises as :meth:`request` does.
        """
        return await self.request("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def apply(self, path: str, body: Mapping[str, Any], *, manager: str) -> dict[str, Any]:
        """Server-side apply; the object afterwards. Fields of others are not taken over. Raises as
        :meth:`request` does.
        """
        query = {"fieldManager": manager}
        return await self.request("PATCH", path, body=body, content_type=APPLY_PATCH, query=query)

    async def get_text(self, path: str, *, query: Mapping[str, str] | None = None) -> str:
        """Read what is no object, such as a log. Raises as :meth:`request` does."""
        return (await self._answer("GET", path, query=query)).text

    async def delete(self, path: str, *, uid: str, version: str | None) -> None:
        """Delete exactly this object; with ``version`` only if it is still that one. Raises as
        :meth:`request` does."""
        conditions = {"uid": uid} | ({} if version is None else {"resourceVersion": version})
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": conditions}
        await self.request("DELETE", path, body=body)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send one request and return the decoded answer.

        Raises:
            KubeNotFoundError: 404.
            KubeConflictError: 409.
            KubeApiError: Any other refusal.
            KubeUnavailableError: No answer in time, or not one of an API server; or the client is
                closed.
            KubeLoginError: No credentials.
        """
        answer = await self._answer(method, path, body=body, content_type=content_type, query=query)
        try:
            decoded = answer.body
        except ValueError as error:
            raise KubeUnavailableError(
                f"{method} {path}: the answer is no JSON object: {error}"
            ) from error
        if not _is_from_api_server(method, decoded):
            raise KubeUnavailableError(
                f"{method} {path}: the answer is no object of an API server: "
                f"{str(decoded)[:200]}; is there one at this address?"
            )
        return decoded

    async def _answer(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> _Answer:
        send = partial(self._send, method, path, body, content_type=content_type, query=query)
        answer, info = await send()
        if answer.status == 401:
            await self._refresh(seen=info)
            answer, _ = await send()
        if answer.status >= 400:
            raise _error(answer, f"{method} {path}")
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        body: object,
        *,
        content_type: str,
        query: Mapping[str, str] | None,
    ) -> tuple[_Answer, kopf.ConnectionInfo]:
        """The answer, and the credentials that were used. Those are the newest after the wait,
        too."""
        now = asyncio.get_running_loop().time
        waited_s = 0.0
        while True:
            session = await self._connection()
            session.requests += 1
            waits_since = now()
            try:
                async with session.turns:
                    waited_s += now() - waits_since
                    info = self._info
                    if session is not self._session or info is None:
                        continue  # there is another address, or the client is closed
                    self._on_wait(waited_s)
                    answer = await self._exchange(
                        info,
                        session.http,
                        method,
                        path,
                        body,
                        content_type=content_type,
                        query=query,
                    )
                    return answer, info
            finally:
                session.requests -= 1
                await self._close_unused()

    async def _exchange(
        self,
        info: kopf.ConnectionInfo,
        http: aiohttp.ClientSession,
        method: str,
        path: str,
        body: object,
        *,
        content_type: str,
        query: Mapping[str, str] | None,
    ) -> _Answer:
        data = None if body is None else json.dumps(body).encode()
        try:
            headers = {**info.as_http_headers(), "Accept": "application/json, */*;q=0.5"}
            if data is not None:
                headers["Content-Type"] = content_type
            async with http.request(
                method, info.server.rstrip("/") + path, data=data, headers=headers, params=query
            ) as response:
                payload = await response.read()
                self._on_request(method, response.status)
                self._note_time(response.headers.get("Date"))
                return _Answer(response.status, response.headers.get("Retry-After"), payload)
        except (aiohttp.ClientError, TimeoutError) as error:
            self._on_request(method, None)
            problem = str(error) or type(error).__name__
            if not str(error) and isinstance(error, TimeoutError):
                problem = f"no answer within {self._timeout.total:g} s"
            raise KubeUnavailableError(f"{method} {path}: {problem}") from error
        except ValueError as error:
            # A user with a colon, a token with a line break: it was not even sent.
            raise KubeLoginError(
                f"the credentials for {info.server} cannot be used: {error}"
            ) from error

    def _note_time(self, date: str | None) -> None:
        if date == self._date:
            return  # of many answers in one second the first says the time best
        self._date = date
        try:
            said = parsedate_to_datetime(date or "")
        except (ValueError, OverflowError):
            return  # it is optional, and what stands in front of the API server may send anything
        if said.tzinfo is not None:
            self._server_time = (said, asyncio.get_running_loop().time())

    async def _connection(self) -> _Session:
        if self._is_closed:
            raise KubeUnavailableError("the client is closed")
        now = asyncio.get_running_loop().time()
        if self._info is None or now - self._info_read_at > CREDENTIALS_MAX_AGE_S:
            await self._refresh(seen=self._info)
        if self._session is None:
            raise KubeUnavailableError("the client is closed")
        return self._session

    async def _refresh(self, *, seen: kopf.ConnectionInfo | None) -> None:
        """Read the credentials again, once for all requests that ``seen`` failed for."""
        async with self._refreshing:
            if self._info is not seen:
                return
            info = await self._read_credentials()
            _check_address(info.server)
            transport = await asyncio.to_thread(transport_of, info)
            if self._is_closed:
                return
            if self._session is None or transport != self._transport:
                connector = aiohttp.TCPConnector(limit=self._max_connections, ssl=ssl_context(info))
                if self._session is not None:
                    self._retired.add(self._session)
                http = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
                self._session = _Session(http, max_requests=self._max_connections)
                self._transport = transport
            self._info, self._info_read_at = info, asyncio.get_running_loop().time()
        await self._close_unused()

    async def _read_credentials(self) -> kopf.ConnectionInfo:
        """Wait for them as long as for an answer. There is never more than one reading: whoever
        needs them while it takes longer than that gets an error at once."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._credentials())
            self._reading.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._reading_began_at = asyncio.get_running_loop().time()
        until = self._reading_began_at + (self._timeout.total or 0.0)
        try:
            async with asyncio.timeout_at(until):
                return await asyncio.shield(self._reading)
        except TimeoutError as error:
            raise KubeLoginError(
                f"the credentials were not read within {self._timeout.total:g} s: does a plugin "
                "hang that kubeconfig names?"
            ) from error
        finally:
            if self._reading.done():
                self._reading = None

    async def _close_unused(self) -> None:
        """Close the sessions of former credentials that have nothing more to send."""
        for session in [each for each in self._retired if not each.requests]:
            self._retired.discard(session)
            await session.http.close()


class _Session:
    """A session of aiohttp. What is under way when another one takes its place is carried out:
    aiohttp would cancel it at its end. What waits for its turn goes to the other one.

    Attributes:
        requests: How many are under way or wait.
        turns: For one request each. Were it the connector that lets them wait, the time for the
            answer would begin before they are sent.
    """

    def __init__(self, http: aiohttp.ClientSession, *, max_requests: int) -> None:
        self.http = http
        self.requests = 0
        self.turns = asyncio.Semaphore(max_requests)


class _Answer:
    def __init__(self, status: int, retry_after: str | None, payload: bytes) -> None:
        self.status = status
        self.retry_after = retry_after
        self._payload = payload

    @property
    def body(self) -> dict[str, Any]:
        """The object that it has; ValueError if it has none."""
        try:
            decoded = json.loads(self._payload)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        if not isinstance(decoded, dict):
            raise ValueError(f"it is {self._payload[:200]!r}")
        return decoded

    @property
    def text(self) -> str:
        """What it says."""
        return self._payload.decode(errors="replace")

    @property
    def details(self) -> dict[str, Any]:
        """The Status object of a refusal; a proxy may have sent something else."""
        try:
            return self.body
        except ValueError:
            return {"message": self._payload[:200].decode(errors="replace").strip()}


def _is_from_api_server(method: str, body: Mapping[str, Any]) -> bool:
    """Whether it is an object, a list, the schemas of objects, or the kinds of a group, with what
    all of them have. What stands in front of an API server may answer anything with 200
    (``{"status": "UP"}``)."""
    if "openapi" in body or "groupVersion" in body:
        return True
    kind, metadata = body.get("kind"), body.get("metadata")
    if not isinstance(kind, str) or not isinstance(metadata, Mapping):
        return False
    if method not in ("GET", "PATCH") or kind.endswith("List"):
        return True
    return all(isinstance(metadata.get(name), str) for name in _STORED_METADATA)


def _check_address(server: str) -> None:
    """Raise KubeLoginError if there can be no API server at this address. What is left to aiohttp
    and the resolver raises whatever they come across."""
    if "@" in server:  # not shown: there may be a password
        raise KubeLoginError("the address of the API server has a user in it: take that out")
    try:
        url = urlsplit(server)
        host, _ = url.hostname or "", url.port
        host.encode("idna")
    except ValueError as error:
        raise KubeLoginError(f"{server!r} is no address of an API server: {error}") from error
    if url.scheme not in ("http", "https") or not host:
        raise KubeLoginError(
            f"{server!r} is no address of an API server: it has to begin with https:// and a host"
        )


def transport_of(info: kopf.ConnectionInfo) -> tuple[object, ...]:
    """What a session is bound to, the token apart: that goes with each request. Of files their
    content counts: the kubelet, and tools that rotate certificates, replace them in place."""
    files = (info.ca_path, info.certificate_path, info.private_key_path)
    return (info.server, info.insecure, *(_content(file) for file in files))


def _content(path: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None) -> bytes | None:
    try:
        return None if path is None else Path(os.fsdecode(path)).read_bytes()
    except OSError:
        return None  # using it says what is wrong


def ssl_context(info: kopf.ConnectionInfo) -> ssl.SSLContext:
    """What to verify the API server with, and to show it. Raises KubeLoginError if it is none."""
    try:
        return info.as_ssl_context()
    except (OSError, ValueError) as error:
        raise KubeLoginError(
            f"the certificates or the key for {info.server} cannot be used: {error}"
        ) from error


def _error(answer: _Answer, what: str) -> KubeApiError:
    details = answer.details
    message = f"{what}: {details.get('message') or f'HTTP {answer.status}'}"
    reason = str(details.get("reason", ""))
    kinds = {404: KubeNotFoundError, 409: KubeConflictError, 413: KubeTooLargeError}
    if _TOO_LARGE_FOR_ETCD in message:  # it has the status of any other failure
        kinds[answer.status] = KubeTooLargeError
    return kinds.get(answer.status, KubeApiError)(
        message,
        status=answer.status,
        reason=reason,
        causes=_causes(details.get("details")),
        retry_after_s=retry_after_s(answer.retry_after),
    )


def _causes(details: object) -> frozenset[str]:
    """The reasons of the causes that a Status has; a proxy may have sent anything."""
    causes = details.get("causes") if isinstance(details, dict) else None
    listed = causes if isinstance(causes, list) else []
    return frozenset(
        str(each["reason"]) for each in listed if isinstance(each, dict) and "reason" in each
    )


def retry_after_s(retry_after: str | None) -> float | None:
    """The seconds that a server asks for, as far as they are waited for. The header may name a
    date; API servers do not."""
    if retry_after is None or not retry_after.isdecimal():
        return None
    return min(float(retry_after), RETRY_AFTER_MAX_S)
