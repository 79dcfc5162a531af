"""Certificates and keys of throw-away servers, made by trustme.

`create_pki` makes those of a Kubernetes API: a certificate authority, the API server's
certificate for loopback, and the key that signs service-account tokens. `create_tls_files` makes
those of a Java server and its clients, in the PEM form that Kafka and ZooKeeper read.
"""

from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from sandbox.ports import LOOPBACK

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


def create_pki(directory: Path) -> Pki:
    """Make everything in an empty directory."""
    directory.chmod(0o700)
    pki = Pki(directory)
    authority = trustme.CA()
    server = authority.issue_cert(*_API_SERVER_NAMES, common_name="kube-apiserver")
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
    """

    ca_certificate: Path
    certificate: Path
    key: Path
    key_store: Path


def create_tls_files(directory: Path) -> TlsFiles:
    """Make a certificate authority and a certificate for loopback in an empty directory."""
    authority = trustme.CA()
    server = authority.issue_cert(LOOPBACK)
    key = load_pem_private_key(server.private_key_pem.bytes(), password=None)
    # Java reads PKCS#8 only
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files = TlsFiles(
        ca_certificate=directory / "ca.pem",
        certificate=directory / "certificate.pem",
        key=directory / "key.pem",
        key_store=directory / "keystore.pem",
    )
    certificate_pem = server.cert_chain_pems[0].bytes()
    authority.cert_pem.write_to_path(files.ca_certificate)
    files.certificate.write_bytes(certificate_pem)
    files.key.write_bytes(key_pem)
    files.key_store.write_bytes(key_pem + certificate_pem)
    return files
