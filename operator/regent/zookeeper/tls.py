"""TLS connections to ZooKeeper."""

from __future__ import annotations

import datetime
import socket
import ssl
from pathlib import Path

from regent.files.small_files import require_small
from regent.model.certificates import Rejection, certificate_of, rejection_of
from regent.model.errors import ConfigurationError
from regent.zookeeper.settings import TlsSettings


def tls_context(tls: TlsSettings) -> ssl.SSLContext:
    """A context for one connection. Files are read every time: certificates get renewed.

    Raises:
        ConfigurationError: If a file is missing or not what it should be.
    """
    if (tls.certificate_file is None) != (tls.key_file is None):
        raise ConfigurationError(
            "TLS for ZooKeeper: give both a certificate and its key, or neither"
        )
    try:
        for file in filter(None, (tls.ca_file, tls.certificate_file, tls.key_file)):
            require_small(file)
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=tls.ca_file)
        context.check_hostname = tls.verify_hostname
        if tls.certificate_file is not None:
            context.load_cert_chain(tls.certificate_file, tls.key_file, tls.key_password or "")
    except OSError as error:  # ssl.SSLError included
        files = ", ".join(f for f in (tls.ca_file, tls.certificate_file, tls.key_file) if f)
        raise ConfigurationError(f"TLS for ZooKeeper: {error} ({files})") from error
    return context


def connect(
    address: tuple[str, int], tls: TlsSettings, *, hostname: str, timeout_s: float
) -> ssl.SSLSocket:
    """An encrypted connection.

    Args:
        address: Where to connect to.
        hostname: Whom to expect there.
        timeout_s: Bound of the connection attempt, and again of each step of the handshake.

    Raises:
        OSError: If there is none.
    """
    plain = socket.create_connection(address, timeout_s)
    server = f"{hostname}:{address[1]}"
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return tls_context(tls).wrap_socket(plain, server_hostname=hostname)
    except ConfigurationError as error:
        plain.close()
        raise OSError(str(error)) from error  # what kazoo takes for a failed attempt
    except ssl.SSLError as error:
        plain.close()
        raise OSError(f"{server}: {explained(error, tls, hostname=hostname)}") from error
    except BaseException:
        plain.close()
        raise


def explained(error: Exception, tls: TlsSettings, *, hostname: str) -> str:
    """What has gone wrong with a connection, and what to do as far as it is known.

    Args:
        hostname: Of the server.
    """
    remedy = _remedy(error, tls, hostname=hostname)
    return str(error) if remedy is None else f"{error}; {remedy}"


def _remedy(error: Exception, tls: TlsSettings, *, hostname: str) -> str | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        match rejection_of(error.verify_code):
            case Rejection.NOT_VALID_NOW:
                return "the server's certificate is not valid now: renew it (ssl.keyStore.location)"
            case Rejection.OTHER_HOST:
                return f"the server's certificate must name {hostname}"
            case Rejection.NOT_TRUSTED:
                return (
                    "zookeeper_tls_ca_file must have the authority that has issued its certificate"
                )
    own_problem = _own_problem(tls)
    if own_problem is not None:
        return own_problem
    if "alert" in str(error).lower():
        return (
            "the server does not accept the certificate of Regent: see "
            "zookeeper_tls_certificate_file and the server's ssl.trustStore.location"
        )
    if isinstance(error, ssl.SSLError):
        return (
            "this port may not speak TLS: zookeeper must name the servers' secureClientPort, or "
            "zookeeper_tls must not be set"
        )
    return None


def _own_problem(tls: TlsSettings) -> str | None:
    """What is wrong with our certificate, if we show one."""
    if tls.certificate_file is None:
        return None
    try:
        pem = Path(tls.certificate_file).read_bytes()
        certificate = certificate_of(pem, tls.certificate_file)
    except (OSError, ValueError) as error:
        return f"the certificate in {tls.certificate_file} cannot be read: {error}"
    return certificate.problem(datetime.datetime.now(datetime.UTC))
