"""Wrong passwords, expired certificates and missing rights are named, with what to do.

In Regent's log, by `regent status`, and to clients as Kafka words it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from sandbox import wait_until
from sandbox.pki import TlsFiles
from sandbox.regent_process import RegentProcess
from sandbox.secured import BROKER_USER
from tests.integration.endpoint.secured_support import (
    CLIENT,
    REGENT_USER,
    STRANGER,
    SecuredCluster,
    address_of,
    status_text,
)
from tests.support.librdkafka import TIMEOUT_S

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_numbers = itertools.count(1)


def wait_for_log(
    process: RegentProcess, describe: str, is_it: Callable[[dict[str, Any]], bool]
) -> Any:
    """The first entry of a Regent's log that is what a test waits for."""
    entry: dict[str, Any] = wait_until(
        lambda: next((entry for entry in process.log_entries() if is_it(entry)), None),
        describe=describe,
        logs=[process.log_path],
    )
    return entry


def wait_for_status(process: RegentProcess, *parts: str) -> str:
    """Wait until ``regent status`` prints a line with all of this; the line."""

    def line() -> str | None:
        lines = status_text(process).splitlines()
        return next((each for each in lines if all(part in each for part in parts)), None)

    return str(
        wait_until(
            line,
            describe=f"a line with {parts}",
            logs=[process.log_path],
        )
    )


@contextlib.contextmanager
def expired(secured: SecuredCluster, files: TlsFiles) -> Iterator[None]:
    """The certificate in these files has expired; in the end it is renewed."""
    secured.authority.renew(files, is_expired=True)
    try:
        yield
    finally:
        secured.authority.renew(files)


@pytest.fixture(scope="module", autouse=True)
def _healthy(secured: SecuredCluster) -> None:
    """All brokers run, whatever other modules did."""
    secured.restore()


def test_a_wrong_password_for_brokers(secured: SecuredCluster) -> None:
    wrong = secured.password_file(REGENT_USER, "wrong")
    with secured.regent(broker_sasl_password_file=wrong) as process:
        entry = wait_for_log(
            process, "the refusal", lambda e: e.get("principal") == f"User:{REGENT_USER}"
        )
        assert entry["message"] == "broker not reached; retrying"
        assert entry["endpoint"].startswith("BROKERS://127.0.0.1:")
        assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in entry["error"]
        assert "broker_sasl_password_file" in entry["remedy"]
        wait_for_status(
            process,
            "Unreached",
            "broker ",
            "BROKERS://127.0.0.1:",
            f"User:{REGENT_USER}",
            "broker_sasl_password_file",
        )


def test_a_wrong_password_for_zookeeper(secured: SecuredCluster) -> None:
    wrong = secured.password_file(REGENT_USER, "wrong")
    with secured.regent(zookeeper_sasl_password_file=wrong) as process:
        entry = wait_for_log(
            process,
            "the refusal",
            lambda e: e["message"] == "ZooKeeper refused the credentials",
        )
        assert entry["servers"] == secured.zookeeper.secure_connect_string
        for text in (entry["problem"], status_text(process)):
            assert "user 'kafka' (DIGEST-MD5)" in text
            assert "zookeeper_sasl_password_file" in text


def test_an_expired_certificate_of_the_endpoint(secured: SecuredCluster) -> None:
    with expired(secured, secured.endpoint_files), secured.regent() as process:
        process.wait_until_active()
        address = address_of(process)
        file = str(secured.endpoint_files.certificate)
        with pytest.raises(KafkaException):
            secured.admin(address).list_topics(timeout=10)
        entry = wait_for_log(
            process, "the certificate", lambda e: e["message"] == "Certificate is not valid"
        )
        assert file in entry["problem"]
        assert "expired at" in entry["problem"]
        wait_for_status(process, "Endpoint", file, "expired at", "replace the file")


def test_an_expired_certificate_of_regent(secured: SecuredCluster) -> None:
    """Which it shows to ZooKeeper, and to brokers."""
    own = secured.authority.issue(f"expired-{next(_numbers)}", is_expired=True)
    named = (str(own.certificate), "expired at")
    to_zookeeper = {
        "zookeeper_tls_certificate_file": own.certificate,
        "zookeeper_tls_key_file": own.key,
    }
    with secured.regent(**to_zookeeper) as process:
        wait_until(
            lambda: status_text(process),
            until=lambda text: all(part in text for part in named),
            describe="the certificate to be named",
        )
        entry = wait_for_log(
            process,
            "the certificate",
            lambda e: e["message"] == "ZooKeeper server not reached; retrying",
        )
        assert all(part in entry["problem"] for part in named)
    to_brokers = {"broker_tls_certificate_file": own.certificate, "broker_tls_key_file": own.key}
    with secured.regent(**to_brokers) as process:
        entry = wait_for_log(
            process,
            "the certificate",
            lambda e: e["message"] == "broker not reached; retrying" and "remedy" in e,
        )
        assert all(part in entry["remedy"] for part in named)
        wait_for_status(process, "Unreached", "BROKERS://127.0.0.1:", *named)


