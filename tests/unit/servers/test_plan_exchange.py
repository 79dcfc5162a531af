"""Regent's exchange and the driver's client of it, over sockets."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
import trustme

from regent.kube.plan_exchange_port import PlannerAnswer
from regent.kube.plan_runner import PlanTask
from regent.model.errors import ConfigurationError
from regent.network.server_tls import TlsFiles, server_tls
from regent.observability.http_connections import HttpLimits
from regent.planning.goals import PlannerGoals
from regent.servers.plan_exchange import ANSWERED_KNOWN, PlanExchange, open_exchange
from regent.settings import Settings
from regent.sockets.listening import listening_socket
from regent_rebalance.errors import ExchangeError
from regent_rebalance.exchange_client import Exchange
from sandbox.waiting import DEADLINE_S

TASK = PlanTask(b'{"version": 1}' * 100_000, PlannerGoals(drained=(7,)))
TOKEN = "the token"
TOKEN_SHA256 = hashlib.sha256(TOKEN.encode()).hexdigest()
PLAN = b"{}" * 1000


@asynccontextmanager
async def serving(
    max_bytes: int = 1_000_000, stalled_s: float = 30.0
) -> AsyncIterator[PlanExchange]:
    exchange = PlanExchange(
        listening_socket("127.0.0.1", 0, setting="planner_exchange"),
        max_bytes=max_bytes,
        stalled_s=stalled_s,
    )
    async with exchange.served():
        yield exchange
    exchange.close()


def client(
    exchange_url: str, folder: Path, *, token: str = TOKEN, patience_s: float = 0
) -> Exchange:
    (folder / "token").write_text(f"{token}\n")
    return Exchange(exchange_url, folder, patience_s=patience_s, pause=lambda _: None)


async def raw(
    exchange: PlanExchange,
    method: str,
    path: str,
    *,
    token: str | None = TOKEN,
    data: object = None,
    status: str | None = "0",
    encoding: str | None = None,
) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if encoding is not None:
        headers["Content-Encoding"] = encoding
    if status is not None:
        headers["Regent-Planner-Status"] = status
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, exchange.url + path, data=data, headers=headers) as answer,
    ):
        return answer.status, await answer.text()


async def test_a_driver_fetches_its_task_and_hands_in_its_answer(tmp_path: Path) -> None:
    async with serving() as exchange:
        driver = client(exchange.url, tmp_path)
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256) as offer:
            assert await asyncio.to_thread(driver.task) == list(TASK.goals.arguments())
            assert await asyncio.to_thread(driver.snapshot) == TASK.snapshot
            assert await offer.wait(0) is None
            await asyncio.to_thread(driver.hand_in, 4, PLAN)
            assert await offer.wait(60) == PlannerAnswer(4, PLAN)


async def test_an_answer_is_taken_once(tmp_path: Path) -> None:
    async with serving() as exchange:
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256) as offer:
            assert (await raw(exchange, "PUT", "/v1/answer", data=PLAN))[0] == 204
            status, text = await raw(exchange, "PUT", "/v1/answer", data=b"another")
            assert (status, text) == (409, "this job has answered already\n")
            # The confirmation may have been lost: a driver that asks again is done.
            await asyncio.to_thread(client(exchange.url, tmp_path).hand_in, 0, PLAN)
            assert offer.answer == PlannerAnswer(0, PLAN)


@pytest.mark.parametrize("token", [None, "", "another token", "the tokens", "\udcff"])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/task"), ("GET", "/v1/snapshot"), ("PUT", "/v1/answer")]
)
async def test_token_is_required(token: str | None, method: str, path: str) -> None:
    async with serving() as exchange:
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256) as offer:
            status, text = await raw(exchange, method, path, token=token, data=PLAN)
            assert status == 401
            assert "no job with this token is waited for here" in text
            assert offer.answer is None


async def test_a_token_ends_with_its_job() -> None:
    async with serving() as exchange:
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256):
            assert (await raw(exchange, "GET", "/v1/task"))[0] == 200
        assert (await raw(exchange, "GET", "/v1/task"))[0] == 401


async def test_answered_job_is_told_so_later(tmp_path: Path) -> None:
    """Its plan is taken at once, and the confirmation may have been lost."""
    async with serving() as exchange:
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256):
            assert (await raw(exchange, "PUT", "/v1/answer", data=PLAN))[0] == 204
        for method, path in (("PUT", "/v1/answer"), ("GET", "/v1/task"), ("GET", "/v1/snapshot")):
            status, text = await raw(exchange, method, path, data=PLAN)
            assert (status, text) == (409, "this job has answered already\n")
        await asyncio.to_thread(client(exchange.url, tmp_path).hand_in, 0, PLAN)
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256):
            assert (await raw(exchange, "GET", "/v1/task"))[0] == 200, "it is waited for again"


async def test_of_jobs_that_have_answered_the_last_ones_are_known() -> None:
    async with serving() as exchange:
        tokens = [f"token {number}" for number in range(ANSWERED_KNOWN + 1)]
        for token in tokens:
            digest = hashlib.sha256(token.encode()).hexdigest()
            with exchange.offer(TASK, token_sha256=digest) as offer:
                offer.hand_in(PlannerAnswer(0, PLAN))
        assert (await raw(exchange, "PUT", "/v1/answer", token=tokens[-1], data=PLAN))[0] == 409
        assert (await raw(exchange, "PUT", "/v1/answer", token=tokens[0], data=PLAN))[0] == 401


async def test_who_copies_the_digest_of_a_job_gets_nothing() -> None:
    copied = PlanTask(b"a snapshot of another job", TASK.goals)
    async with serving() as exchange:
        with (
            exchange.offer(TASK, token_sha256=TOKEN_SHA256) as offer,
            exchange.offer(copied, token_sha256=TOKEN_SHA256) as copy,
        ):
            assert (await raw(exchange, "GET", "/v1/snapshot"))[1] == TASK.snapshot.decode()
            assert (await raw(exchange, "PUT", "/v1/answer", data=PLAN))[0] == 204
            assert (offer.answer, copy.answer) == (PlannerAnswer(0, PLAN), None)


async def test_what_is_too_large_or_has_no_end_is_refused(tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b"x" * 100

    async with serving(max_bytes=1000) as exchange:
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256) as offer:
            driver = client(exchange.url, tmp_path)
            with pytest.raises(ExchangeError, match=r"413: .*setting planner_exchange_max_bytes"):
                await asyncio.to_thread(driver.hand_in, 0, b"x" * 1001)
            assert (await raw(exchange, "PUT", "/v1/answer", data=endless()))[0] == 411
            assert offer.answer is None


@pytest.mark.parametrize(
    ("encoding", "compressed"),
    [("gzip", gzip.compress(bytes(10_000_000))), ("deflate", zlib.compress(bytes(10_000_000)))],
)
async def test_compressed_answer_is_refused(encoding: str, compressed: bytes) -> None:
    """Two megabytes could take all of the controller's memory."""
    async with serving(max_bytes=len(compressed)) as exchange:
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256) as offer:
            status, text = await raw(
                exchange, "PUT", "/v1/answer", data=compressed, encoding=encoding
            )
            assert (status, text) == (415, f"an answer is taken as it is, not in {encoding!r}\n")
            assert offer.answer is None
            assert (await raw(exchange, "PUT", "/v1/answer", data=PLAN[:100]))[0] == 204


