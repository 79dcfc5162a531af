"""Kafka's own clients against the bare server, which answers ApiVersions and Metadata."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from regent.model.scram_credential import ScramCredential
from regent.network.kafka_server import KafkaServer
from regent.network.server_settings import ServerLimits, ServerSettings
from regent.network.server_statistics import CloseReason
from regent.network.server_tls import TlsFiles
from regent.protocol.served_apis import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    CONTROLLED_SHUTDOWN,
    METADATA,
)
from regent.protocol.server_codec import Request
from regent.protocol.serving import Peer
from sandbox import KafkaTools
from sandbox.java import write_properties
from sandbox.pki import create_tls_files
from sandbox.process import Outcome
from tests.support.scram_users import scram_credential_of
from tests.support.served_requests import make
from tests.support.soak import versions

pytestmark = pytest.mark.integration

USER, PASSWORD = "client", "a secret"
READING = versions("1.1.1", "3.9.1", others=["2.4.1", "2.8.2", "3.3.2"])
AUTHENTICATING = versions("3.9.1", others=["2.4.1"])


class OnlyBroker:
    """Says that this server is the only broker of the cluster."""

    def __init__(self) -> None:
        self.port = 0
        self.peers: set[tuple[str, str]] = set()

    async def __call__(self, request: Request, peer: Peer) -> Any:
        assert request.header.api_key == METADATA.key
        self.peers.add((peer.principal, peer.security_protocol))
        version = request.header.api_version
        fields: dict[str, Any] = {
            "brokers": [{"nodeId": 7, "host": "127.0.0.1", "port": self.port}],
            "topics": [],
        }
        if version >= 1:
            fields["brokers"][0]["rack"] = None
            fields["controllerId"] = 7
        if version >= 2:
            fields["clusterId"] = "a-cluster"
        if version >= 3:
            fields["throttleTimeMs"] = 0
        return make(METADATA.responses[version], fields)


class OneUser:
    async def password(self, username: str) -> str | None:
        return PASSWORD if username == USER else None

    async def scram_credential(self, mechanism: str, username: str) -> ScramCredential | None:
        return scram_credential_of(PASSWORD, mechanism) if username == USER else None


@asynccontextmanager
async def serving(
    broker: OnlyBroker, settings: ServerSettings | None = None
) -> AsyncIterator[KafkaServer]:
    server = KafkaServer(
        settings or ServerSettings(),
        apis=(METADATA, CONTROLLED_SHUTDOWN, ALTER_PARTITION, ALLOCATE_PRODUCER_IDS),
        dispatcher=broker,
        credentials=OneUser(),
    )
    await server.start()
    broker.port = server.port
    try:
        yield server
    finally:
        await server.stop()


async def broker_api_versions(server: KafkaServer, release: str, *options: str) -> Outcome:
    address = f"127.0.0.1:{server.port}"
    tools = KafkaTools(address, version=release)
    return await asyncio.to_thread(
        tools.run,
        "kafka-broker-api-versions",
        f"--bootstrap-server={address}",
        *options,
        check=False,
    )


def listed(outcome: Outcome) -> dict[int, tuple[int, int]]:
    """Versions by API, of what the broker has."""
    pattern = r"\((\d+)\): (\d+)(?: to (\d+))?"
    found = re.findall(pattern, outcome.stdout)
    return {int(key): (int(low), int(high or low)) for key, low, high in found}


@pytest.mark.parametrize("release", READING)
async def test_every_release_reads_what_is_served(release: str, tmp_path: Path) -> None:
    broker = OnlyBroker()
    async with serving(broker) as server:
        outcome = await broker_api_versions(server, release, *_command_config(tmp_path, {}))
        assert outcome.exit_code == 0, outcome
        assert f"127.0.0.1:{server.port} (id: 7" in outcome.stdout
        served = {key: (api.lowest, api.highest) for key, api in server.codec.apis.items()}
        # A client lists the APIs that it does not know by their numbers, as "UNKNOWN(67)".
        assert {key: versions for key, versions in listed(outcome).items() if key} == served
        assert server.statistics.closed[CloseReason.MALFORMED] == 0


@pytest.mark.parametrize("release", AUTHENTICATING)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_real_clients_authenticate_within_tls(
    release: str, mechanism: str, tmp_path: Path
) -> None:
    broker = OnlyBroker()
    async with serving(broker, _secured(tmp_path)) as server:
        options = _client_options(tmp_path, mechanism, PASSWORD)
        outcome = await broker_api_versions(server, release, *options)
        assert listed(outcome), outcome
        assert broker.peers == {(f"User:{USER}", "SASL_SSL")}


@pytest.mark.parametrize("release", AUTHENTICATING)
async def test_a_real_client_with_a_wrong_password_reads_why(release: str, tmp_path: Path) -> None:
    broker = OnlyBroker()
    async with serving(broker, _secured(tmp_path)) as server:
        options = _client_options(tmp_path, "SCRAM-SHA-512", "wrong")
        outcome = await broker_api_versions(server, release, *options)
        assert (
            "Authentication failed during authentication due to invalid credentials with SASL "
            "mechanism SCRAM-SHA-512"
        ) in outcome.stdout + outcome.stderr
        assert server.statistics.failed_authentications > 0
        assert not broker.peers


def _secured(directory: Path) -> ServerSettings:
    files = create_tls_files(directory)
    return ServerSettings(
        tls=TlsFiles(certificate=files.certificate, key=files.key),
        sasl_mechanisms=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        limits=ServerLimits(authentication_s=300.0),
    )


def _client_options(directory: Path, mechanism: str, password: str) -> tuple[str, str]:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    trust_store = directory / "truststore.p12"
    _make_trust_store(directory / "ca.pem", trust_store)
    properties = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": trust_store,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.password": "changeit",
        "ssl.endpoint.identification.algorithm": "",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
        f'username="{USER}" password="{password}";',
    }
    return _command_config(directory, properties)


def _command_config(directory: Path, properties: dict[str, Any]) -> tuple[str, str]:
    """With time enough for a busy machine: the tool's own is five seconds."""
    names = ("request.timeout.ms", "default.api.timeout.ms", "socket.connection.setup.timeout.ms")
    file = directory / "client.properties"
    write_properties(file, dict.fromkeys(names, 120_000) | properties)
    return "--command-config", str(file)


def _make_trust_store(authority: Path, store: Path) -> None:
    """Kafka reads PEM since 2.7 only."""
    certificate = x509.load_pem_x509_certificate(authority.read_bytes())
    entry = pkcs12.PKCS12Certificate(certificate, b"authority")
    encryption = BestAvailableEncryption(b"changeit")
    store.write_bytes(pkcs12.serialize_java_truststore([entry], encryption))
