"""The HTTP endpoint answers metrics, probes and status, whatever other clients do."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import itertools
import json
import logging
import random
import select
import socket
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from regent.observability.http import HttpEndpoint, JsonAnswer
from regent.observability.http_connections import HttpLimits
from regent.sockets.listening import listening_socket
from tests.support.waiting import wait_for

PATIENT = HttpLimits(request_s=3600, total_s=3600)
"""No limit of time ever helps: what is to end a connection must be something else."""

Start = Callable[..., HttpEndpoint]


class Health:
    """What the probes say."""

    problem: str | None = None

    def __call__(self) -> str | None:
        return self.problem


@pytest.fixture
def liveness() -> Health:
    return Health()


class Queries:
    """Stands for the controller: answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int | None]] = []
        self.held: concurrent.futures.Future[None] | None = None
        self.status = HTTPStatus.OK

    async def __call__(self, topic: str, partition: int | None) -> JsonAnswer:
        self.asked.append((topic, partition))
        if self.held is not None:
            await asyncio.wrap_future(self.held)
        return JsonAnswer(self.status, {"topic": topic})


@pytest.fixture
def queries() -> Queries:
    return Queries()


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc()
    return registry


@pytest.fixture
def start(liveness: Health, registry: CollectorRegistry, queries: Queries) -> Iterator[Start]:
    with contextlib.ExitStack() as stack:

        def begin(limits: HttpLimits | None = None, host: str = "127.0.0.1") -> HttpEndpoint:
            endpoint = HttpEndpoint(
                listening=listening_socket(host, 0, setting="http"),
                registry=registry,
                liveness=liveness,
                readiness=lambda: "not yet",
                status=lambda: {"isActive": True},
                state_changes=queries,
                limits=limits,
            )
            stack.callback(endpoint.close)
            endpoint.start()
            return endpoint

        yield begin


@pytest.fixture
def endpoint(start: Start) -> HttpEndpoint:
    return start()


@pytest.fixture
def connect() -> Iterator[Callable[[HttpEndpoint], socket.socket]]:
    """Connections that stay open until the test ends."""
    with contextlib.ExitStack() as stack:

        def open_one(endpoint: HttpEndpoint) -> socket.socket:
            return stack.enter_context(
                socket.create_connection(("127.0.0.1", endpoint.port), timeout=60)
            )

        yield open_one


Connect = Callable[[HttpEndpoint], socket.socket]


