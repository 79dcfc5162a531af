"""SASL of the server over real sockets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import struct
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from regent.model.errors import ConfigurationError
from regent.network.kafka_server import KafkaServer
from regent.network.server_settings import ServerLimits, ServerSettings
from regent.network.server_statistics import CloseReason
from regent.protocol.sasl import SaslCredentials
from regent.protocol.served_apis import (
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from tests.support.kafka_client import KafkaClient
from tests.support.waiting import until
from tests.unit.network.kafka_servers import PLENTY, Controller, closed_for
from tests.unit.network.secured_servers import (
    MECHANISMS,
    PASSWORD,
    Authority,
    served,
    serving,
    shut_down,
)


@pytest.fixture
async def server(controller: Controller) -> AsyncIterator[KafkaServer]:
    """With every mechanism of SASL."""
    async with serving(controller, mechanisms=MECHANISMS) as server:
        yield server


@pytest.mark.parametrize("version", SASL_AUTHENTICATE.requests)
@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_user_with_the_password_is_served(
    mechanism: str, version: int, client: KafkaClient, controller: Controller
) -> None:
    assert (await client.ask(API_VERSIONS, 0, {})).error_code is ErrorCode.none
    credentials = SaslCredentials(mechanism, "a=user,1", PASSWORD)
    answer = await client.authenticate(credentials, version=version)
    assert answer.error_code is ErrorCode.none
    await shut_down(client)
    (peer,) = controller.peers
    assert (peer.principal, peer.security_protocol) == ("User:a=user,1", "SASL_PLAINTEXT")


async def test_sasl_within_tls(controller: Controller, tmp_path: Path) -> None:
    authority = Authority(tmp_path, client_auth="requested")
    async with served(
        controller, context=authority.client("broker-1"), tls=authority.files, mechanisms=MECHANISMS
    ) as (_, client):
        await client.authenticate(SaslCredentials("SCRAM-SHA-512", "a=user,1", PASSWORD))
        await shut_down(client)
    (peer,) = controller.peers
    assert (peer.principal, peer.security_protocol) == ("User:a=user,1", "SASL_SSL")


def send_message(client: KafkaClient, message: bytes) -> int:
    """Send a message of the mechanism in a request; its correlation id."""
    fields = {"authBytes": base64.b64encode(message).decode()}
    return client.send(SASL_AUTHENTICATE, 2, fields)


GENERIC = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
)


@pytest.mark.parametrize(
    ("mechanism", "user", "password", "message"),
    [
        ("PLAIN", "", PASSWORD, "Authentication failed: username not specified"),
        ("PLAIN", "a=user,1", "", "Authentication failed: password not specified"),
        ("PLAIN", "a=user,1", "a\0b", f"{GENERIC}PLAIN"),
        ("SCRAM-SHA-256", "a=user,1", "wrong", f"{GENERIC}SCRAM-SHA-256"),
        ("SCRAM-SHA-512", "nobody", PASSWORD, f"{GENERIC}SCRAM-SHA-512"),
    ],
)
async def test_a_wrong_password_is_answered_as_by_kafka_and_never_logged(
    mechanism: str,
    user: str,
    password: str,
    message: str,
    client: KafkaClient,
    server: KafkaServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        answer = await client.authenticate(SaslCredentials(mechanism, user, password))
        assert answer.error_code is ErrorCode.sasl_authentication_failed
        assert answer.error_message == message
        await client.closed()
        await closed_for(server, CloseReason.AUTHENTICATION)
    assert server.statistics.failed_authentications == 1
    text = "".join(str(record.__dict__) for record in caplog.records)
    assert "authentication" in text
    for secret in (PASSWORD, "wrong", "a\0b"):
        assert secret not in text


async def test_a_failure_is_answered_after_a_delay(controller: Controller) -> None:
    limits = ServerLimits(failed_authentication_delay_s=1000.0)
    async with served(controller, mechanisms=MECHANISMS, limits=limits) as (server, client):
        await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        send_message(client, b"\0u\0p")
        await until(
            lambda: server.statistics.failed_authentications == 1, "a failed authentication"
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.frame()


async def test_another_authorization_id_is_refused(client: KafkaClient) -> None:
    await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    sent = send_message(client, f"admin\0a=user,1\0{PASSWORD}".encode())
    answer = await client.answer(SASL_AUTHENTICATE, 2, sent)
    assert answer.error_message == (
        "Authentication failed: Client requested an authorization id that is different from "
        "username"
    )


async def refused_without_an_answer(client: KafkaClient, server: KafkaServer) -> Mapping[str, Any]:
    """Wait until the connection is closed; the refusal that the server shows."""
    with contextlib.suppress(ConnectionError):
        assert await client.reader.read() == b""
    await closed_for(server, CloseReason.AUTHENTICATION)
    (refusal,) = server.refusals.recent()
    return refusal


async def test_unknown_mechanism_closes_without_an_answer(controller: Controller) -> None:
    """Brokers may have it: an answer would end the client, while it goes on after a closed
    connection."""
    async with served(controller, mechanisms=("SCRAM-SHA-256", "SCRAM-SHA-512")) as (
        server,
        client,
    ):
        client.send(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        refusal = await refused_without_an_answer(client, server)
    assert "'PLAIN' is not enabled" in refusal["reason"]
    assert "SCRAM-SHA-256, SCRAM-SHA-512" in refusal["remedy"]


@pytest.mark.parametrize("version", [0, 1])
async def test_delegation_token(client: KafkaClient, server: KafkaServer, version: int) -> None:
    await client.ask(SASL_HANDSHAKE, version, {"mechanism": "SCRAM-SHA-512"})
    message = b"n,,n=a-token-id,r=nonce,tokenauth=true"
    if version:
        send_message(client, message)
    else:
        client.send_frame(message)
    refusal = await refused_without_an_answer(client, server)
    assert refusal["principal"] == "User:a-token-id"
    assert "delegation token" in refusal["reason"]
    assert "endpoint_announced_listeners" in refusal["remedy"]


@pytest.mark.parametrize(
    ("user", "password"), [("a=user,1", "wrong"), ("nobody", PASSWORD), ("unreadable", PASSWORD)]
)
async def test_a_user_of_plain_whom_only_brokers_may_know_is_not_refused_for_good(
    user: str, password: str, client: KafkaClient, server: KafkaServer
) -> None:
    await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    send_message(client, f"\0{user}\0{password}".encode())
    refusal = await refused_without_an_answer(client, server)
    assert refusal["principal"] == f"User:{user}"
    assert "endpoint_sasl_plain_users_file" in refusal["remedy"]


async def test_unreadable_credential_no_answer(client: KafkaClient, server: KafkaServer) -> None:
    await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "SCRAM-SHA-512"})
    send_message(client, b"n,,n=unreadable,r=nonce")
    refusal = await refused_without_an_answer(client, server)
    assert "not found out" in refusal["reason"]


async def test_a_client_that_says_it_has_no_delegation_token_is_served(client: KafkaClient) -> None:
    await client.ask(SASL_HANDSHAKE, 0, {"mechanism": "SCRAM-SHA-512"})
    client.send_frame(b"n,,n=a=3Duser=2C1,r=nonce,tokenauth=false")
    assert (await client.frame()).startswith(b"r=nonce")


async def test_bare_messages_after_version_0(client: KafkaClient, controller: Controller) -> None:
    await client.ask(SASL_HANDSHAKE, 0, {"mechanism": "SCRAM-SHA-512"})
    dialogue = SaslCredentials("SCRAM-SHA-512", "a=user,1", PASSWORD).dialogue("nonce")
    client.send_frame(next(dialogue))
    client.send_frame(dialogue.send(await client.frame()))
    with pytest.raises(StopIteration):
        dialogue.send(await client.frame())
    await shut_down(client)
    assert controller.peers[0].principal == "User:a=user,1"


async def test_bare_wrong_password_closes(client: KafkaClient, server: KafkaServer) -> None:
    await client.ask(SASL_HANDSHAKE, 0, {"mechanism": "PLAIN"})
    client.send_frame(b"\0a=user,1\0wrong")
    await client.closed()
    await closed_for(server, CloseReason.AUTHENTICATION)


async def test_nothing_is_served_before_authentication(
    client: KafkaClient, server: KafkaServer, controller: Controller
) -> None:
    client.send(CONTROLLED_SHUTDOWN, 3, {"brokerId": 1})
    await client.closed()
    await closed_for(server, CloseReason.MALFORMED)
    assert not controller.peers


@pytest.mark.parametrize("api", [SASL_HANDSHAKE, API_VERSIONS, CONTROLLED_SHUTDOWN])
async def test_mechanism_messages(api: Any, client: KafkaClient, controller: Controller) -> None:
    await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    client.send(api, 0, {"mechanism": "PLAIN"} if api is SASL_HANDSHAKE else _some(api))
    await client.closed()
    assert not controller.peers


def _some(api: Any) -> dict[str, Any]:
    return {"brokerId": 1} if api is CONTROLLED_SHUTDOWN else {}


async def test_unknown_api_versions_before_authentication(client: KafkaClient) -> None:
    client.send_frame(struct.pack(">hhi", 18, 77, 5))
    answer = await client.answer(API_VERSIONS, 0, 5)
    assert answer.error_code is ErrorCode.unsupported_version
    assert (await client.ask(API_VERSIONS, 0, {})).error_code is ErrorCode.none


async def test_a_client_that_does_not_authenticate_is_closed(controller: Controller) -> None:
    limits = ServerLimits(authentication_s=0.05)
    async with served(controller, mechanisms=MECHANISMS, limits=limits) as (server, client):
        await client.closed()
        await closed_for(server, CloseReason.AUTHENTICATION_TIME)


async def test_early_frames_are_small(client: KafkaClient, server: KafkaServer) -> None:
    client.writer.write(struct.pack(">i", PLENTY.unauthenticated_frame_bytes + 1))
    await client.closed()
    await closed_for(server, CloseReason.FRAME_SIZE)


@pytest.mark.parametrize(
    ("mechanisms", "part"), [(("GSSAPI",), "GSSAPI"), (("PLAIN",), "no credentials")]
)
def test_impossible_sasl(mechanisms: tuple[str, ...], part: str, controller: Controller) -> None:
    settings = ServerSettings(sasl_mechanisms=mechanisms)
    with pytest.raises(ConfigurationError, match=part):
        KafkaServer(settings, apis=(), dispatcher=controller)
