"""Who a broker takes a client for whose requests are passed on: the client, never Regent."""

from __future__ import annotations

import contextlib
import hashlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from regent.model.cluster import Broker, EndPoint
from regent.network.kafka_server import KafkaServer
from regent.network.pass_through import PassThrough
from regent.network.server_settings import ServerSettings
from regent.network.server_statistics import CloseReason
from regent.network.server_tls import TlsFiles
from regent.network.upstream_settings import UpstreamSettings
from regent.protocol.sasl import SaslCredentials, ScramKeys
from regent.protocol.served_apis import CONTROLLED_SHUTDOWN, METADATA
from regent.protocol.server_codec import Request
from regent.protocol.serving import Close, Peer, UpstreamBroker
from tests.support.fixed_tls import FixedTls
from tests.support.kafka_client import KafkaClient, connected
from tests.support.raw_broker import nowhere, versions_of
from tests.support.served_requests import make
from tests.support.waiting import until
from tests.unit.network.kafka_servers import PLENTY
from tests.unit.network.secured_servers import MECHANISMS, PASSWORD, USER, Authority, Users


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
            ServerSettings(tls=broker_tls or tls, sasl_mechanisms=mechanisms, limits=PLENTY),
            apis=(METADATA,),
            dispatcher=self.asked,
            credentials=broker_users or Users(),
        )
        self.server = KafkaServer(
            ServerSettings(tls=tls, sasl_mechanisms=mechanisms, limits=PLENTY),
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
        await until(lambda: self.server.statistics.closed[reason] == 1, f"closed: {reason.value}")


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
async def test_user_kept_within_tls(mechanism: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    trusted = authority.client()
    async with (
        Cluster(tls=authority.files, trusted=trusted, mechanisms=MECHANISMS) as cluster,
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


async def test_anonymous_within_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path, client_auth="requested")
    trusted = authority.client()
    async with (
        Cluster(tls=authority.files, trusted=trusted) as cluster,
        connected(cluster.server.port, context=trusted) as client,
    ):
        assert await client.ask(METADATA, 1, {"topics": []})
        assert cluster.asked.principals == ["User:ANONYMOUS"]


async def test_certificate_is_not_passed_on(tmp_path: Path) -> None:
    authority = Authority(tmp_path, client_auth="requested")
    trusted = authority.client()
    async with (
        Cluster(tls=authority.files, trusted=trusted) as cluster,
        connected(cluster.server.port, context=authority.client("alice")) as client,
    ):
        assert await client.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        client.send(METADATA, 1, {"topics": []})
        await client.closed()
        await cluster.closed_for(CloseReason.NOT_PASSED_ON)
        assert cluster.asked.principals == []


async def test_other_authority_gets_no_password(tmp_path: Path) -> None:
    for name in ("ours", "other"):
        (tmp_path / name).mkdir()
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    trusted = ours.client()
    async with (
        Cluster(
            tls=ours.files, broker_tls=other.files, trusted=trusted, mechanisms=MECHANISMS
        ) as cluster,
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
