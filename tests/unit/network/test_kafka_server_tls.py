"""TLS of the server over real sockets."""

from __future__ import annotations

import contextlib
import logging
import ssl
import struct
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from regent.model.errors import ConfigurationError
from regent.network.kafka_server import KafkaServer
from regent.network.server_settings import ServerLimits
from regent.network.server_statistics import CloseReason
from regent.network.server_tls import ClientAuth, server_tls
from regent.protocol.served_apis import API_VERSIONS, CONTROLLED_SHUTDOWN
from tests.support.kafka_client import KafkaClient, connected, request_frame
from tests.support.waiting import until
from tests.unit.network.kafka_servers import Controller, closed_for
from tests.unit.network.secured_servers import Authority, served, serving, shut_down

Secured = tuple[KafkaServer, KafkaClient]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """The server's own; clients need no certificate."""
    return Authority(tmp_path)


@pytest.fixture
async def secured(controller: Controller, authority: Authority) -> AsyncIterator[Secured]:
    """A server with TLS, and a client that has begun with it."""
    context = authority.client()
    async with served(controller, context=context, tls=authority.files) as both:
        yield both


async def test_uncertified_client_is_anonymous(controller: Controller, tmp_path: Path) -> None:
    authority = Authority(tmp_path, client_auth="requested")
    context = authority.client()
    async with served(controller, context=context, tls=authority.files) as (_, client):
        await shut_down(client)
    (peer,) = controller.peers
    assert (peer.principal, peer.security_protocol) == ("User:ANONYMOUS", "SSL")


@pytest.mark.parametrize("client_auth", ["requested", "required"])
async def test_the_subject_of_a_clients_certificate_is_its_principal(
    client_auth: ClientAuth, controller: Controller, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, client_auth=client_auth)
    context = authority.client("broker-1")
    async with served(controller, context=context, tls=authority.files) as (_, client):
        await shut_down(client)
    assert controller.peers[0].principal == "User:CN=broker-1,OU=Kafka,O=Example"


async def test_every_record_size_is_answered(secured: Secured) -> None:
    """However requests are cut into records: asyncio's flow control sees every one of them."""
    frame = request_frame(CONTROLLED_SHUTDOWN, 3, 7, {"brokerId": 1})
    server, client = secured
    for records in (1, 2, 3, 2, 1, 1):
        whole = struct.pack(">i", len(frame)) + frame
        for at in range(records):
            client.writer.write(whole[at : at + 1 if at < records - 1 else None])
            expected = 0 if at == records - 1 else at + 1
            await _buffered(server, at_least=expected)
        await client.answer(CONTROLLED_SHUTDOWN, 3, 7)
        await _buffered(server, at_most=0)


async def test_too_much_tls_is_closed(secured: Secured) -> None:
    """Each record of one byte stands for a message of TLS without data: a client could send these
    for ever, and have the answers to them pile up."""
    server, client = secured
    client.writer.write(struct.pack(">i", 10_000))
    for _ in range(5_000):
        client.writer.write(b"x")
    await client.closed()
    await closed_for(server, CloseReason.TLS)


async def test_small_requests_are_answered(secured: Secured) -> None:
    frame = request_frame(CONTROLLED_SHUTDOWN, 3, 7, {"brokerId": 1})
    _, client = secured
    for _ in range(1_000):
        client.writer.write(struct.pack(">i", len(frame)))
        client.writer.write(frame)
    for _ in range(1_000):
        await client.answer(CONTROLLED_SHUTDOWN, 3, 7)


async def _buffered(server: KafkaServer, *, at_least: int = 0, at_most: int = 2**31) -> None:
    await until(
        lambda: at_least <= server.statistics.buffered_bytes <= at_most,
        f"{at_least} to {at_most} bytes of requests",
    )


async def test_tls_refusal_has_a_remedy(controller: Controller, tmp_path: Path) -> None:
    authority = Authority(tmp_path, client_auth="required")
    stranger = authority.client()
    trustme.CA().issue_cert(common_name="broker-1").configure_cert(stranger)
    remedies = {
        "endpoint_tls_client_ca_file": stranger,
        "endpoint_tls_client_auth": authority.client(),
    }
    for remedy, context in remedies.items():
        async with serving(controller, tls=authority.files) as server:
            with contextlib.suppress(ssl.SSLError):
                async with connected(server.port, context=context) as client:
                    await client.closed()
            await closed_for(server, CloseReason.TLS)
            assert server.statistics.failed_authentications == 1
            assert server.statistics.connections == 0
            (refused,) = server.refused_peers()
            assert (refused["kind"], refused["address"]) == ("TLS", "127.0.0.1")
            assert remedy in refused["remedy"]


async def test_early_end_is_no_refusal(controller: Controller, authority: Authority) -> None:
    """As health checks do."""
    async with serving(controller, tls=authority.files) as server:
        async with connected(server.port):
            pass
        await until(
            lambda: server.statistics.accepted and not server.statistics.connections,
            "the connection to be gone",
        )
        assert server.refused_peers() == []


async def test_plain_text_is_closed(controller: Controller, authority: Authority) -> None:
    async with served(controller, tls=authority.files) as (server, client):
        client.send(API_VERSIONS, 0, {})
        await client.closed()
        await closed_for(server, CloseReason.TLS)


async def test_endless_handshake_is_closed(controller: Controller, authority: Authority) -> None:
    limits = ServerLimits(authentication_s=0.05)
    async with served(controller, tls=authority.files, limits=limits) as (server, client):
        await client.closed()
        assert server.statistics.connections == 0


async def test_a_connection_takes_little_memory(
    controller: Controller, authority: Authority
) -> None:
    """There may be thousands, of clients that are silent for minutes, or have not said a byte."""
    count = 20
    async with (
        serving(controller, tls=authority.files) as server,
        contextlib.AsyncExitStack() as clients,
    ):
        tracemalloc.start()
        clients.callback(tracemalloc.stop)
        for _ in range(count):
            await clients.enter_async_context(connected(server.port))
        # Each begins with TLS in a step of its own: they have once a later one is served.
        last = await clients.enter_async_context(connected(server.port, context=authority.client()))
        await shut_down(last)
        taken, _ = tracemalloc.get_traced_memory()
        assert taken / count < 100_000


async def test_renewed_certificate_is_used(controller: Controller, authority: Authority) -> None:
    async def certificate(server: KafkaServer) -> bytes:
        async with connected(server.port, context=authority.client()) as client:
            await shut_down(client)
            shown: bytes = client.writer.get_extra_info("ssl_object").getpeercert(True)
            return shown

    async with serving(controller, tls=authority.files) as server:
        before = await certificate(server)
        assert await certificate(server) == before
        authority.renew()
        assert await certificate(server) != before


def test_certificate_needs_its_key(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    tls = server_tls(authority.files)
    former = tls.context()
    key = authority.files.key.read_bytes()
    authority.renew()
    renewed = authority.files.key.read_bytes()
    authority.files.key.write_bytes(key)
    with caplog.at_level(logging.ERROR):
        assert tls.context() is former
        assert tls.context() is former
    assert [record.message for record in caplog.records] == ["changed TLS files not used"]
    authority.files.key.write_bytes(renewed)
    assert tls.context() is not former


def test_files_that_cannot_be_used_at_the_start_are_named(authority: Authority) -> None:
    authority.files.key.write_bytes(b"no key")
    with pytest.raises(ConfigurationError, match=str(authority.files.key)):
        server_tls(authority.files)
    authority.files.certificate.unlink()
    with pytest.raises(ConfigurationError, match="No such file"):
        server_tls(authority.files)
