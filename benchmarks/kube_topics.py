"""KafkaTopics in a real API server, as a benchmark has them: created at once, and watched.

The watch is the benchmark's clock, and counts what is written: lists of ten thousand objects, again
and again, would occupy the API server.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any

import aiohttp
import msgspec

from benchmarks.errors import BenchmarkError
from sandbox import KubernetesApi

NAMESPACE = "topics"
_GROUP = "/apis/kafka.regent.dev/v1alpha1"
_COLLECTION = f"{_GROUP}/namespaces/{NAMESPACE}/kafkatopics"
_REQUEST_TIMEOUT_S = 60.0
_CREATORS = 16
_MERGE_PATCH = "application/merge-patch+json"


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Object(msgspec.Struct):
    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(msgspec.Struct):
    type: str
    object: _Object


class Readiness:
    """What a watch has shown.

    Attributes:
        ready_at: When the KafkaTopics that are Ready became so, in that order; monotonic seconds.
        events: How many events there were, so how many writes: creations, finalizers, statuses.
        last_event_at: When the last one arrived; monotonic seconds.
        version: resourceVersion of the last one.
    """

    def __init__(self) -> None:
        self.ready_at: dict[str, float] = {}
        self.events = 0
        self.last_event_at = time.monotonic()
        self.version = ""
        self._decoder = msgspec.json.Decoder(_Event)

    def take(self, line: bytes) -> None:
        """Count an event in, as the API server sends it.

        Raises:
            BenchmarkError: It is none of a KafkaTopic.
        """
        try:
            event = self._decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise BenchmarkError(f"the watch says {line[:200]!r}") from error
        self.events += 1
        self.version = event.object.metadata.resource_version
        self.last_event_at = time.monotonic()
        conditions = event.object.status.conditions
        ready = any(c.type == "Ready" and c.status == "True" for c in conditions)
        if ready and event.type != "DELETED":
            self.ready_at.setdefault(event.object.metadata.name, self.last_event_at)
        else:
            self.ready_at.pop(event.object.metadata.name, None)


class Writes(msgspec.Struct):
    """What a controller writes to a KafkaTopic: its finalizers, and then a status."""

    finalizers: list[str]
    status: dict[str, Any]


class KubeTopics:
    """The KafkaTopics of one namespace. Use it as an asynchronous context manager."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self.seen = Readiness()

    async def __aenter__(self) -> "KubeTopics":
        trust = ssl.create_default_context(cafile=str(self._api.ca_certificate))
        self._session = aiohttp.ClientSession(
            self._api.server,
            connector=aiohttp.TCPConnector(ssl=trust, limit=2 * _CREATORS + 1),
            headers={"Authorization": f"Bearer {self._api.token}", "Accept": "application/json"},
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[asyncio.Task[None]]:
        """Watch from now on; the task ends only with an error."""
        async with self._session.get(_COLLECTION, params={"limit": "1"}) as response:
            listed = await _answer(response, HTTPStatus.OK)
        self.seen.version = listed["metadata"]["resourceVersion"]
        task = asyncio.create_task(self._watch())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _watch(self) -> None:
        """Follow all events. The API server ends every watch some time, and that of a client which
        falls behind at once: then it goes on from the last event.

        Raises:
            BenchmarkError: The API server does not answer, or has forgotten that event.
        """
        while True:
            try:
                await self._follow()
            except aiohttp.ClientPayloadError:
                continue  # the connection ended in the middle of an event
            except aiohttp.ClientError as error:
                raise BenchmarkError(f"the API server does not answer: {error!r}") from error

    async def _follow(self) -> None:
        """One watch, until the API server ends it."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_REQUEST_TIMEOUT_S)
        parameters = {"watch": "true", "resourceVersion": self.seen.version}
        async with self._session.get(_COLLECTION, params=parameters, timeout=timeout) as response:
            if response.status != HTTPStatus.OK:
                await _answer(response, HTTPStatus.OK)
            try:
                async for line in response.content:
                    if line.endswith(b"\n"):  # else it ended in the middle of an event
                        self.seen.take(line)
            finally:
                # Closing would wait for TLS's good-bye, which the end of the loop does not.
                connection = response.connection
                if connection is not None and connection.transport is not None:
                    connection.transport.abort()

    async def create(self, names: Iterable[str]) -> None:
        """Create KafkaTopics of one partition with one replica, several at a time.

        Raises:
            BenchmarkError: One was refused, or not answered.
        """

        async def create(name: str) -> None:
            await self._create(name)

        await _each(create, names, at_a_time=_CREATORS)

    async def create_and_write(self, names: Iterable[str], writes: Writes) -> None:
        """Create KafkaTopics, and write to each what a controller would: nothing else is done.

        As many connections are used for that as by :meth:`create` and Regent together.

        Raises:
            BenchmarkError: One was refused, or not answered.
        """

        async def create_and_write(name: str) -> None:
            created = await self._create(name)
            metadata: dict[str, Any] = {"finalizers": writes.finalizers}
            held = await self._patch(created, "", {"metadata": metadata})
            await self._patch(held, "/status", {"status": {**writes.status, "topicName": name}})

        await _each(create_and_write, names, at_a_time=2 * _CREATORS)

    async def writes_to(self, name: str) -> Writes:
        """What has been written to a KafkaTopic.

        Raises:
            BenchmarkError: There is none of that name.
        """
        async with self._session.get(f"{_COLLECTION}/{name}") as response:
            found = await _answer(response, HTTPStatus.OK)
        return Writes(found["metadata"]["finalizers"], found["status"])

    async def await_events(self, count: int, *, timeout_s: float) -> None:
        """Wait until so many Events are in the namespace.

        Raises:
            BenchmarkError: There are fewer.
        """
        deadline = time.monotonic() + timeout_s
        while (found := await self._events()) < count:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"after {timeout_s:g} s there are {found} of {count} Events")
            await asyncio.sleep(1.0)

    async def _events(self) -> int:
        """How many Events are in the namespace. All of them are not listed for that."""
        path, query = f"/api/v1/namespaces/{NAMESPACE}/events", {"limit": "1"}
        async with self._session.get(path, params=query) as response:
            listed = await _answer(response, HTTPStatus.OK)
        return len(listed["items"]) + int(listed["metadata"].get("remainingItemCount", 0))

    async def _create(self, name: str) -> _Object:
        body = {
            "apiVersion": "kafka.regent.dev/v1alpha1",
            "kind": "KafkaTopic",
            "metadata": {"name": name},
            "spec": {"partitions": 1, "replicas": 1},
        }
        timeout = aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT_S)
        async with self._session.post(_COLLECTION, json=body, timeout=timeout) as response:
            return _object(await _answer(response, HTTPStatus.CREATED))

    async def _patch(self, known: _Object, subresource: str, patch: dict[str, Any]) -> _Object:
        """Change exactly this version, as Regent does."""
        version = {"resourceVersion": known.metadata.resource_version}
        body = {**patch, "metadata": {**version, **patch.get("metadata", {})}}
        timeout = aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT_S)
        async with self._session.patch(
            f"{_COLLECTION}/{known.metadata.name}{subresource}",
            data=msgspec.json.encode(body),
            headers={"Content-Type": _MERGE_PATCH},
            timeout=timeout,
        ) as response:
            return _object(await _answer(response, HTTPStatus.OK))


async def _each(
    act: Callable[[str], Awaitable[None]], names: Iterable[str], *, at_a_time: int
) -> None:
    """Do something for every name.

    Raises:
        BenchmarkError: As that does, or the API server did not answer.
    """
    remaining = iter(names)

    async def some() -> None:
        for name in remaining:
            await act(name)

    try:
        await asyncio.gather(*(some() for _ in range(at_a_time)))
    except (aiohttp.ClientError, TimeoutError) as error:
        raise BenchmarkError(f"the API server does not answer: {error!r}") from error


def _object(answer: object) -> _Object:
    return msgspec.convert(answer, _Object)


async def await_condition(
    holds: Callable[[], bool], watch: "asyncio.Task[None]", *, what: str, timeout_s: float
) -> None:
    """Wait until something holds of what a watch has shown.

    Raises:
        BenchmarkError: It does not, or the watch has ended.
    """
    deadline = time.monotonic() + timeout_s
    while not holds():
        if watch.done():
            await watch
        if time.monotonic() > deadline:
            raise BenchmarkError(f"after {timeout_s:g} s {what}")
        await asyncio.sleep(0.01)


async def _answer(response: aiohttp.ClientResponse, expected: HTTPStatus) -> Any:
    if response.status != expected:
        raise BenchmarkError(f"{response.method} {response.url}: {await response.text()}")
    return msgspec.json.decode(await response.read())
