"""TLS connections to ZooKeeper."""

from __future__ import annotations

import socket
import ssl

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
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return tls_context(tls).wrap_socket(plain, server_hostname=hostname)
    except ConfigurationError as error:
        plain.close()
        raise OSError(str(error)) from error  # what kazoo takes for a failed attempt
    except BaseException:
        plain.close()
        raise
