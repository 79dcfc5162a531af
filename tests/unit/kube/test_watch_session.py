"""Watches that end at once, servers that want fewer of them, certificates that are renewed."""

from __future__ import annotations

import asyncio
import itertools
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl

import aiohttp
import pytest
import trustme
from aiohttp import web

from regent.kube import login as login_module
from regent.kube.errors import KubeError
from regent.kube.kopf_runner import KopfOptions, run_kopf
from regent.kube.watch_session import (
    PAUSE_MAX_S,
    RELIST_PAUSE_MAX_S,
    WatchPacing,
    WatchSessions,
)
from regent.resources.kafka_topic import KafkaTopic
from tests.support.waiting import DEADLINE_S
from tests.unit.kube.jumping_clock import elapse, run
from tests.unit.kube.small_server import Server, serving

LIST = "/apis/kafka.regent.dev/v1alpha1/kafkatopics"
WATCH = f"{LIST}?watch=true"


@dataclass
class Url:
    path: str
    query: dict[str, str]


@dataclass
class Request:
    url: Url


@dataclass
class Response:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def release(self) -> None:
        """Its connection serves another request."""


class Streams:
    """What a server does: each watch ends after some seconds. Notes when they began."""

    def __init__(self, *, last_s: float = 0.0) -> None:
        self.last_s = last_s
        self.answers: list[Response] = []
        self.began: list[float] = []
        self._pacing = WatchPacing(jitter=lambda: 1.0)

    async def ask(self, url: str) -> Response:
        path, _, query = url.partition("?")
        request = cast(aiohttp.ClientRequest, Request(Url(path, dict(parse_qsl(query)))))
        return cast(Response, await self._pacing(request, cast(Any, self._answer)))

    async def _answer(self, request: Request) -> Response:
        self.began.append(asyncio.get_running_loop().time())
        if self.answers:
            return self.answers.pop(0)
        if "watch" in request.url.query:
            await elapse(self.last_s)
        return Response()

    @property
    def pauses(self) -> list[float]:
        return [after - before for before, after in zip(self.began, self.began[1:], strict=False)]


