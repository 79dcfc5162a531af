"""Who a broker takes a client for whose requests are passed on: the client, never Regent."""

from __future__ import annotations

import contextlib
import hashlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from regent.model.cluster import Broker, EndPoint
from regent.model.scram_credential import ScramCredential
from regent.network.kafka_server import KafkaServer
from regent.network.pass_through import PassThrough
from regent.network.server_settings import ServerLimits, ServerSettings
from regent.network.server_statistics import CloseReason
from regent.network.server_tls import ClientAuth, TlsFiles
from regent.network.upstream_settings import UpstreamSettings
from regent.protocol.sasl import SaslCredentials, ScramKeys
from regent.protocol.served_apis import CONTROLLED_SHUTDOWN, METADATA
from regent.protocol.server_codec import Request
from regent.protocol.serving import Close, Peer, UpstreamBroker
from sandbox import wait_until_async
from tests.support.fixed_tls import FixedTls
from tests.support.kafka_client import KafkaClient, connected
from tests.support.raw_broker import nowhere, versions_of
from tests.support.scram_users import scram_credential_of
from tests.support.served_requests import make

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USER, PASSWORD = "a=user,1", "a pass,word=ö"
LIMITS = ServerLimits(connection_rate=1e6, request_rate=1e6)


class Users:
    """One user, of every mechanism."""

    def __init__(self, password: str = PASSWORD) -> None:
        self.known = password

    async def password(self, username: str) -> str | None:
        return self.known if username == USER else None

    async def scram_credential(self, mechanism: str, username: str) -> ScramCredential | None:
        return scram_credential_of(self.known, mechanism) if username == USER else None


class Answering:
    """Answers Metadata as a broker, and remembers who has asked; ControlledShutdown, too."""

    def __init__(self) -> None:
        self.principals: list[str] = []

    async def __call__(self, request: Request, peer: Peer) -> Any | Close:
        if request.header.api_key == CONTROLLED_SHUTDOWN.key:
            kind = CONTROLLED_SHUTDOWN.responses[request.header.api_version]
            return make(kind, {"errorCode": 0, "remainingPartitions": []})
        self.principals.append(peer.principal)
        fields: dict[str, Any] = {"brokers": [], "controllerId": 1, "topics": []}
        return make(METADATA.responses[request.header.api_version], fields)


class Cluster:
    """A broker, and a server in front of it with the same protocol."""

    def __init__(
        self,
        *,
        tls: TlsFiles | None = None,
        mechanisms: tuple[str, ...] = (),
        broker_tls: TlsFiles | None = None,
        trusted: ssl.SSLContext | None = None,
        broker_users: Users | None = None,
        depends_on_address: Callable[[Peer], Awaitable[bool]] = nowhere,
    ) -> None:
        self.asked = Answering()
        self.broker = KafkaServer(
            ServerSettings(tls=broker_tls or tls, sasl_mechanisms=mechanisms, limits=LIMITS),
            apis=(METADATA,),
            dispatcher=self.asked,
            credentials=broker_users or Users(),
        )
        self.server = KafkaServer(
            ServerSettings(tls=tls, sasl_mechanisms=mechanisms, limits=LIMITS),
            apis=(CONTROLLED_SHUTDOWN,),
            dispatcher=Answering(),
            credentials=Users(),
            pass_through=PassThrough(
                UpstreamSettings(tls=None if trusted is None else FixedTls(trusted)),
                brokers=self._brokers,
                depends_on_address=depends_on_address,
            ),
        )

    def _brokers(self) -> list[UpstreamBroker]:
        protocol = self.broker.settings.security_protocol
        endpoint = EndPoint("CLIENTS", protocol, "127.0.0.1", self.broker.port)
        return [UpstreamBroker(Broker(1, 1, (endpoint,)), versions_of((3, 9)))]

    async def __aenter__(self) -> Cluster:
        await self.broker.start()
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()
        await self.broker.stop()

    async def closed_for(self, reason: CloseReason) -> None:
        await wait_until_async(
            lambda: self.server.statistics.closed[reason] == 1,
            describe=f"closed: {reason.value}",
            timeout_s=60,
            interval_s=0.005,
        )


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def files(
    authority: trustme.CA, directory: Path, *, client_auth: ClientAuth = "none"
) -> tuple[TlsFiles, ssl.SSLContext]:
    """The server's files, and a context that trusts them."""
    directory.mkdir(exist_ok=True)
    found = TlsFiles(
        certificate=directory / "certificate.pem",
        key=directory / "key.pem",
        client_authorities=directory / "ca.pem",
        client_auth=client_auth,
    )
    authority.cert_pem.write_to_path(str(directory / "ca.pem"))
    issued = authority.issue_cert("127.0.0.1")
    found.certificate.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(found.key))
    return found, trusting(authority)


