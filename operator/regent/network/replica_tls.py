"""TLS between the replicas of a Regent: both sides show a certificate of the same authority.

Names in certificates are not compared: replicas find each other by addresses, which a pod gets when
it starts. So the authority should be one that issues certificates for nothing else.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import msgspec

from regent.network.tls import ReloadingTls


class ReplicaTls(msgspec.Struct, frozen=True):
    """Both sides of a connection between replicas.

    Attributes:
        server: For who is connected to.
        client: For who connects.
    """

    server: ReloadingTls
    client: ReloadingTls


def tls_between_replicas(*, authorities: Path, certificate: Path, key: Path) -> ReplicaTls:
    """TLS with these files, all PEM.

    Args:
        authorities: Whose certificates are accepted.
        certificate: The one that this replica shows, with its chain.
        key: Its private key.

    Raises:
        ConfigurationError: If a file cannot be used.
    """

    def context(protocol: int) -> ssl.SSLContext:
        made = ssl.SSLContext(protocol)
        made.check_hostname = False
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(authorities)
        # With a password OpenSSL does not ask for one at the terminal.
        made.load_cert_chain(certificate, key, password="")
        return made

    def tls(protocol: int) -> ReloadingTls:
        return ReloadingTls(
            "TLS between replicas",
            (authorities, certificate, key),
            lambda: context(protocol),
            certificate=certificate,
        )

    return ReplicaTls(tls(ssl.PROTOCOL_TLS_SERVER), tls(ssl.PROTOCOL_TLS_CLIENT))
