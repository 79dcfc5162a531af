"""TLS contexts made from files that are renewed while the process runs."""

from __future__ import annotations

import datetime
import logging
import ssl
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol

from regent.files.small_files import require_small
from regent.model.certificates import Certificate, certificate_of
from regent.model.errors import ConfigurationError
from regent.network.file_state import state_of
from regent.network.tls_buffers import keep_tls_buffers_small

logger = logging.getLogger(__name__)

_SILENT_S: Final = 600.0
"""Between two log entries about a certificate that is not valid."""


class Tls(Protocol):
    """TLS of a listener, or of connections to brokers."""

    def context(self) -> ssl.SSLContext:
        """The context for the next connection."""
        ...

    def problem(self) -> str | None:
        """Why others do not accept our certificate now, as far as it says so itself."""
        ...


class ReloadingTls:
    """Implements :class:`Tls`.

    Files that have changed are read again. As long as they cannot be used, for instance because
    only one of two has been replaced, the former ones stay in force.

    Args:
        title: What the files are for, for messages: ``TLS of the endpoint``.
        files: Every file.
        make: Makes a context of them. An OSError of it is turned into ConfigurationError.
        certificate: The one of ``files`` with our certificate, if we show one.

    Raises:
        ConfigurationError: If the files cannot be used at the start.
    """

    def __init__(
        self,
        title: str,
        files: Iterable[Path | None],
        make: Callable[[], ssl.SSLContext],
        *,
        certificate: Path | None = None,
    ) -> None:
        keep_tls_buffers_small()
        self._title = title
        self._files = tuple(file for file in files if file is not None)
        self._make = make
        self._certificate_file = certificate
        self._certificate: Certificate | None = None
        self._reported_at = -_SILENT_S
        self._seen = state_of(self._files)
        self._context = self._read()

    def context(self) -> ssl.SSLContext:
        """The context made from the files as they are now."""
        state = state_of(self._files)
        if state != self._seen:
            self._seen = state
            try:
                self._context = self._read()
            except ConfigurationError as error:
                logger.error("changed TLS files not used", extra={"error": str(error)})
            else:
                self._reported_at = -_SILENT_S
                logger.info("changed TLS files in use", extra={"files": self._names()})
        self._report()
        return self._context

    def problem(self) -> str | None:
        """See :meth:`Tls.problem`. May be called from any thread."""
        certificate = self._certificate
        if certificate is None:
            return None
        return certificate.problem(datetime.datetime.now(datetime.UTC))

    def _report(self) -> None:
        problem = self.problem()
        if problem is not None and time.monotonic() - self._reported_at >= _SILENT_S:
            self._reported_at = time.monotonic()
            logger.error("Certificate is not valid", extra={"use": self._title, "problem": problem})

    def _read(self) -> ssl.SSLContext:
        try:
            for file in self._files:
                require_small(file)
            context = self._make()
            certificate = self._certificate_file
            if certificate is not None:
                self._certificate = _dates_of(certificate)
        except OSError as error:  # ssl.SSLError included
            raise ConfigurationError(
                f"{self._title}: {error} ({', '.join(self._names())})"
            ) from error
        return context

    def _names(self) -> list[str]:
        return list(map(str, self._files))


def _dates_of(file: Path) -> Certificate | None:
    """None if only OpenSSL can read the certificate: it is used all the same."""
    try:
        return certificate_of(file.read_bytes(), str(file))
    except ValueError:
        return None


def tls_to_brokers(
    *, authorities: Path | None, certificate: Path | None = None, key: Path | None = None
) -> ReloadingTls:
    """For connections to brokers. All files are PEM.

    Args:
        authorities: Whose certificates of brokers are accepted; None for those of the system.
        certificate: What we show to brokers, if anything.
        key: Its private key.

    Raises:
        ConfigurationError: If a file cannot be used.
    """

    def make() -> ssl.SSLContext:
        context = ssl.create_default_context(
            cafile=None if authorities is None else str(authorities)
        )
        if certificate is not None:
            # With a password OpenSSL does not ask for one at the terminal.
            context.load_cert_chain(certificate, key, password="")
        return context

    files = (authorities, certificate, key)
    return ReloadingTls("TLS for brokers", files, make, certificate=certificate)
