"""A cluster with TLS, SASL and access control lists everywhere, and a Regent in it."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kazoo.security import CREATOR_ALL_ACL, READ_ACL_UNSAFE

from sandbox import KafkaTools, wait_until
from sandbox.java import write_properties
from sandbox.pki import Authority, TlsFiles
from sandbox.regent_process import RegentProcess, run_regent
from sandbox.secured import (
    BROKER_USER,
    BROKERS_LISTENER,
    CLIENTS_LISTENER,
    MECHANISM,
    PLAIN_CLIENT,
    ZOOKEEPER_USER,
    SecuredKafkaCluster,
    SecuredZooKeeper,
)
from tests.support import librdkafka
from tests.support.cluster import SESSION_TIMEOUT_MS
from tests.support.librdkafka import TIMEOUT_S
from tests.support.scram_users import scram_user_node
from tests.support.znodes import Znodes

REGENT_USER: Final = "regent"
CLIENT: Final = "alice"
STRANGER: Final = "mallory"
SUPER_USER: Final = "admin"
PASSWORDS: Final = {
    user: f"password, of={user}"
    for user in (
        ZOOKEEPER_USER,
        BROKER_USER,
        REGENT_USER,
        CLIENT,
        STRANGER,
        SUPER_USER,
        PLAIN_CLIENT,
    )
}

_CLUSTER: Final = "Cluster/kafka-cluster"
_ACLS: Final = {
    _CLUSTER: [
        (BROKER_USER, "ClusterAction"),
        (REGENT_USER, "ClusterAction"),
        (REGENT_USER, "Describe"),
        (REGENT_USER, "DescribeConfigs"),
        (CLIENT, "Create"),
        (CLIENT, "Alter"),
        (CLIENT, "Describe"),
    ],
    "Topic/*": [
        *((CLIENT, operation) for operation in ("Describe", "Read", "Write")),
        (PLAIN_CLIENT, "Describe"),
    ],
    "Group/*": [(CLIENT, "Read")],
}
_ACL_STORES: Final = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken")
_numbers = itertools.count(1)


class SecuredCluster:
    """Brokers, and how everybody reaches them with an identity of its own.

    Attributes:
        authority: Has issued every certificate.
        regent_files: The certificate that Regent shows to ZooKeeper and to brokers, and that of
            its endpoint.
        znodes: Read and written as the brokers do.
    """

    def __init__(
        self,
        *,
        kafka: SecuredKafkaCluster,
        zookeeper: SecuredZooKeeper,
        authority: Authority,
        znodes: Znodes,
        directory: Path,
    ) -> None:
        self.kafka = kafka
        self.zookeeper = zookeeper
        self.authority = authority
        self.znodes = znodes
        self.directory = directory
        self.regent_files = authority.issue("regent")
        self.endpoint_files = authority.issue("endpoint")

    def password_file(self, user: str, password: str | None = None) -> Path:
        """A file with a user's password, or with a wrong one."""
        file = self.directory / f"password-{next(_numbers)}"
        file.write_text(f"{password or PASSWORDS[user]}\n")
        return file

    def regent_settings(self) -> dict[str, Any]:
        """Everything that a Regent needs here."""
        own, endpoint = self.regent_files, self.endpoint_files
        return {
            "controller_id": 1_000_000_000 + next(_numbers),
            "zookeeper_session_timeout_ms": SESSION_TIMEOUT_MS,
            "auto_leader_rebalance_enable": False,
            "zookeeper_set_acl": True,
            "zookeeper_sasl_username": ZOOKEEPER_USER,
            "zookeeper_sasl_password_file": self.password_file(ZOOKEEPER_USER),
            **_tls_settings("zookeeper", own),
            "inter_broker_listener": BROKERS_LISTENER,
            "broker_sasl_mechanism": MECHANISM,
            "broker_sasl_username": REGENT_USER,
            "broker_sasl_password_file": self.password_file(REGENT_USER),
            **_tls_settings("broker", own),
            "endpoint_port": 0,
            "endpoint_listener": CLIENTS_LISTENER,
            "endpoint_sasl_mechanisms": MECHANISM,
            "endpoint_tls": True,
            "endpoint_tls_certificate_file": endpoint.certificate,
            "endpoint_tls_key_file": endpoint.key,
            "endpoint_tls_client_ca_file": endpoint.ca_certificate,
            "endpoint_tls_client_auth": "requested",
        }

    @contextlib.contextmanager
    def regent(self, **settings: Any) -> Iterator[RegentProcess]:
        """A Regent, launched; stopped at the end."""
        process = RegentProcess(
            zookeeper=self.zookeeper.secure_connect_string,
            forked=True,
            settings={
                name: str(value) if isinstance(value, Path) else value
                for name, value in (self.regent_settings() | settings).items()
            },
        )
        try:
            process.launch()
            yield process
            process.stop()
        finally:
            process.close()

    @contextlib.contextmanager
    def active_regent(self, **settings: Any) -> Iterator[RegentProcess]:
        """A Regent that leads, and that every broker shows to clients."""
        with self.regent(**settings) as process:
            process.wait_until_active()
            wait_until(
                lambda: self.shown_controllers(),
                until=lambda shown: shown == {controller_id_of(process)},
                describe="every broker to show Regent",
                logs=[process.log_path],
            )
            yield process

    def shown_controllers(self) -> set[int]:
        """The controllers that brokers show to clients."""
        return {
            self.admin(broker.bootstrap_servers).list_topics(timeout=TIMEOUT_S).controller_id
            for broker in self.kafka.brokers
            if broker.is_running
        }

    # Clients

    def client_options(
        self, address: str, *, user: str = CLIENT, password: str | None = None
    ) -> dict[str, Any]:
        """librdkafka's."""
        return {
            "bootstrap.servers": address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority.certificate),
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": password or PASSWORDS[user],
        }

    def admin(self, address: str, *, user: str = CLIENT) -> AdminClient:
        return AdminClient(self.client_options(address, user=user))

    def create_topic(
        self, address: str, topic: str, *, user: str = CLIENT, partitions: int = 3
    ) -> None:
        """Create a topic by asking at an address. Raises what the client raises."""
        wanted = NewTopic(topic, num_partitions=partitions, replication_factor=3)
        admin = self.admin(address, user=user)  # it ends when nobody refers to it
        answers = admin.create_topics([wanted], operation_timeout=60.0, request_timeout=TIMEOUT_S)
        answers[topic].result(TIMEOUT_S)

    def produce(self, address: str, topic: str, messages: Sequence[str]) -> None:
        """Produce with acks=all; every message is acknowledged."""
        librdkafka.produce(self.client_options(address), topic, messages)

    def consume(self, address: str, topic: str, count: int) -> list[str]:
        """So many messages of a topic, from its beginning."""
        options, group = self.client_options(address), f"group-{next(_numbers)}"
        with librdkafka.consumed(
            options, topic, group, until=lambda found: len(found) >= count
        ) as (_, found):
            return found

    def tools(self, address: str) -> KafkaTools:
        return KafkaTools(address)

    def command_config(self, *, user: str = CLIENT, password: str | None = None) -> Path:
        """Properties for Kafka's tools."""
        secret = password or PASSWORDS[user]
        properties = {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.certificate,
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{user}" password="{secret}";',
            "request.timeout.ms": 120_000,
            "default.api.timeout.ms": 120_000,
        }
        file = self.directory / f"client-{next(_numbers)}.properties"
        write_properties(file, properties)
        return file

    @contextlib.contextmanager
    def without_cluster_rights(self, user: str, *, address: str) -> Iterator[None]:
        """Take a user's rights on the cluster away, as ``kafka-acls`` does; give them back.

        A right of brokers is looked up once a second at most, so the same change lets the stranger
        create topics, who is asked at the address until that is known there.
        """
        path = f"/kafka-acl/{_CLUSTER}"
        former = self.znodes.json(path)
        left = [each for each in former["acls"] if each["principal"] != f"User:{user}"]
        assert len(left) < len(former["acls"])
        marker = {**left[0], "principal": f"User:{STRANGER}", "operation": "Create"}
        self._change_acls(path, {**former, "acls": [*left, marker]})
        try:
            self._wait_until_the_stranger_may_create(address)
            yield
        finally:
            self._change_acls(path, former)

    def _wait_until_the_stranger_may_create(self, address: str) -> None:
        wanted = NewTopic("only-asked-for", num_partitions=1, replication_factor=1)
        admin = self.admin(address, user=STRANGER)

        def may_create() -> bool:
            try:
                admin.create_topics([wanted], validate_only=True)[wanted.topic].result(TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise
                return False
            return True

        wait_until(
            may_create,
            describe="the changed rights to be known",
        )

    def _change_acls(self, path: str, content: dict[str, Any]) -> None:
        self.znodes.client.set(path, json.dumps(content).encode())
        self.znodes.client.create(
            "/kafka-acl-changes/acl_changes_",
            _CLUSTER.replace("/", ":").encode(),
            acl=CREATOR_ALL_ACL + READ_ACL_UNSAFE,
            sequence=True,
        )

    # Looking

    def wait_in_sync(self, topic: str) -> None:
        """Wait until all replicas of a topic are in sync."""
        wait_until(
            lambda: self.znodes.lagging(topic),
            until=lambda found: not found,
            describe=f"all replicas of {topic} to be in sync",
            logs=[broker.log_path for broker in self.kafka.brokers if broker.is_running],
        )

    def restore(self) -> None:
        """All brokers run."""
        self.kafka.start()


@contextlib.contextmanager
def secured_cluster(version: str, directory: Path) -> Iterator[SecuredCluster]:
    """Three brokers of a version, a ZooKeeper of that version, users and lists."""
    authority = Authority(directory)
    with contextlib.ExitStack() as stack:
        zookeeper = stack.enter_context(
            SecuredZooKeeper(
                version=version, authority=authority, passwords=PASSWORDS, directory=directory
            )
        )
        sasl = {
            "mechanism": "DIGEST-MD5",
            "username": ZOOKEEPER_USER,
            "password": PASSWORDS[ZOOKEEPER_USER],
        }
        znodes = stack.enter_context(Znodes(zookeeper.connect_string, sasl_options=sasl))
        _write_users(znodes)
        _write_acls(znodes)
        kafka = SecuredKafkaCluster(
            version=version,
            zookeeper=zookeeper,
            authority=authority,
            passwords=PASSWORDS,
            super_users=f"User:{SUPER_USER}",
            directory=directory,
            session_timeout_ms=SESSION_TIMEOUT_MS,
        )
        stack.enter_context(kafka)
        yield SecuredCluster(
            kafka=kafka,
            zookeeper=zookeeper,
            authority=authority,
            znodes=znodes,
            directory=directory,
        )


def controller_id_of(process: RegentProcess) -> int:
    """The id under which a Regent holds ``/controller``."""
    command = process.process.command
    return int(command[command.index("--controller-id") + 1])


def address_of(process: RegentProcess) -> str:
    """Where a Regent serves clients."""
    status = process.status()
    assert status is not None
    return str(status["endpoint"]["served"]["SASL_SSL"])


def status_text(process: RegentProcess) -> str:
    """What ``regent status`` prints with the settings of a Regent, and what it complains of."""
    options = process.process.command
    wanted: list[str] = []
    for number, option in enumerate(options):
        if option.startswith("--zookeeper"):
            has_value = not options[number + 1].startswith("--")
            wanted += [option, options[number + 1]] if has_value else [option]
    wanted = [option for option in wanted if not option.startswith("--zookeeper-set-acl")]
    outcome = run_regent("status", *wanted, "--url", f"http://127.0.0.1:{process.port}")
    return outcome.stdout + outcome.stderr


def _tls_settings(prefix: str, files: TlsFiles) -> dict[str, Any]:
    return {
        f"{prefix}_tls": True,
        f"{prefix}_tls_ca_file": files.ca_certificate,
        f"{prefix}_tls_certificate_file": files.certificate,
        f"{prefix}_tls_key_file": files.key,
    }


def _write_users(znodes: Znodes) -> None:
    """As ``kafka-configs --zookeeper --alter --add-config SCRAM-SHA-512=...`` before any broker."""
    acl = CREATOR_ALL_ACL + READ_ACL_UNSAFE
    znodes.client.create("/config", b"", acl=acl)
    znodes.client.create("/config/users", b"", acl=CREATOR_ALL_ACL)
    for user, password in PASSWORDS.items():
        if user == PLAIN_CLIENT:
            continue
        value = scram_user_node(password, [MECHANISM])
        path = f"/config/users/{user}"
        znodes.client.create(path, value, acl=CREATOR_ALL_ACL)


def _write_acls(znodes: Znodes) -> None:
    """As ``kafka-acls`` does before any broker."""
    acl = CREATOR_ALL_ACL + READ_ACL_UNSAFE
    for store in _ACL_STORES:
        znodes.client.create(f"/kafka-acl/{store}", b"", acl=acl, makepath=True)
    znodes.client.create("/kafka-acl-changes", b"", acl=acl)
    for resource, entries in _ACLS.items():
        content = [
            {
                "principal": f"User:{user}",
                "permissionType": "Allow",
                "operation": operation,
                "host": "*",
            }
            for user, operation in entries
        ]
        value = json.dumps({"version": 1, "acls": content}).encode()
        znodes.client.create(f"/kafka-acl/{resource}", value, acl=acl)
