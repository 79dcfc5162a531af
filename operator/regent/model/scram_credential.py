"""What Kafka keeps of a SCRAM user."""

from __future__ import annotations

import msgspec


class ScramCredential(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a password (RFC 5802, section 3): enough to recognize it, not to have it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations}, keys withheld)"