@pytest.fixture(scope="module")
def led(secured: SecuredCluster) -> Iterator[RegentProcess]:
    """A Regent that leads during all tests from here on."""
    with secured.active_regent() as process:
        yield process


def test_a_wrong_password_of_a_client(secured: SecuredCluster, led: RegentProcess) -> None:
    address = address_of(led)
    errors: list[str] = []
    options = secured.client_options(address, password="a-bad-guess")
    admin = AdminClient(options | {"error_cb": lambda error: errors.append(error.str())})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=10)
    wait_until(
        lambda: admin.poll(0.1) is not None and errors,
        describe="the client to read why",
    )
    assert any("due to invalid credentials with SASL mechanism" in each for each in errors)
    entry = wait_for_log(led, "the refusal", lambda e: e.get("principal") == f"User:{CLIENT}")
    assert entry["message"] == "peer refused"
    assert (entry["kind"], entry["address"]) == ("authentication", "127.0.0.1")
    assert entry["listener"] == "CLIENTS"
    assert "does not know the password" in entry["reason"]
    wait_for_status(led, "Refused", f"User:{CLIENT}", "127.0.0.1", "kafka-configs")
    assert "a-bad-guess" not in led.log_path.read_text()


def test_an_expired_certificate_of_a_client(secured: SecuredCluster, led: RegentProcess) -> None:
    mine = secured.authority.issue(f"client-{next(_numbers)}", is_expired=True)
    own = {"ssl.certificate.location": mine.certificate, "ssl.key.location": mine.key}
    options = secured.client_options(address_of(led))
    admin = AdminClient(options | {name: str(path) for name, path in own.items()})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=10)
    entry = wait_for_log(led, "the refusal", lambda e: e.get("kind") == "TLS")
    assert "certificate has expired" in entry["reason"]
    assert entry["address"] == "127.0.0.1"
    wait_for_status(led, "Refused", "127.0.0.1", "certificate has expired", "renew it")


def create_topic(admin: AdminClient, topic: str) -> Any:
    answers = admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    return answers[topic].result(TIMEOUT_S)


def create_partitions(admin: AdminClient, topic: str) -> Any:
    return admin.create_partitions([NewPartitions(topic, 5)])[topic].result(TIMEOUT_S)


def elect_leaders(admin: AdminClient, topic: str) -> Any:
    partitions = [TopicPartition(topic, 0)]
    return admin.elect_leaders(ElectionType.PREFERRED, partitions).result(TIMEOUT_S)


@pytest.mark.parametrize(
    ("ask", "operation", "is_of_topic"),
    [
        (create_topic, "Create", True),
        (create_partitions, "Alter", True),
        (elect_leaders, "Alter", False),
    ],
)
def test_a_right_that_a_client_lacks(
    ask: Callable[[AdminClient, str], Any],
    operation: str,
    is_of_topic: bool,
    secured: SecuredCluster,
    led: RegentProcess,
) -> None:
    topic = f"not-granted-{next(_numbers)}"
    resource = f"Topic {topic}" if is_of_topic else "Cluster kafka-cluster"
    reason = f"{operation} on {resource} is not granted"
    address = address_of(led)
    if ask is not create_topic:
        secured.create_topic(address, topic)
    admin = secured.admin(address, user=STRANGER)
    with pytest.raises(KafkaException) as raised:
        ask(admin, topic)
    assert raised.value.args[0].code() == (
        KafkaError.TOPIC_AUTHORIZATION_FAILED
        if is_of_topic
        else KafkaError.CLUSTER_AUTHORIZATION_FAILED
    )
    entry = wait_for_log(led, "the refusal", lambda e: e.get("reason") == reason)
    assert (entry["kind"], entry["principal"]) == ("authorization", f"User:{STRANGER}")
    option = f"--topic {topic}" if is_of_topic else "--cluster"
    remedy = f"--allow-principal User:{STRANGER} --operation {operation} {option}"
    assert entry["remedy"] == f"kafka-acls --add {remedy}"
    wait_for_status(led, "Refused", f"User:{STRANGER}", reason, remedy)


def test_the_right_that_brokers_lack(secured: SecuredCluster, led: RegentProcess) -> None:
    topic = f"brokers-refused-{next(_numbers)}"
    address = address_of(led)
    secured.create_topic(address, topic)
    with secured.without_cluster_rights(BROKER_USER, address=address):
        secured.kafka.broker(2).process.terminate()
        entry = wait_for_log(
            led, "the refusal", lambda e: e.get("principal") == f"User:{BROKER_USER}"
        )
        assert entry["reason"].startswith("ClusterAction on Cluster kafka-cluster")
        remedy = f"--allow-principal User:{BROKER_USER} --operation ClusterAction --cluster"
        assert remedy in entry["remedy"]
        wait_for_status(led, "Refused", f"User:{BROKER_USER}", remedy)
    secured.kafka.broker(2).stop()
    secured.restore()
