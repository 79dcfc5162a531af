"""TLS of the server."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Literal

import msgspec

from regent.network.tls import ReloadingTls, Tls

ClientAuth = Literal["none", "requested", "required"]

_VERIFY_MODES = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


class TlsFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a server with TLS, all PEM.

    Attributes:
        certificate: The server's certificate, with the chain up to its authority.
        key: Its private key.
        client_authorities: Whose certificates of clients are accepted; None for those of the
            system.
        client_auth: Whether clients have to show a certificate (``ssl.client.auth``).
    """

    certificate: Path
    key: Path
    client_authorities: Path | None = None
    client_auth: ClientAuth = "none"


def server_tls(files: TlsFiles, *, title: str = "TLS of the endpoint") -> ReloadingTls:
    """TLS of a server with these files.

    Args:
        title: What they are for, for messages.

    Raises:
        ConfigurationError: If the files cannot be used.
    """

    def make() -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.verify_mode = _VERIFY_MODES[files.client_auth]
        if files.client_authorities is not None:
            context.load_verify_locations(files.client_authorities)
        elif files.client_auth != "none":
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        # With a password OpenSSL does not ask for one at the terminal.
        context.load_cert_chain(files.certificate, files.key, password="")
        return context

    paths = (files.certificate, files.key, files.client_authorities)
    return ReloadingTls(title, paths, make, certificate=files.certificate)


def renewing_context(tls: Tls) -> ssl.SSLContext:
    """A context for a server that takes one for good: it has each connection use the files as they
    are then."""
    first = tls.context()

    def choose(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = tls.context()

    # Also called for clients that name no server.
    first.sni_callback = choose
    return first
