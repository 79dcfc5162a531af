"""TLS of the server, with certificates that are renewed while it runs."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Literal

import msgspec

from regent.model.errors import ConfigurationError
from regent.network.file_state import state_of

logger = logging.getLogger(__name__)

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

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file."""
        files = (self.certificate, self.key, self.client_authorities)
        return tuple(file for file in files if file is not None)


class ReloadingTls:
    """The TLS context for the next connection.

    Files that have changed are read again. As long as they cannot be used, for instance because
    only one of two has been replaced, the former ones stay in force.

    Raises:
        ConfigurationError: If the files cannot be used at the start.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._seen = state_of(files.paths)
        self._context = _context_of(files)

    def context(self) -> ssl.SSLContext:
        """The context made from the files as they are now."""
        state = state_of(self._files.paths)
        if state != self._seen:
            self._seen = state
            try:
                self._context = _context_of(self._files)
            except ConfigurationError as error:
                logger.error("changed TLS files not used", extra={"error": str(error)})
            else:
                logger.info(
                    "changed TLS files in use", extra={"files": list(map(str, self._files.paths))}
                )
        return self._context


def _context_of(files: TlsFiles) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.verify_mode = _VERIFY_MODES[files.client_auth]
        if files.client_authorities is not None:
            context.load_verify_locations(files.client_authorities)
        elif files.client_auth != "none":
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        # With a password OpenSSL does not ask for one at the terminal.
        context.load_cert_chain(files.certificate, files.key, password="")
    except OSError as error:  # ssl.SSLError included
        named = ", ".join(map(str, files.paths))
        raise ConfigurationError(f"TLS of the endpoint: {error} ({named})") from error
    return context
