"""Why a broker is not reached, and what to do."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from pathlib import Path

import msgspec
import pytest

from regent.model.cluster import Broker, EndPoint
from regent.network.connection import BrokerConnection
from regent.network.connection_problem import connection_problem, endpoint_text
from regent.network.settings import ChannelSettings
from regent.network.tls import tls_to_brokers
from regent.network.tls_remedies import remedy_for_client
from regent.protocol.connection_setup import AuthenticationError
from regent.protocol.framing import API_VERSIONS_KEY, FrameError
from regent.protocol.primitives import DecodeError
from regent.protocol.sasl import SaslCredentials
from sandbox.pki import Authority
from tests.support.stub_broker import StubBroker
from tests.support.waiting import until
from tests.unit.network.open_channels import FAST, TP, batch, channels

ENDPOINT = EndPoint("BROKERS", "SASL_SSL", "kafka-1", 9094)
SASL = SaslCredentials("SCRAM-SHA-512", "regent", "a secret")


def context_of(authority: Authority, *, is_expired: bool = False) -> ssl.SSLContext:
    files = authority.issue("broker-1", is_expired=is_expired)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    return context


def test_refused_credentials_name_the_user_the_listener_and_the_settings() -> None:
    problem = connection_problem(
        AuthenticationError("no"), endpoint=ENDPOINT, settings=ChannelSettings(sasl=SASL)
    )
    assert problem.principal == "User:regent"
    assert problem.endpoint == "BROKERS://kafka-1:9094"
    assert str(problem).startswith("BROKERS://kafka-1:9094 as User:regent: AuthenticationError: no")
    assert "broker_sasl_password_file" in str(problem)
    assert "a secret" not in str(problem)


def test_a_broker_that_is_merely_down_needs_no_advice() -> None:
    problem = connection_problem(OSError("refused"), endpoint=ENDPOINT, settings=ChannelSettings())
    assert str(problem) == "BROKERS://kafka-1:9094: OSError: refused"


def test_silence_is_named() -> None:
    """The error that the event loop raises says nothing."""
    problem = connection_problem(TimeoutError(), endpoint=ENDPOINT, settings=ChannelSettings())
    assert str(problem).startswith("BROKERS://kafka-1:9094: TimeoutError: no answer in time;")


def test_what_does_not_speak_kafkas_protocol_leads_to_the_addresses() -> None:
    error = FrameError("a frame of 1213486160 bytes")
    endpoint = EndPoint("BROKERS", "SASL_PLAINTEXT", "kafka-1", 9092)
    problem = connection_problem(error, endpoint=endpoint, settings=ChannelSettings())
    assert "no listener of Kafka, or one that expects TLS: see the broker's" in str(problem)


def test_what_answers_by_tls_does_not_wait_for_it() -> None:
    error = FrameError("a frame of 1213486160 bytes")
    problem = connection_problem(error, endpoint=ENDPOINT, settings=ChannelSettings())
    assert "no listener of Kafka: see the broker's" in str(problem)


@pytest.mark.parametrize(
    ("answers", "is_said", "is_kafka"),
    [
        ([b"HTTP/1.1 400 Bad Request"], "FrameError: a frame of 1213486160 bytes", False),
        ([b"%(good)s%(good)s"], "CorrelationError: the broker sent more than the one", True),
        ([b"%(good)s", b"HTTP/1.1 400"], "DecodeError: a frame of 1213486160 bytes", True),
    ],
)
async def test_kafka_listener_is_known(answers: list[bytes], is_said: str, is_kafka: bool) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            for answer in answers:
                (size,) = length.unpack(await reader.readexactly(4))
                request = await reader.readexactly(size)
                good = length.pack(4) + request[4:8]  # the correlation id, and no body
                writer.write(answer.replace(b"%(good)s", good))
                await writer.drain()

    length = struct.Struct(">i")
    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        endpoint = EndPoint("A", "PLAINTEXT", *server.sockets[0].getsockname())
        settings = ChannelSettings()
        connection = await BrokerConnection.open(endpoint, client_id="x", settings=settings)
        with contextlib.closing(connection):
            for _ in answers[1:]:
                await connection.round_trip(API_VERSIONS_KEY, 0, (b"",), flexible=False)
            with pytest.raises(DecodeError) as raised:
                await connection.round_trip(API_VERSIONS_KEY, 0, (b"",), flexible=False)
    problem = connection_problem(raised.value, endpoint=endpoint, settings=settings)
    assert is_said in problem.error
    assert (problem.remedy is None) == is_kafka


def test_an_address_of_ip_version_6_is_written_as_kafka_does() -> None:
    assert endpoint_text(EndPoint("A", "SSL", "2001:db8::1", 9092)) == "A://[2001:db8::1]:9092"


async def test_nothing_is_sent_to_a_broker_in_the_place_of_another_one() -> None:
    """Two registrations with one address: what one broker is to delete, the other would delete."""
    async with StubBroker(1) as stub:
        copied = msgspec.structs.replace(stub.registration, broker_id=2)
        async with channels(stub.registration, copied) as (manager, responses):
            brokers = {1: stub.registration, 2: copied}
            only = {1: {TP: True}, 2: {TP: True}}
            manager.send(batch(stub, brokers=brokers, leader_and_isr=only, stop_replica={}))
            await responses.wait_for(2)

            async def problem() -> str | None:
                return manager.problems().get(2)

            said = await until(problem, "the other broker to be named", until=bool)
    assert len(stub.received) == 2
    assert "OtherBrokerError: another broker answers there" in str(said)
    assert "advertised.listeners of both" in str(said)


def test_our_own_expired_certificate_is_what_to_look_at(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue("regent", is_expired=True)
    tls = tls_to_brokers(
        authorities=files.ca_certificate, certificate=files.certificate, key=files.key
    )
    problem = connection_problem(
        ConnectionResetError("reset"), endpoint=ENDPOINT, settings=ChannelSettings(tls=tls)
    )
    assert problem.remedy == tls.problem()


@pytest.mark.parametrize(
    ("mistake", "remedy"),
    [
        ("expired", "not valid now: renew it"),
        ("authority", "broker_tls_ca_file must have"),
        ("host", "must name localhost"),
    ],
)
async def test_refused_certificate_has_a_remedy(mistake: str, remedy: str, tmp_path: Path) -> None:
    trusted = Authority(tmp_path)
    (tmp_path / "others").mkdir()
    shown = Authority(tmp_path / "others") if mistake == "authority" else trusted
    settings = ChannelSettings(
        tls=tls_to_brokers(authorities=trusted.certificate),
        connect_timeout=FAST.connect_timeout,
        retry_delay=FAST.retry_delay,
        max_retry_delay=FAST.max_retry_delay,
    )
    context = context_of(shown, is_expired=mistake == "expired")
    async with StubBroker(1, ssl_context=context) as stub:
        host = "localhost" if mistake == "host" else "127.0.0.1"
        broker = Broker(1, 1, (EndPoint("SSL", "SSL", host, stub.port),))
        async with channels(broker, settings=settings) as (manager, _):
            problems = await until(manager.problems, "the broker not to be reached")
            assert remedy in problems[1]


async def test_a_broker_that_is_reached_again_has_no_problem() -> None:
    stub = StubBroker(1)
    await stub.start()
    await stub.stop()
    async with channels(stub.registration) as (manager, _):
        problems = await until(manager.problems, "the broker not to be reached")
        assert problems[1].startswith(f"PLAINTEXT://127.0.0.1:{stub.port}: ")
        async with stub:
            await until(manager.problems, "the broker to be reached", until=lambda found: not found)


def test_a_client_that_does_not_accept_our_certificate_is_one_to_look_at() -> None:
    error = ssl.SSLError(1, "[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca")
    error.reason = "TLSV1_ALERT_UNKNOWN_CA"
    assert "its trust store" in remedy_for_client(error, own_problem=None)
    assert remedy_for_client(error, own_problem="it expired") == "it expired"
    no_tls = ssl.SSLError(1, "[SSL: HTTP_REQUEST] http request")
    assert "security.protocol" in remedy_for_client(no_tls, own_problem=None)
