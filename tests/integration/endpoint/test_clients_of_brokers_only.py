"""Clients that only brokers can authenticate are served by brokers, although they see Regent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sandbox import KafkaTools
from sandbox.java import write_properties
from sandbox.kafka_jars import version_tuple
from sandbox.regent_process import RegentProcess
from sandbox.secured import MECHANISM, PLAIN_CLIENT
from tests.integration.endpoint.secured_support import (
    CLIENT,
    PASSWORDS,
    SecuredCluster,
    address_of,
)

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOPIC = "for-clients-of-brokers"
ATTEMPTS = 30
"""A client picks one node of four, twice. That none of so many picks Regent does not happen."""


@pytest.fixture(scope="module")
def led(secured: SecuredCluster) -> Iterator[RegentProcess]:
    secured.restore()
    with secured.active_regent() as process:
        secured.create_topic(address_of(process), TOPIC)
        yield process


def test_a_client_with_a_delegation_token_is_served(
    secured: SecuredCluster, led: RegentProcess, tmp_path: Path
) -> None:
    token, secret = delegation_token(secured)
    login = f'ScramLoginModule required username="{token}" password="{secret}" tokenauth="true";'
    jaas = f"org.apache.kafka.common.security.scram.{login}"
    refused = ask_until_refused(secured, led, tmp_path, mechanism=MECHANISM, jaas=jaas)
    assert refused["principal"] == f"User:{token}"
    assert "delegation token" in refused["reason"]
    assert secret not in led.log_path.read_text()


def test_a_client_with_a_mechanism_that_regent_does_not_have_is_served(
    secured: SecuredCluster, led: RegentProcess, tmp_path: Path
) -> None:
    user = f'username="{PLAIN_CLIENT}" password="{PASSWORDS[PLAIN_CLIENT]}"'
    jaas = f"org.apache.kafka.common.security.plain.PlainLoginModule required {user};"
    refused = ask_until_refused(secured, led, tmp_path, mechanism="PLAIN", jaas=jaas)
    assert "'PLAIN' is not enabled" in refused["reason"]


def ask_until_refused(
    secured: SecuredCluster, led: RegentProcess, directory: Path, *, mechanism: str, jaas: str
) -> Mapping[str, str]:
    """List topics, as a client that has all addresses, until Regent was asked; what it did."""
    config = directory / "client.properties"
    properties = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": secured.authority.certificate,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas,
    }
    write_properties(config, properties)
    before = len(refusals(led))
    servers = f"--bootstrap-server={address_of(led)},{secured.kafka.bootstrap_servers}"
    tools = KafkaTools(secured.kafka.bootstrap_servers)
    for _ in range(ATTEMPTS):
        listed = tools.run("kafka-topics", servers, "--list", f"--command-config={config}").stdout
        assert TOPIC in listed.split()
        found = refusals(led)[before:]
        if found:
            return found[0]
    raise AssertionError("no client has asked Regent")


def refusals(led: RegentProcess) -> list[dict[str, str]]:
    return [entry for entry in led.log_entries() if entry["message"] == "peer refused"]


def delegation_token(secured: SecuredCluster) -> tuple[str, str]:
    """A token of the client's, and its secret."""
    version = secured.kafka.version
    package = "org.apache.kafka.tools" if version_tuple(version) >= (3, 8) else "kafka.admin"
    servers = secured.kafka.bootstrap_servers
    created = KafkaTools(servers, version=version).run(
        f"{package}.DelegationTokenCommand",
        f"--bootstrap-server={servers}",
        "--create",
        "--max-life-time-period=-1",
        f"--command-config={secured.command_config()}",
    )
    (line,) = (line for line in created.stdout.splitlines() if f"User:{CLIENT}" in line)
    token, secret, *_ = line.split()
    return token, secret
