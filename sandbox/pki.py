"""Certificates and keys of a throw-away Kubernetes API, made with openssl.

A certificate authority, the API server's certificate for loopback, and the key pair that signs
service-account tokens.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import CertificateError
from sandbox.programs import OPENSSL, require

DAYS_VALID = 30

_API_SERVER_NAMES = (
    "IP:127.0.0.1",
    "IP:10.96.0.1",
    "DNS:localhost",
    "DNS:kubernetes",
    "DNS:kubernetes.default",
    "DNS:kubernetes.default.svc",
    "DNS:kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class Pki:
    """Where the files are."""

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
        return self.directory / "sa.key"

    @property
    def service_account_public_key(self) -> Path:
        return self.directory / "sa.pub"


def create_pki(directory: Path) -> Pki:
    """Make everything in an empty directory.

    Raises:
        MissingProgramError: there is no openssl, or one that is too old.
        CertificateError: openssl failed.
    """
    require(OPENSSL)
    directory.chmod(0o700)
    pki = Pki(directory)
    _elliptic_curve_key(directory, "ca.key")
    _openssl(
        directory,
        *("req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=regent-sandbox-ca"),
        *("-days", str(DAYS_VALID), "-out", "ca.crt"),
        *("-addext", "basicConstraints=critical,CA:TRUE"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
    )
    _server_certificate(directory)
    _openssl(directory, "genrsa", "-out", "sa.key", "2048")
    _openssl(directory, "rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
    return pki


def _server_certificate(directory: Path) -> None:
    _elliptic_curve_key(directory, "apiserver.key")
    (directory / "apiserver.ext").write_text(
        f"subjectAltName={','.join(_API_SERVER_NAMES)}\nextendedKeyUsage=serverAuth\n"
    )
    _openssl(
        directory,
        *("req", "-new", "-key", "apiserver.key", "-subj", "/CN=kube-apiserver"),
        *("-out", "apiserver.csr"),
    )
    _openssl(
        directory,
        *("x509", "-req", "-in", "apiserver.csr", "-CA", "ca.crt", "-CAkey", "ca.key"),
        *("-CAcreateserial", "-days", str(DAYS_VALID)),
        *("-extfile", "apiserver.ext", "-out", "apiserver.crt"),
    )


def _elliptic_curve_key(directory: Path, name: str) -> None:
    _openssl(directory, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", name)


def _openssl(directory: Path, *arguments: str) -> None:
    outcome = subprocess.run(
        ["openssl", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    if outcome.returncode != 0:
        raise CertificateError(f"openssl {arguments[0]} failed:\n{outcome.stderr}")
