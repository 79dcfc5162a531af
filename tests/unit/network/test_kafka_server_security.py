"""TLS and SASL of the server over real sockets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import ssl
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from kio.schema.errors import ErrorCode

from regent.model.errors import ConfigurationError
from regent.model.scram_credential import ScramCredential
from regent.network.kafka_server import KafkaServer
from regent.network.server_settings import ServerLimits, ServerSettings
from regent.network.server_statistics import CloseReason
from regent.network.server_tls import ClientAuth, TlsFiles, server_tls
from regent.protocol.sasl import SaslCredentials
from regent.protocol.served_apis import (
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from regent.protocol.server_codec import Request
from regent.protocol.serving import Peer
from sandbox import wait_until_async
from tests.support.kafka_client import KafkaClient, connected, request_frame
from tests.support.scram_users import scram_credential_of
from tests.support.served_requests import make

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = "a pass,word=ö"
LIMITS = ServerLimits(connection_rate=1e6, request_rate=1e6)


class Users:
    """One user, of every mechanism."""

    async def password(self, username: str) -> str | None:
        return PASSWORD if username == "a=user,1" else None

    async def scram_credential(self, mechanism: str, username: str) -> ScramCredential | None:
        return scram_credential_of(PASSWORD, mechanism) if username == "a=user,1" else None


class Controller:
    def __init__(self) -> None:
        self.peers: list[Peer] = []

    async def __call__(self, request: Request, peer: Peer) -> Any:
        self.peers.append(peer)
        kind = CONTROLLED_SHUTDOWN.responses[request.header.api_version]
        return make(kind, {"errorCode": 0, "remainingPartitions": []})


class Authority:
    """A certificate authority, and the server's files."""

    def __init__(self, directory: Path, *, client_auth: ClientAuth = "none") -> None:
        self.ca = trustme.CA()
        self.files = TlsFiles(
            certificate=directory / "certificate.pem",
            key=directory / "key.pem",
            client_authorities=directory / "ca.pem",
            client_auth=client_auth,
        )
        self.ca.cert_pem.write_to_path(str(directory / "ca.pem"))
        self.renew()

    def renew(self) -> None:
        """Give the server another certificate."""
        issued = self.ca.issue_cert("127.0.0.1")
        self.files.certificate.write_bytes(b"".join(b.bytes() for b in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(self.files.key))

    def client(self, name: str | None = None) -> ssl.SSLContext:
        """A client's context, with a certificate if the client has a name."""
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        if name is not None:
            issued = self.ca.issue_cert(
                common_name=name, organization_name="Example", organization_unit_name="Kafka"
            )
            issued.configure_cert(context)
        return context


@contextlib.asynccontextmanager
async def serving(
    controller: Controller,
    *,
    tls: TlsFiles | None = None,
    mechanisms: tuple[str, ...] = (),
    limits: ServerLimits = LIMITS,
) -> AsyncIterator[KafkaServer]:
    settings = ServerSettings(tls=tls, sasl_mechanisms=mechanisms, limits=limits)
    server = KafkaServer(
        settings, apis=(CONTROLLED_SHUTDOWN,), dispatcher=controller, credentials=Users()
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@pytest.fixture
def controller() -> Controller:
    return Controller()


@pytest.fixture
async def server(controller: Controller) -> AsyncIterator[KafkaServer]:
    """With every mechanism of SASL."""
    async with serving(controller, mechanisms=MECHANISMS) as server:
        yield server


@pytest.fixture
async def client(server: KafkaServer) -> AsyncIterator[KafkaClient]:
    async with connected(server.port) as client:
        yield client


async def closed_for(server: KafkaServer, reason: CloseReason) -> None:
    await wait_until_async(
        lambda: server.statistics.closed[reason] == 1,
        describe=f"a connection closed for {reason}",
        timeout_s=60,
        interval_s=0.005,
    )


async def shut_down(client: KafkaClient) -> None:
    """Be answered."""
    answer = await client.ask(CONTROLLED_SHUTDOWN, 3, {"brokerId": 1})
    assert answer.error_code is ErrorCode.none


async def test_a_client_without_a_certificate_is_anonymous(
    controller: Controller, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, client_auth="requested")
    async with (
        serving(controller, tls=authority.files) as server,
        connected(server.port, context=authority.client()) as client,
    ):
        await shut_down(client)
    (peer,) = controller.peers
    assert (peer.principal, peer.security_protocol) == ("User:ANONYMOUS", "SSL")


@pytest.mark.parametrize("client_auth", ["requested", "required"])
async def test_the_subject_of_a_clients_certificate_is_its_principal(
    client_auth: ClientAuth, controller: Controller, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, client_auth=client_auth)
    async with (
        serving(controller, tls=authority.files) as server,
        connected(server.port, context=authority.client("broker-1")) as client,
    ):
        await shut_down(client)
    assert controller.peers[0].principal == "User:CN=broker-1,OU=Kafka,O=Example"


async def test_every_answer_within_tls_is_followed_by_the_next(
    controller: Controller, tmp_path: Path
) -> None:
    """However requests are cut into records: asyncio's flow control sees every one of them."""
    authority = Authority(tmp_path)
    frame = request_frame(CONTROLLED_SHUTDOWN, 3, 7, {"brokerId": 1})
    async with (
        serving(controller, tls=authority.files) as server,
        connected(server.port, context=authority.client()) as client,
    ):
        for records in (1, 2, 3, 2, 1, 1):
            whole = struct.pack(">i", len(frame)) + frame
            for at in range(records):
                client.writer.write(whole[at : at + 1 if at < records - 1 else None])
                expected = 0 if at == records - 1 else at + 1
                await _buffered(server, at_least=expected)
            await client.answer(CONTROLLED_SHUTDOWN, 3, 7)
            await _buffered(server, at_most=0)


async def _buffered(server: KafkaServer, *, at_least: int = 0, at_most: int = 2**31) -> None:
    await wait_until_async(
        lambda: at_least <= server.statistics.buffered_bytes <= at_most,
        describe=f"{at_least} to {at_most} bytes of requests",
        timeout_s=60,
        interval_s=0.001,
    )


async def test_a_client_without_the_certificate_that_is_required_is_not_served(
    controller: Controller, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, client_auth="required")
    async with serving(controller, tls=authority.files) as server:
        async with connected(server.port, context=authority.client()) as client:
            await client.closed()
        await closed_for(server, CloseReason.TLS)
        assert server.statistics.failed_authentications == 1
        assert server.statistics.connections == 0


async def test_a_certificate_of_another_authority_is_not_accepted(
    controller: Controller, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, client_auth="requested")
    stranger = authority.client()
    trustme.CA().issue_cert(common_name="broker-1").configure_cert(stranger)
    async with serving(controller, tls=authority.files) as server:
        async with connected(server.port, context=stranger) as client:
            await client.closed()
        await closed_for(server, CloseReason.TLS)


async def test_who_is_refused_by_tls_is_named_with_what_to_do(
    controller: Controller, tmp_path: Path
) -> None:
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
            (refused,) = server.refused_peers()
            assert (refused["kind"], refused["address"]) == ("TLS", "127.0.0.1")
            assert remedy in refused["remedy"]


async def test_a_connection_that_ends_before_tls_is_no_refusal(
    controller: Controller, tmp_path: Path
) -> None:
    """As health checks do."""
    authority = Authority(tmp_path)
    async with serving(controller, tls=authority.files) as server:
        async with connected(server.port):
            pass
        await wait_until_async(
            lambda: server.statistics.accepted and not server.statistics.connections,
            describe="the connection to be gone",
            timeout_s=60,
        )
        assert server.refused_peers() == []


async def test_plain_text_to_a_tls_listener_is_closed(
    controller: Controller, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    async with (
        serving(controller, tls=authority.files) as server,
        connected(server.port) as client,
    ):
        client.send(API_VERSIONS, 0, {})
        await client.closed()
        await closed_for(server, CloseReason.TLS)


async def test_a_client_that_never_ends_its_handshake_is_closed(
    controller: Controller, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    limits = ServerLimits(authentication_s=0.05)
    async with (
        serving(controller, tls=authority.files, limits=limits) as server,
        connected(server.port) as client,
    ):
        await client.closed()
        assert server.statistics.connections == 0


async def test_a_renewed_certificate_is_used_for_the_next_connection(
    controller: Controller, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)

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


def test_a_certificate_without_its_key_leaves_the_former_ones_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
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


def test_files_that_cannot_be_used_at_the_start_are_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.files.key.write_bytes(b"no key")
    with pytest.raises(ConfigurationError, match=str(authority.files.key)):
        server_tls(authority.files)
    authority.files.certificate.unlink()
    with pytest.raises(ConfigurationError, match="No such file"):
        server_tls(authority.files)


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
    async with (
        serving(controller, tls=authority.files, mechanisms=MECHANISMS) as server,
        connected(server.port, context=authority.client("broker-1")) as client,
    ):
        await client.authenticate(SaslCredentials("SCRAM-SHA-512", "a=user,1", PASSWORD))
        await shut_down(client)
    (peer,) = controller.peers
    assert (peer.principal, peer.security_protocol) == ("User:a=user,1", "SASL_SSL")


GENERIC = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
)


@pytest.mark.parametrize(
    ("mechanism", "user", "password", "message"),
    [
        ("PLAIN", "a=user,1", "wrong", "Authentication failed: Invalid username or password"),
        ("PLAIN", "nobody", PASSWORD, "Authentication failed: Invalid username or password"),
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
    async with (
        serving(controller, mechanisms=MECHANISMS, limits=limits) as server,
        connected(server.port) as client,
    ):
        await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        fields = {"authBytes": base64.b64encode(b"\0u\0p").decode()}
        client.send(SASL_AUTHENTICATE, 2, fields)
        await wait_until_async(
            lambda: server.statistics.failed_authentications == 1,
            describe="a failed authentication",
            timeout_s=60,
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.frame()


async def test_another_authorization_id_is_refused(client: KafkaClient) -> None:
    await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    message = f"admin\0a=user,1\0{PASSWORD}".encode()
    fields = {"authBytes": base64.b64encode(message).decode()}
    answer = await client.ask(SASL_AUTHENTICATE, 2, fields)
    assert answer.error_message == (
        "Authentication failed: Client requested an authorization id that is different from "
        "username"
    )


async def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are(
    controller: Controller,
) -> None:
    async with (
        serving(controller, mechanisms=("SCRAM-SHA-256", "SCRAM-SHA-512")) as server,
        connected(server.port) as client,
    ):
        answer = await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        assert answer.error_code is ErrorCode.unsupported_sasl_mechanism
        assert answer.mechanisms == ("SCRAM-SHA-256", "SCRAM-SHA-512")
        await client.closed()
        await closed_for(server, CloseReason.AUTHENTICATION)


async def test_messages_come_bare_after_a_handshake_of_version_0(
    client: KafkaClient, controller: Controller
) -> None:
    await client.ask(SASL_HANDSHAKE, 0, {"mechanism": "SCRAM-SHA-512"})
    dialogue = SaslCredentials("SCRAM-SHA-512", "a=user,1", PASSWORD).dialogue("nonce")
    client.send_frame(next(dialogue))
    client.send_frame(dialogue.send(await client.frame()))
    with pytest.raises(StopIteration):
        dialogue.send(await client.frame())
    await shut_down(client)
    assert controller.peers[0].principal == "User:a=user,1"


async def test_a_bare_message_with_a_wrong_password_closes_the_connection(
    client: KafkaClient, server: KafkaServer
) -> None:
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
async def test_after_the_handshake_only_messages_of_the_mechanism_are_taken(
    api: Any, client: KafkaClient, controller: Controller
) -> None:
    await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    client.send(api, 0, {"mechanism": "PLAIN"} if api is SASL_HANDSHAKE else _some(api))
    await client.closed()
    assert not controller.peers


def _some(api: Any) -> dict[str, Any]:
    return {"brokerId": 1} if api is CONTROLLED_SHUTDOWN else {}


async def test_api_versions_of_an_unknown_version_is_answered_before_authentication(
    client: KafkaClient,
) -> None:
    client.send_frame(struct.pack(">hhi", 18, 77, 5))
    answer = await client.answer(API_VERSIONS, 0, 5)
    assert answer.error_code is ErrorCode.unsupported_version
    assert (await client.ask(API_VERSIONS, 0, {})).error_code is ErrorCode.none


async def test_a_client_that_does_not_authenticate_is_closed(controller: Controller) -> None:
    limits = ServerLimits(authentication_s=0.05)
    async with (
        serving(controller, mechanisms=MECHANISMS, limits=limits) as server,
        connected(server.port) as client,
    ):
        await client.closed()
        await closed_for(server, CloseReason.AUTHENTICATION_TIME)


async def test_frames_are_small_before_authentication(
    client: KafkaClient, server: KafkaServer
) -> None:
    client.writer.write(struct.pack(">i", LIMITS.unauthenticated_frame_bytes + 1))
    await client.closed()
    await closed_for(server, CloseReason.FRAME_SIZE)


@pytest.mark.parametrize(
    ("mechanisms", "part"), [(("GSSAPI",), "GSSAPI"), (("PLAIN",), "no credentials")]
)
def test_sasl_that_cannot_be_is_refused(
    mechanisms: tuple[str, ...], part: str, controller: Controller
) -> None:
    settings = ServerSettings(sasl_mechanisms=mechanisms)
    with pytest.raises(ConfigurationError, match=part):
        KafkaServer(settings, apis=(), dispatcher=controller)
