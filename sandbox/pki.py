"""Certificates and keys of throw-away servers, made by trustme.

`create_pki` makes those of a Kubernetes API: a certificate authority, the API server's
certificate for loopback, and the key that signs service-account tokens. `create_tls_files` makes
those of a Java server and its clients, in the PEM form that Kafka and ZooKeeper read; an
`Authority` makes them for several, renews them in place, and makes expired ones.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from sandbox.ports import LOOPBACK

KEY_STORE_PASSWORD = "changeit"  # noqa: S105 - guards nothing

_API_SERVER_NAMES = (
    LOOPBACK,
    "10.96.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class Pki:
    """Where the files of a Kubernetes API are."""

    directory: Path

    @property
    def ca_certificate(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def api_server_certificate(self) -> Path:
        return self.directory / "apiserver.crt"

    @property
    def api_server_key(self) -> Path:
        return self.directory / "apiserver.key"

    @property
    def service_account_key(self) -> Path:
        """Signs tokens, and verifies them: the API server takes the public half out of it."""
        return self.directory / "sa.key"


def create_pki(directory: Path, *, names: Sequence[str] = ()) -> Pki:
    """Make everything in an empty directory.

    `names` are names and addresses under which the API server is reached, beside its own.
    """
    directory.chmod(0o700)
    pki = Pki(directory)
    authority = trustme.CA()
    server = authority.issue_cert(*_API_SERVER_NAMES, *names, common_name="kube-apiserver")
    signer = authority.issue_cert("service-accounts.invalid")
    authority.cert_pem.write_to_path(pki.ca_certificate)
    server.cert_chain_pems[0].write_to_path(pki.api_server_certificate)
    server.private_key_pem.write_to_path(pki.api_server_key)
    signer.private_key_pem.write_to_path(pki.service_account_key)
    return pki


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the files of a server on loopback and its clients are, all PEM.

    Attributes:
        ca_certificate: What both sides trust.
        certificate: Of the server, and good for a client, too.
        key: Its private key (PKCS#8).
        key_store: Key and certificate in one file, for servers that want a key store.
        protected_key_store: The same as PKCS12, protected by :data:`KEY_STORE_PASSWORD`: Kafka
            before 3.0 takes no key without a password.
    """

    ca_certificate: Path
    certificate: Path
    key: Path
    key_store: Path
    protected_key_store: Path


class Authority:
    """A certificate authority, and the files of those for whom it issues certificates.

    The certificates are good for loopback, for a server and for a client.
    """

    def __init__(self, directory: Path) -> None:
        self._authority = trustme.CA()
        self._directory = directory
        self.certificate = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(self.certificate)

    def issue(self, name: str | None = None, *, is_expired: bool = False) -> TlsFiles:
        """Make a key and its certificate.

        `name` is the subject's common name, and a directory for the files; without one they are
        beside the authority's. An expired certificate ended an hour ago.
        """
        directory = self._directory if name is None else self._directory / name
        directory.mkdir(exist_ok=True)
        files = TlsFiles(
            ca_certificate=self.certificate,
            certificate=directory / "certificate.pem",
            key=directory / "key.pem",
            key_store=directory / "keystore.pem",
            protected_key_store=directory / "keystore.p12",
        )
        self.renew(files, is_expired=is_expired)
        return files

    def renew(self, files: TlsFiles, *, is_expired: bool = False) -> None:
        """Replace a key and its certificate in their files."""
        directory = files.certificate.parent
        now = datetime.datetime.now(datetime.UTC)
        hour = datetime.timedelta(hours=1)
        issued = self._authority.issue_cert(
            LOOPBACK,
            common_name=None if directory == self._directory else directory.name,
            not_before=now - 48 * hour if is_expired else None,
            not_after=now - hour if is_expired else None,
        )
        key = load_pem_private_key(issued.private_key_pem.bytes(), password=None)
        # Java reads PKCS#8 only
        key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        certificate_pem = issued.cert_chain_pems[0].bytes()
        files.certificate.write_bytes(certificate_pem)
        files.key.write_bytes(key_pem)
        files.key_store.write_bytes(key_pem + certificate_pem)
        files.protected_key_store.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"server",
                cast(pkcs12.PKCS12PrivateKeyTypes, key),
                load_pem_x509_certificate(certificate_pem),
                None,
                BestAvailableEncryption(KEY_STORE_PASSWORD.encode()),
            )
        )


def create_tls_files(directory: Path) -> TlsFiles:
    """Make a certificate authority and a certificate for loopback in an empty directory."""
    return Authority(directory).issue()