def repeated(count: int, ask: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    async def one_after_the_other() -> None:
        for _ in range(count):
            await ask()

    run(one_after_the_other())


def test_watches_that_end_at_once_begin_with_growing_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    streams = Streams()
    with caplog.at_level(logging.WARNING):
        repeated(50, lambda: streams.ask(WATCH))
    assert streams.pauses == sorted(streams.pauses)
    assert streams.pauses[0] > 0
    assert set(streams.pauses[5:]) == {PAUSE_MAX_S}
    (entry,) = caplog.records
    assert "Watches end as soon as they have begun" in entry.message


def test_a_watch_that_has_lasted_is_followed_by_the_next_one_at_once() -> None:
    streams = Streams(last_s=60)
    repeated(10, lambda: streams.ask(WATCH))
    assert set(streams.pauses) == {60}


def test_versions_that_are_forgotten_at_once_are_listed_again_with_growing_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each watch ends with 410 as soon as it has begun: kopf lists, and watches from there."""
    streams = Streams()

    async def list_and_watch() -> None:
        await streams.ask(LIST)
        await streams.ask(WATCH)

    with caplog.at_level(logging.WARNING):
        repeated(50, list_and_watch)
    lists = streams.began[::2]
    pauses = [after - before for before, after in itertools.pairwise(lists)]
    assert pauses[0] <= 1, "a version may be forgotten now and then"
    assert set(pauses[10:]) == {RELIST_PAUSE_MAX_S}
    told = [entry for entry in caplog.records if "forgets the versions" in entry.message]
    assert len(told) == 1


def test_a_version_that_is_forgotten_after_a_while_is_listed_again_at_once() -> None:
    streams = Streams(last_s=60)

    async def list_and_watch() -> None:
        await streams.ask(LIST)
        await streams.ask(WATCH)

    repeated(10, list_and_watch)
    assert set(streams.pauses) == {0, 60}


def test_the_pages_of_a_list_wait_for_nothing() -> None:
    streams = Streams()

    async def list_and_watch() -> None:
        await streams.ask(LIST)
        for _ in range(3):
            await streams.ask(f"{LIST}?continue=next")
        await streams.ask(WATCH)

    repeated(20, list_and_watch)
    listed = streams.began[-5:-1]
    assert len(set(listed)) == 1


def test_lists_and_watches_of_other_objects_wait_for_no_watch() -> None:
    streams = Streams()
    repeated(1, lambda: streams.ask(WATCH))
    repeated(1, lambda: streams.ask(WATCH.replace("kafkatopics", "brokerdrains")))
    repeated(5, lambda: streams.ask(LIST))
    assert set(streams.pauses) == {0}


@pytest.mark.parametrize(
    ("asked_for", "waited_s"),
    [("7", 7), ("86400", 60), ("Wed, 21 Oct 2099 07:28:00 GMT", 1), ("inf", 1), (None, 1)],
)
def test_who_asks_for_fewer_requests_is_asked_after_a_minute_at_most(
    asked_for: str | None, waited_s: float
) -> None:
    streams = Streams()
    headers = {} if asked_for is None else {"Retry-After": asked_for}
    streams.answers = [Response(429, headers), Response(429, headers)]
    repeated(1, lambda: streams.ask(WATCH))
    assert streams.pauses == [waited_s, waited_s]


@pytest.fixture
def kubeconfig(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, "
        f"clusters: [{{name: k, cluster: {{server: '{server.url}'}}}}], "
        "contexts: [{name: c, context: {cluster: k, user: u}}], "
        "users: [{name: u, user: {token: wrong}}]}"
    )
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


async def test_credentials_that_are_refused_are_not_used_for_ever(
    server: Server, kubeconfig: None
) -> None:
    never = asyncio.get_running_loop().create_future()
    options = KopfOptions(
        kinds=(KafkaTopic.kind,), on_event=lambda *_: None, on_signal=lambda: None
    )
    with pytest.raises(Exception, match="Ran out of valid credentials"):
        await run_kopf(options, namespaces=("default",), until=(never,))
    assert len(server.requests) < 20


async def test_sessions_are_closed(kubeconfig: None) -> None:
    sessions = WatchSessions()
    first, second = await sessions.login(), await sessions.login()
    assert first == second
    assert first.aiohttp_session is not second.aiohttp_session
    await sessions.close()
    assert first.aiohttp_session.closed
    assert second.aiohttp_session.closed


async def test_a_server_that_names_a_date_does_not_end_the_stream(
    server: Server, kubeconfig: None
) -> None:
    server.valid_token = "wrong"
    late = web.Response(status=429, headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"})
    server.answers = [late, web.json_response({"kind": "Thing"})]
    sessions = WatchSessions()
    login = await sessions.login()
    async with login.aiohttp_session.get(f"{server.url}/a") as response:
        assert response.status == 200
    await sessions.close()
    assert len(server.requests) == 2


VERSION_PATH = "/apis/kafka.regent.dev/v1alpha1"


@pytest.mark.parametrize(
    ("path", "answer", "missing"),
    [
        ("/apis", {"groups": [{"name": "apps"}]}, "kafka.regent.dev"),
        ("/apis", {"groups": [{"name": "apps"}, {"name": "kafka.regent.dev"}]}, None),
        (VERSION_PATH, {"resources": [{"name": "brokerdrains"}]}, "kafkatopics"),
        (VERSION_PATH, {"resources": [{"name": "kafkatopics"}]}, None),
        (VERSION_PATH, 404, "kafkatopics"),
        (VERSION_PATH, 503, None),
        (LIST, {"items": []}, None),
    ],
)
async def test_a_kind_that_is_not_shown_yet_is_looked_for_again_and_never_left_out(
    server: Server, kubeconfig: None, path: str, answer: int | dict[str, Any], missing: str | None
) -> None:
    """kopf looks once, and would not watch it for as long as it runs."""
    server.valid_token = "wrong"
    server.answers = [
        web.Response(status=answer) if isinstance(answer, int) else web.json_response(answer)
    ]
    sessions = WatchSessions((KafkaTopic.kind,))
    http = (await sessions.login()).aiohttp_session
    try:
        if missing is None:
            async with http.get(f"{server.url}{path}") as response:
                assert answer in (response.status, await response.json(content_type=None))
        else:
            with pytest.raises(KubeError, match=missing):
                await http.get(f"{server.url}{path}")
    finally:
        await sessions.close()


async def test_a_run_that_was_not_shown_its_kind_ends(server: Server, kubeconfig: None) -> None:
    server.valid_token = "wrong"
    never = asyncio.get_running_loop().create_future()
    known: dict[str, list[str]] = {"groups": [], "versions": []}
    server.answers = [web.json_response(known) for _ in range(5)]
    options = KopfOptions(
        kinds=(KafkaTopic.kind,), on_event=lambda *_: None, on_signal=lambda: None
    )
    with pytest.raises(KubeError, match=r"kafka\.regent\.dev"):
        await run_kopf(options, namespaces=("default",), until=(never,))


class Pod:
    """What is in a pod. The API server has another certificate by now than when it began.

    Attributes:
        authority: The file of the certificate authorities.
        greeted: Set once somebody has begun a handshake with the API server.
    """

    def __init__(self, account: Path) -> None:
        self.server = Server()
        self.authority = account / "ca.crt"
        self.greeted = asyncio.Event()
        self.old, self.new = trustme.CA(), trustme.CA()
        (account / "token").write_text("one")
        self.old.cert_pem.write_to_path(str(self.authority))

    @asynccontextmanager
    async def serving(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.new.issue_cert("127.0.0.1").configure_cert(context)
        context.sni_callback = lambda *_: self.greeted.set()  # with or without a name
        async with serving(self.server, context) as url:
            monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            monkeypatch.setenv("KUBERNETES_SERVICE_PORT", url.rpartition(":")[2])
            yield url


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    monkeypatch.setattr(login_module, "SERVICE_ACCOUNT", tmp_path)
    return Pod(tmp_path)


async def test_a_session_whose_certificates_were_renewed_is_outdated(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[bool] = []
    sessions = WatchSessions(on_outdated=lambda: called.append(True))
    async with pod.serving(monkeypatch) as url:
        http = (await sessions.login()).aiohttp_session

        async def ask() -> bool:
            with pytest.raises(aiohttp.ClientSSLError):
                await http.get(f"{url}/a")
            return bool(called)

        assert not await ask(), "there are no others"
        pod.authority.write_bytes(b"")
        assert not await ask(), "somebody is writing them"
        pod.new.cert_pem.write_to_path(str(pod.authority))
        assert await ask()
        async with (await sessions.login()).aiohttp_session.get(f"{url}/a") as response:
            assert response.status == 200
    await sessions.close()


async def test_then_a_run_of_kopf_ends(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on with its session for ever, and nothing would be watched."""
    never = asyncio.get_running_loop().create_future()
    options = KopfOptions(
        kinds=(KafkaTopic.kind,), on_event=lambda *_: None, on_signal=lambda: None
    )
    async with pod.serving(monkeypatch), asyncio.timeout(DEADLINE_S):
        watching = asyncio.create_task(run_kopf(options, namespaces=("default",), until=(never,)))
        await pod.greeted.wait()  # its session is bound to the old one
        pod.new.cert_pem.write_to_path(str(pod.authority))
        await watching