def get(endpoint: HttpEndpoint, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    """The timeout is that of the chart's probes."""
    try:
        with urllib.request.urlopen(f"http://{host}:{endpoint.port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def received(connection: socket.socket) -> bytes:
    """Everything that comes until the server closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def test_metrics_are_served(endpoint: HttpEndpoint) -> None:
    status, body = get(endpoint, "/metrics")
    assert status == 200
    assert "things_total 1.0" in body


def test_metrics_come_as_the_scraper_wants_them(endpoint: HttpEndpoint) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{endpoint.port}/metrics?name[]=nothing",
        headers={"Accept": "application/openmetrics-text; version=1.0.0"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        assert answer.read() == b"# EOF\n"


@pytest.mark.parametrize("version", ["banana", "1.x.0", "\u0661.0.0"])
def test_a_format_that_is_none_is_no_defect(
    endpoint: HttpEndpoint, connect: Connect, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    connection = connect(endpoint)
    asked = f"application/openmetrics-text; version={version}".encode()
    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: %b\r\n\r\n" % asked)
    answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert caplog.records == []


def test_the_changes_of_a_topic_are_asked_for_by_its_name(
    endpoint: HttpEndpoint, queries: Queries
) -> None:
    assert get(endpoint, "/why?topic=orders") == (200, '{"topic": "orders"}')
    assert get(endpoint, "/why?topic=orders&partition=3")[0] == 200
    queries.status = HTTPStatus.NOT_FOUND
    assert get(endpoint, "/why?topic=a%2Fb") == (404, '{"topic": "a/b"}')
    assert queries.asked == [("orders", None), ("orders", 3), ("a/b", None)]


@pytest.mark.parametrize(
    "query", ["", "?topic=", "?partition=1", "?topic=t&partition=-1", "?topic=t&partition=x"]
)
def test_a_malformed_question_is_refused(
    endpoint: HttpEndpoint, queries: Queries, query: str
) -> None:
    status, body = get(endpoint, f"/why{query}")
    assert status == 400
    assert "/why?topic=NAME" in json.loads(body)["problem"]
    assert not queries.asked


def test_a_controller_that_is_busy_is_not_waited_for_forever(
    start: Start, queries: Queries
) -> None:
    queries.held = concurrent.futures.Future()
    endpoint = start(HttpLimits(query_s=0.05))
    status, body = get(endpoint, "/why?topic=orders")
    assert status == 503
    assert json.loads(body)["problem"] == "the controller is busy and did not answer within 0.05 s"


def test_questions_at_the_same_time_are_bounded(start: Start, queries: Queries) -> None:
    held = queries.held = concurrent.futures.Future()
    endpoint = start(HttpLimits(queries=1))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(get, endpoint, "/why?topic=first")
        wait_for(lambda: queries.asked, "the first question to arrive")
        assert get(endpoint, "/why?topic=second")[0] == 503
        held.set_result(None)
        assert first.result() == (200, '{"topic": "first"}')
    assert get(endpoint, "/why?topic=third")[0] == 200


def test_metrics_are_not_rendered_for_their_length_alone(
    endpoint: HttpEndpoint, connect: Connect
) -> None:
    connection = connect(endpoint)
    connection.sendall(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert received(connection).startswith(b"HTTP/1.1 405 ")


def test_a_probe_names_the_problem(endpoint: HttpEndpoint, liveness: Health) -> None:
    assert get(endpoint, "/healthz") == (200, "ok\n")
    liveness.problem = "stuck"
    assert get(endpoint, "/healthz") == (503, "stuck\n")
    assert get(endpoint, "/readyz") == (503, "not yet\n")


def test_status_is_json(endpoint: HttpEndpoint) -> None:
    status, body = get(endpoint, "/status")
    assert status == 200
    assert json.loads(body) == {"isActive": True}


def test_another_path_says_which_there_are(endpoint: HttpEndpoint) -> None:
    status, body = get(endpoint, "/")
    assert status == 404
    assert "/metrics" in body


@pytest.mark.parametrize("host", ["::1", "::"])
def test_an_ipv6_address_is_listened_on(start: Start, host: str) -> None:
    assert get(start(host=host), "/healthz", host="[::1]") == (200, "ok\n")


def test_an_answer_says_that_its_connection_is_closed(
    endpoint: HttpEndpoint, connect: Connect
) -> None:
    """A client might send its next request on it otherwise, and get no answer."""
    connection = connect(endpoint)
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, _ = received(connection).partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower().split(b"\r\n")


def test_a_failing_probe_is_logged_and_answered(
    endpoint: HttpEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: Health) -> str | None:
        raise ValueError("a defect")

    monkeypatch.setattr(Health, "__call__", fail)
    assert get(endpoint, "/healthz")[0] == 500
    (record,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert record.message == "HTTP request failed"
    assert record.exc_info is not None


def test_more_connections_than_allowed_do_not_keep_a_probe_out(
    start: Start, connect: Connect
) -> None:
    endpoint = start(PATIENT)
    silent = [connect(endpoint) for _ in range(3 * PATIENT.connections)]
    assert get(endpoint, "/healthz") == (200, "ok\n")
    assert endpoint.connection_count <= PATIENT.connections
    assert received(silent[0]) == b""  # the oldest was closed


def test_slow_requests_do_not_delay_a_probe_and_are_cut(start: Start, connect: Connect) -> None:
    endpoint = start(HttpLimits(request_s=0.5))
    slow = [connect(endpoint) for _ in range(10)]
    for connection in slow:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost:")
    assert get(endpoint, "/healthz") == (200, "ok\n")
    assert [received(connection) for connection in slow] == [b""] * 10


def test_bytes_that_drip_do_not_prolong_a_request(start: Start, connect: Connect) -> None:
    endpoint = start(HttpLimits(request_s=0.2))
    connection = connect(endpoint)
    drips = itertools.repeat(b"x")
    with pytest.raises(ConnectionError):
        deque(map(connection.sendall, drips), maxlen=0)


def test_a_client_that_does_not_take_its_answer_is_cut(
    start: Start,
    connect: Connect,
    registry: CollectorRegistry,
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry.register(Huge())
    endpoint = start(HttpLimits(total_s=3))
    connection = connect(endpoint)
    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert connection.recv(1) == b"H"
    wait_for(lambda: endpoint.connection_count, "the cut", until=lambda n: n == 0)
    assert get(endpoint, "/healthz") == (200, "ok\n")
    endpoint.close()
    assert [r.message for r in caplog.records if r.levelno > logging.DEBUG] == []


@pytest.mark.parametrize("seed", range(5))
def test_garbage_neither_disturbs_nor_shows_in_the_log(
    start: Start,
    connect: Connect,
    seed: int,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    endpoint = start(HttpLimits(request_s=0.2))
    rng = random.Random(seed)
    beginnings = [
        b"",
        b"GET ",
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01",
        b"POST /status HTTP/1.1\r\n",
    ]
    connection = connect(endpoint)
    with contextlib.suppress(ConnectionError):
        connection.sendall(rng.choice(beginnings) + rng.randbytes(rng.randrange(20_000)))
        connection.shutdown(socket.SHUT_WR)
    received(connection)
    assert get(endpoint, "/healthz") == (200, "ok\n")
    assert [r.message for r in caplog.records if r.levelno > logging.DEBUG] == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"X: 1\r\n" * 1000 + b"\r\n",
    ],
    ids=["line", "header", "headers"],
)
def test_a_request_beyond_the_limits_is_refused(
    endpoint: HttpEndpoint, connect: Connect, head: bytes
) -> None:
    connection = connect(endpoint)
    with contextlib.suppress(ConnectionError):
        connection.sendall(head)
    assert b" 200 " not in received(connection)[:20]


def test_closing_does_not_wait_for_open_connections(start: Start, connect: Connect) -> None:
    endpoint = start(PATIENT)
    silent, asking = connect(endpoint), connect(endpoint)
    asking.sendall(b"GET /healthz HTTP/1.1\r\n")
    wait_for(lambda: endpoint.connection_count == 2, "the connections")
    endpoint.close()
    assert received(silent) == received(asking) == b""


class Blocking(Collector):
    """Metrics that take until they are released."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.released = threading.Event()

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        self.asked.release()
        self.released.wait()
        return []


class Huge(Collector):
    """More metrics than the buffers of a connection take."""

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("huge", "x" * 16_000_000, value=1)


def test_metrics_that_take_long_do_not_delay_a_probe(
    start: Start, connect: Connect, registry: CollectorRegistry
) -> None:
    blocking = Blocking()
    endpoint = start(PATIENT)
    registry.register(blocking)
    scrapes = [connect(endpoint) for _ in range(PATIENT.scrapes)]
    try:
        for scrape in scrapes:
            scrape.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        blocking.asked.acquire()
        assert get(endpoint, "/healthz") == (200, "ok\n")
    finally:
        blocking.released.set()
    assert [received(scrape)[:15] for scrape in scrapes] == [b"HTTP/1.1 200 OK"] * len(scrapes)


def test_closing_does_not_wait_for_metrics(
    start: Start, connect: Connect, registry: CollectorRegistry
) -> None:
    blocking = Blocking()
    registry.register(blocking)
    endpoint = start(PATIENT)
    scrape = connect(endpoint)
    scrape.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    blocking.asked.acquire()
    try:
        endpoint.close()
        assert received(scrape) == b""
    finally:
        blocking.released.set()


def test_more_scrapes_than_allowed_are_refused(
    start: Start, connect: Connect, registry: CollectorRegistry
) -> None:
    blocking = Blocking()
    registry.register(blocking)
    endpoint = start(PATIENT)
    scrapes = [connect(endpoint) for _ in range(PATIENT.scrapes + 1)]
    try:
        for scrape in scrapes:
            scrape.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        blocking.asked.acquire()
        refused, _, _ = select.select(scrapes, [], [], 60)
        assert [b" 503 " in received(scrape)[:20] for scrape in refused] == [True]
    finally:
        blocking.released.set()