@pytest.mark.parametrize("status", [None, "", "ok", "1e3", "10000"])
async def test_an_answer_without_an_exit_status_is_refused(status: str | None) -> None:
    async with serving() as exchange:
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256) as offer:
            assert (await raw(exchange, "PUT", "/v1/answer", data=PLAN, status=status))[0] == 400
            assert offer.answer is None


async def half_an_answer(
    exchange: PlanExchange,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = exchange.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"PUT /v1/answer HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Regent-Planner-Status: 0\r\nContent-Length: 100\r\n\r\n{".encode()
    )
    await writer.drain()
    return reader, writer


async def test_half_an_answer_is_none_and_the_next_one_counts() -> None:
    async with serving() as exchange:
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256) as offer:
            reader, writer = await half_an_answer(exchange)
            writer.close()
            await writer.wait_closed()
            assert await reader.read() == b""
            assert (await raw(exchange, "PUT", "/v1/answer", data=PLAN))[0] == 204
            assert offer.answer == PlannerAnswer(0, PLAN)


async def test_a_driver_that_vanishes_halfway_makes_room_for_the_next_one() -> None:
    async with serving(stalled_s=0.1) as exchange:
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256) as offer:
            reader, writer = await half_an_answer(exchange)
            assert (await reader.readline()).startswith(b"HTTP/1.1 408")
            assert (await raw(exchange, "PUT", "/v1/answer", data=PLAN))[0] == 204
            assert offer.answer == PlannerAnswer(0, PLAN)
            writer.close()


