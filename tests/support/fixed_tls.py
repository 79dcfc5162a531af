"""TLS whose files never change."""

from __future__ import annotations

import dataclasses
import ssl


@dataclasses.dataclass(frozen=True, slots=True)
class FixedTls:
    """Implements :class:`~regent.network.tls.Tls`."""

    made: ssl.SSLContext

    def context(self) -> ssl.SSLContext:
        return self.made

    def problem(self) -> str | None:
        return None