def trusting(authority: trustme.CA, *, name: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if name is not None:
        authority.issue_cert(common_name=name).configure_cert(context)
    return context


@contextlib.asynccontextmanager
async def authenticated(
    cluster: Cluster, mechanism: str, context: ssl.SSLContext | None = None
) -> AsyncIterator[KafkaClient]:
    async with connected(cluster.server.port, context=context) as client:
        await client.authenticate(SaslCredentials(mechanism, USER, PASSWORD))
        yield client


async def test_a_client_without_authentication_is_anonymous_to_the_broker() -> None:
    async with Cluster() as cluster, connected(cluster.server.port) as client:
        assert await client.ask(METADATA, 1, {"topics": []})
        assert cluster.asked.principals == ["User:ANONYMOUS"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_user_is_the_same_user_to_the_broker(mechanism: str) -> None:
    async with (
        Cluster(mechanisms=MECHANISMS) as cluster,
        authenticated(cluster, mechanism) as client,
    ):
        assert await client.ask(METADATA, 1, {"topics": []})
        assert cluster.asked.principals == [f"User:{USER}"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_a_user_is_the_same_user_within_tls(
    mechanism: str, authority: trustme.CA, tmp_path: Path
) -> None:
    tls, trusted = files(authority, tmp_path)
    async with (
        Cluster(tls=tls, trusted=trusted, mechanisms=MECHANISMS) as cluster,
        authenticated(cluster, mechanism, trusted) as client,
    ):
        assert await client.ask(METADATA, 1, {"topics": []})
        assert cluster.asked.principals == [f"User:{USER}"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_what_the_broker_refuses_is_not_passed_on_as_somebody_else(mechanism: str) -> None:
    """The password has just been changed, or the file of users is another one than the broker's."""
    async with (
        Cluster(mechanisms=MECHANISMS, broker_users=Users("another password")) as cluster,
        authenticated(cluster, mechanism) as client,
    ):
        client.send(METADATA, 1, {"topics": []})
        await client.closed()
        await cluster.closed_for(CloseReason.UPSTREAM)
        assert cluster.asked.principals == []


async def test_within_tls_a_client_without_a_certificate_is_anonymous(
    authority: trustme.CA, tmp_path: Path
) -> None:
    tls, trusted = files(authority, tmp_path, client_auth="requested")
    async with (
        Cluster(tls=tls, trusted=trusted) as cluster,
        connected(cluster.server.port, context=trusted) as client,
    ):
        assert await client.ask(METADATA, 1, {"topics": []})
        assert cluster.asked.principals == ["User:ANONYMOUS"]


async def test_a_client_with_a_certificate_is_not_passed_on(
    authority: trustme.CA, tmp_path: Path
) -> None:
    tls, trusted = files(authority, tmp_path, client_auth="requested")
    async with (
        Cluster(tls=tls, trusted=trusted) as cluster,
        connected(cluster.server.port, context=trusting(authority, name="alice")) as client,
    ):
        assert await client.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        client.send(METADATA, 1, {"topics": []})
        await client.closed()
        await cluster.closed_for(CloseReason.NOT_PASSED_ON)
        assert cluster.asked.principals == []


async def test_a_broker_with_another_authority_gets_no_password(
    authority: trustme.CA, tmp_path: Path
) -> None:
    tls, trusted = files(authority, tmp_path / "ours")
    other, _ = files(trustme.CA(), tmp_path / "other")
    async with (
        Cluster(tls=tls, broker_tls=other, trusted=trusted, mechanisms=MECHANISMS) as cluster,
        authenticated(cluster, "PLAIN", trusted) as client,
    ):
        client.send(METADATA, 1, {"topics": []})
        await client.closed()
        await cluster.closed_for(CloseReason.UPSTREAM)
        assert cluster.broker.statistics.failed_authentications > 0


async def test_who_has_a_right_by_address_is_not_passed_on_from_ours() -> None:
    asked_of: list[str] = []

    async def depends_on_address(peer: Peer) -> bool:
        asked_of.append(peer.principal)
        return True

    async with (
        Cluster(mechanisms=MECHANISMS, depends_on_address=depends_on_address) as cluster,
        authenticated(cluster, "PLAIN") as client,
    ):
        client.send(METADATA, 1, {"topics": []})
        await client.closed()
        await cluster.closed_for(CloseReason.NOT_PASSED_ON)
        assert (asked_of, cluster.asked.principals) == ([f"User:{USER}"], [])


def test_what_a_user_has_proved_is_not_shown_in_texts() -> None:
    keys = ScramKeys(
        mechanism="SCRAM-SHA-256",
        username=USER,
        salt=b"salt",
        iterations=4096,
        client_key=hashlib.sha256(b"secret").digest(),
        server_key=hashlib.sha256(b"other secret").digest(),
    )
    assert repr(keys) == f"ScramKeys(SCRAM-SHA-256, {USER}, keys withheld)"
