"""What Kafka keeps of a SCRAM user."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

import msgspec

SCRAM_MECHANISMS: Final[Mapping[str, str]] = {
    "SCRAM-SHA-256": "sha256",
    "SCRAM-SHA-512": "sha512",
}
"""Hash functions of the mechanisms that Kafka knows."""

MIN_ITERATIONS: Final = 4096
"""Of each of these mechanisms in Kafka."""

MAX_ITERATIONS: Final = 16384
"""As many as Kafka lets administrators ask for (KIP-554)."""


class ScramCredential(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a password (RFC 5802, section 3): enough to recognize it, not to have it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations}, keys withheld)"


def credential_from_salted_password(
    mechanism: str, *, salt: bytes, salted_password: bytes, iterations: int
) -> ScramCredential:
    """What is kept of a password that was salted already.

    Args:
        mechanism: One of :data:`SCRAM_MECHANISMS`.
    """
    function = SCRAM_MECHANISMS[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", function)
    return ScramCredential(
        salt=salt,
        stored_key=hashlib.new(function, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", function),
        iterations=iterations,
    )
