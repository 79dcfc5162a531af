"""TLS and SASL against a real broker, and which of its listeners is chosen."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from regent.network.settings import ChannelSettings
from regent.network.tls import tls_to_brokers
from regent.protocol.sasl import MECHANISMS, SaslCredentials
from sandbox import KafkaBroker, ZooKeeper, wait_until_async
from sandbox.pki import create_tls_files
from sandbox.ports import lease_port
from tests.integration.protocol.foreign_controller import foreign_controller
from tests.support.fixed_tls import FixedTls
from tests.support.metadata import Connection
from tests.support.scram_users import ALGORITHMS, scram_user_node
from tests.support.znodes import Znodes

pytestmark = pytest.mark.integration

USER, PASSWORD = "regent", "pen,cil="


class SecuredBroker:
    """A broker whose inter-broker listener wants TLS and a password; another one wants neither."""

    def __init__(self, zookeeper: str, directory: Path) -> None:
        self.zookeeper = zookeeper
        self._files = create_tls_files(directory)
        self._lease = lease_port()
        self.secure_port = self._lease.port
        self.broker = KafkaBroker(zookeeper=zookeeper, session_timeout_ms=60_000)
        plain = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="broker" password="b" user_broker="b" user_{USER}="{PASSWORD}";'
        )
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        self.broker.config |= {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.broker.port},"
            f"SECURE://127.0.0.1:{self.secure_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL",
            "inter.broker.listener.name": "SECURE",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": plain,
            "listener.name.secure.scram-sha-256.sasl.jaas.config": scram,
            "listener.name.secure.scram-sha-512.sasl.jaas.config": scram,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._files.key_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._files.ca_certificate),
            "controlled.shutdown.enable": False,
        }

    def close(self) -> None:
        self.broker.close()
        self._lease.release()

    def settings(self, mechanism: str, password: str = PASSWORD) -> ChannelSettings:
        return ChannelSettings(
            tls=tls_to_brokers(authorities=self._files.ca_certificate),
            sasl=SaslCredentials(mechanism, USER, password),
        )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with ZooKeeper() as zookeeper:
        _write_scram_user(zookeeper.connect_string)
        secured = SecuredBroker(zookeeper.connect_string, tmp_path_factory.mktemp("tls"))
        try:
            secured.broker.start()
            yield secured
        finally:
            secured.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_tls_with_every_mechanism(
    mechanism: str, secured: SecuredBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with foreign_controller(secured.zookeeper, secured.settings(mechanism)) as controller:
        (answer,) = await controller.send(controller.announcement())
        assert answer.error_code == 0
        assert controller.channels.metrics()[1].failures == 0
        assert await controller.channels.inter_broker_protocol() == (3, 9)
    assert _endpoints(caplog) == [f"SECURE://127.0.0.1:{secured.secure_port}"]


async def test_large_requests_survive_tls(secured: SecuredBroker) -> None:
    async with foreign_controller(secured.zookeeper, secured.settings("PLAIN")) as controller:
        await controller.send(controller.announcement())
        requests = controller.birth("large", dict.fromkeys(range(20_000), (7,)))
        (answer,) = await controller.send(requests)
        assert answer.error_code == 0
    client = Connection(secured.broker.port, version=(3, 9))
    known = client.metadata().partitions
    client.close()
    assert len([topic for topic, _ in known if topic == "large"]) == 20_000


async def test_without_credentials_the_open_listener_serves(
    secured: SecuredBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker names a listener that these settings cannot use."""
    caplog.set_level(logging.INFO)
    async with foreign_controller(secured.zookeeper) as controller:
        (answer,) = await controller.send(controller.announcement())
        assert answer.error_code == 0
    assert _endpoints(caplog) == [f"PLAINTEXT://127.0.0.1:{secured.broker.port}"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_a_wrong_password_is_reported_and_retried(
    mechanism: str, secured: SecuredBroker, caplog: pytest.LogCaptureFixture
) -> None:
    settings = secured.settings(mechanism, password="wrong")
    strict = ChannelSettings(listener="SECURE", tls=settings.tls, sasl=settings.sasl)
    async with foreign_controller(secured.zookeeper, strict) as controller:
        await wait_until_async(
            lambda: controller.channels.metrics()[1].failures > 1,
            describe="two refusals",
        )
    errors = [record.error for record in caplog.records if hasattr(record, "error")]
    assert any("AuthenticationError" in error for error in errors)
    assert all("wrong" not in error for error in errors)


async def test_an_unknown_certificate_is_refused(
    secured: SecuredBroker, caplog: pytest.LogCaptureFixture
) -> None:
    strict = ChannelSettings(
        listener="SECURE",
        tls=FixedTls(ssl.create_default_context()),
        sasl=SaslCredentials("PLAIN", USER, PASSWORD),
    )
    with caplog.at_level(logging.WARNING):
        async with foreign_controller(secured.zookeeper, strict) as controller:
            await wait_until_async(
                lambda: controller.channels.metrics()[1].failures > 0,
                describe="the broker to be refused",
            )
    assert "CERTIFICATE_VERIFY_FAILED" in "".join(
        record.error for record in caplog.records if hasattr(record, "error")
    )


def _endpoints(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Where the channels connected to, as logged."""
    return [
        record.endpoint  # type: ignore[attr-defined]
        for record in caplog.records
        if record.getMessage() == "connected to broker"
    ]


def _write_scram_user(zookeeper: str) -> None:
    with Znodes(zookeeper) as znodes:
        value = scram_user_node(PASSWORD, ALGORITHMS)
        znodes.client.create(f"/config/users/{USER}", value, makepath=True)
