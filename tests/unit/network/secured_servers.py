"""A server of Kafka's protocol with TLS or SASL, and who may use it."""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path
from typing import Any

import trustme
from kio.schema.errors import ErrorCode

from regent.model.scram_credential import ScramCredential
from regent.network.kafka_server import KafkaServer
from regent.network.server_tls import ClientAuth, TlsFiles
from regent.protocol.served_apis import CONTROLLED_SHUTDOWN
from regent.protocol.serving import CredentialsUnavailableError
from tests.support.kafka_client import KafkaClient
from tests.support.scram_users import scram_credential_of
from tests.unit.network import kafka_servers
from tests.unit.network.kafka_servers import Controller

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USER, PASSWORD = "a=user,1", "a pass,word=ö"


class Users:
    """One user, of every mechanism, and one of whom nobody can say anything."""

    def __init__(self, password: str = PASSWORD) -> None:
        self.known = password

    async def password(self, username: str) -> str | None:
        _require_readable(username)
        return self.known if username == USER else None

    async def scram_credential(self, mechanism: str, username: str) -> ScramCredential | None:
        _require_readable(username)
        return scram_credential_of(self.known, mechanism) if username == USER else None


def _require_readable(username: str) -> None:
    if username == "unreadable":
        raise CredentialsUnavailableError("ZooKeeper does not answer")


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


def serving(
    controller: Controller, **options: Any
) -> contextlib.AbstractAsyncContextManager[KafkaServer]:
    return kafka_servers.serving(controller, credentials=Users(), **options)


def served(
    controller: Controller, **options: Any
) -> contextlib.AbstractAsyncContextManager[tuple[KafkaServer, KafkaClient]]:
    """A server, and a client of it."""
    return kafka_servers.served(controller, credentials=Users(), **options)


async def shut_down(client: KafkaClient) -> None:
    """Be answered."""
    answer = await client.ask(CONTROLLED_SHUTDOWN, 3, {"brokerId": 1})
    assert answer.error_code is ErrorCode.none
