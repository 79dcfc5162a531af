"""Connections to brokers that end SASL sessions (``connections.max.reauth.ms``)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from regent.model.cluster import Broker, EndPoint
from regent.network.api_versions import ask_versions
from regent.network.connection import BrokerConnection
from regent.network.pass_through import PassThrough
from regent.network.settings import ChannelSettings
from regent.network.upstream_settings import UpstreamSettings
from regent.protocol.framing import API_VERSIONS_KEY, RequestHeader, encode_request, joined
from regent.protocol.sasl import SaslCredentials
from regent.protocol.serving import Peer, UpstreamBroker
from sandbox import KafkaBroker, ZooKeeper, wait_until_async
from sandbox.ports import lease_port
from tests.support.raw_broker import nowhere, versions_of
from tests.support.soak import versions

pytestmark = pytest.mark.integration

SESSION_S = 8.0
SESSIONS = 2
USER, PASSWORD = "regent", "secret"
CREDENTIALS = SaslCredentials("PLAIN", USER, PASSWORD)


@pytest.fixture(scope="module", params=versions("3.9.1", others=["1.1.1", "2.4.1"]))
def endpoint(request: pytest.FixtureRequest) -> Iterator[EndPoint]:
    """Of a broker whose sessions are short, where it knows the setting."""
    with ZooKeeper() as zookeeper:
        lease = lease_port()
        broker = KafkaBroker(zookeeper=zookeeper.connect_string, version=request.param)
        broker.config |= {
            "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SECURE://127.0.0.1:{lease.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain."
            f'PlainLoginModule required user_{USER}="{PASSWORD}";',
            "connections.max.reauth.ms": int(SESSION_S * 1000),
            "controlled.shutdown.enable": False,
        }
        try:
            broker.start()
            yield EndPoint("SECURE", "SASL_PLAINTEXT", "127.0.0.1", lease.port)
        finally:
            broker.close()
            lease.release()


async def next_session(began: float) -> None:
    """Until a session that began then is over."""
    now = asyncio.get_running_loop().time
    await wait_until_async(lambda: now() > began + SESSION_S, describe="the end of a session")


async def test_a_connection_is_used_for_longer_than_a_session(endpoint: EndPoint) -> None:
    settings = ChannelSettings(sasl=CREDENTIALS)
    connection = await BrokerConnection.open(endpoint, client_id="test", settings=settings)
    try:
        for _ in range(SESSIONS):
            await next_session(asyncio.get_running_loop().time())
            assert API_VERSIONS_KEY in await ask_versions(connection)
    finally:
        connection.close()


async def test_what_is_passed_on_for_a_client_is_answered_for_longer_than_a_session(
    endpoint: EndPoint,
) -> None:
    pass_through = PassThrough(
        UpstreamSettings(),
        brokers=lambda: [UpstreamBroker(Broker(1, 1, (endpoint,)), versions_of((2, 4)))],
        depends_on_address=nowhere,
    )
    peer = Peer(
        address="127.0.0.1",
        port=1,
        principal=f"User:{USER}",
        listener="SECURE",
        security_protocol=endpoint.security_protocol,
    )
    upstream = pass_through.upstream(peer, CREDENTIALS, group="clients")
    try:
        for number in range(SESSIONS):
            header = RequestHeader(API_VERSIONS_KEY, 0, number, "client")
            frame = joined(encode_request(header, (b"",), flexible=False))[4:]
            assert await upstream.ask(header, frame)
            await next_session(asyncio.get_running_loop().time())
    finally:
        pass_through.close()