async def test_jobs_do_not_get_each_others_tasks() -> None:
    other = PlanTask(b"other", PlannerGoals())
    async with serving() as exchange:
        with (
            exchange.offer(TASK, token_sha256=TOKEN_SHA256) as offer,
            exchange.offer(other, token_sha256=hashlib.sha256(b"2").hexdigest()) as second,
        ):
            assert await raw(exchange, "GET", "/v1/snapshot", token="2") == (200, "other")
            assert (await raw(exchange, "PUT", "/v1/answer", token="2", data=PLAN))[0] == 204
            assert offer.answer is None
            assert second.answer == PlannerAnswer(0, PLAN)


async def test_a_driver_waits_for_the_regent_that_knows_it(tmp_path: Path) -> None:
    """As after a take-over: first nobody answers, then somebody who does not know the token yet."""
    listening = listening_socket("127.0.0.1", 0, setting="planner_exchange")
    port = listening.getsockname()[1]
    listening.close()
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    (tmp_path / "token").write_text(TOKEN)

    def pause(_: float) -> None:
        loop.call_soon_threadsafe(asked.set)

    url = f"http://127.0.0.1:{port}"
    driver = Exchange(url, tmp_path, patience_s=60, pause=pause)
    fetching = asyncio.create_task(asyncio.to_thread(driver.task))
    await asyncio.wait_for(asked.wait(), timeout=DEADLINE_S)
    exchange = PlanExchange(
        listening_socket("127.0.0.1", port, setting="planner_exchange"), max_bytes=1000
    )
    async with exchange.served():
        asked.clear()
        await asyncio.wait_for(asked.wait(), timeout=DEADLINE_S)
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256):
            assert await asyncio.wait_for(fetching, timeout=DEADLINE_S) == list(
                TASK.goals.arguments()
            )
    exchange.close()


async def test_a_driver_gives_up_with_what_it_was_told(tmp_path: Path) -> None:
    async with serving() as exchange:
        driver = client(exchange.url, tmp_path)
        with pytest.raises(ExchangeError, match=r"401: no job with this token.*given up after 0 s"):
            await asyncio.to_thread(driver.snapshot)
    with pytest.raises(ExchangeError, match=r"GET http://nowhere\.invalid:1/v1/task"):
        client("http://nowhere.invalid:1", tmp_path).task()


def test_a_driver_without_a_token_says_so(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="the credentials for http://x:1 cannot be used"):
        Exchange("http://x:1", tmp_path)
    with pytest.raises(ExchangeError, match="no URL of an exchange"):
        Exchange("regent:8090", tmp_path)


def certified(folder: Path, name: str = "localhost") -> dict[str, Path]:
    """Files of an exchange with TLS, as settings name them."""
    authority = trustme.CA()
    files = {each: folder / f"{each}.pem" for each in ("certificate", "key", "ca")}
    issued = authority.issue_cert(name)
    files["certificate"].write_bytes(b"".join(b.bytes() for b in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(files["key"])
    authority.cert_pem.write_to_path(files["ca"])
    return {f"planner_exchange_tls_{name}_file": file for name, file in files.items()}


def opened(folder: Path, url: str | None = None, name: str = "localhost") -> PlanExchange:
    settings = Settings.model_validate(
        {"planner_exchange_port": 0, "planner_exchange_url": url, **certified(folder, name)}
    )
    exchange = open_exchange(settings)
    assert exchange is not None
    return exchange


async def test_with_tls_a_driver_knows_the_exchange_by_its_authority(tmp_path: Path) -> None:
    exchange = opened(tmp_path)
    url = exchange.url.replace("127.0.0.1", "localhost")
    assert url.startswith("https://")
    assert exchange.authorities is not None
    (tmp_path / "ca.crt").write_text(exchange.authorities)
    async with exchange.served():
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256):
            driver = client(url, tmp_path)
            assert await asyncio.to_thread(driver.snapshot) == TASK.snapshot
            # Renewed files count from the next connection on.
            certified(tmp_path)
            with pytest.raises(ExchangeError, match="CERTIFICATE_VERIFY_FAILED"):
                await asyncio.to_thread(client(url, tmp_path).task)
    exchange.close()


async def test_who_never_begins_with_tls_makes_room_for_drivers(tmp_path: Path) -> None:
    files = certified(tmp_path)
    exchange = PlanExchange(
        listening_socket("127.0.0.1", 0, setting="planner_exchange"),
        tls=server_tls(
            TlsFiles(
                certificate=files["planner_exchange_tls_certificate_file"],
                key=files["planner_exchange_tls_key_file"],
            )
        ),
        max_bytes=1000,
        limits=HttpLimits(connections=2, request_s=300),
    )
    (tmp_path / "ca.crt").write_bytes(files["planner_exchange_tls_ca_file"].read_bytes())
    host, port = exchange.url.removeprefix("https://").split(":")
    async with exchange.served(), AsyncExitStack() as stack:
        silent = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection(host, int(port))
            stack.callback(writer.close)
            silent.append(reader)
        async with asyncio.timeout(DEADLINE_S):
            for reader in silent[:2]:
                with suppress(ConnectionResetError):
                    assert await reader.read() == b""
        with exchange.offer(TASK, token_sha256=TOKEN_SHA256):
            driver = client(exchange.url.replace(host, "localhost"), tmp_path)
            assert await asyncio.to_thread(driver.snapshot) == TASK.snapshot
    exchange.close()


async def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    exchange = opened(tmp_path, name="elsewhere.test")
    assert exchange.authorities is not None
    (tmp_path / "ca.crt").write_text(exchange.authorities)
    async with exchange.served():
        driver = client(exchange.url.replace("127.0.0.1", "localhost"), tmp_path)
        with pytest.raises(ExchangeError, match="Hostname mismatch"):
            await asyncio.to_thread(driver.task)
    exchange.close()


def test_no_port_is_no_exchange() -> None:
    assert open_exchange(Settings()) is None


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"planner_exchange_url": "http://x:1"}, "set planner_exchange_port"),
        (
            {"planner_exchange_port": 0, "planner_exchange_url": "https://x:1"},
            "the exchange speaks http",
        ),
        (
            {"planner_exchange_port": 0, "planner_exchange_tls_key_file": "/k"},
            "planner_exchange_tls_key_file is /k, but there is no",
        ),
        (
            {"planner_exchange_port": 0, "planner_exchange_tls_ca_file": "/c"},
            "planner_exchange_tls_ca_file is /c, but there is no",
        ),
        (
            {"planner_exchange_port": 0, "planner_exchange_tls_certificate_file": "/c"},
            "there is no planner_exchange_tls_key_file",
        ),
        (
            {
                "planner_exchange_port": 0,
                "planner_exchange_tls_certificate_file": "/no",
                "planner_exchange_tls_key_file": "/no",
            },
            "TLS of the planner's exchange",
        ),
        ({"planner_exchange_port": 0, "planner_exchange_host": "192.0.2.1"}, "cannot listen on"),
    ],
)
def test_contradictory_settings_are_named(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        open_exchange(Settings.model_validate(settings))


def test_files_that_drivers_cannot_use_are_named_at_the_start(tmp_path: Path) -> None:
    files = certified(tmp_path)
    files["planner_exchange_tls_ca_file"].write_text("nothing")
    with pytest.raises(ConfigurationError, match="TLS of the planner's exchange"):
        open_exchange(Settings.model_validate({"planner_exchange_port": 0, **files}))
