"""What Kafka would keep of a SCRAM user's password."""

from __future__ import annotations

import hashlib
import hmac

from regent.model.scram_credential import ScramCredential

ALGORITHMS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def scram_credential_of(password: str, mechanism: str) -> ScramCredential:
    """The credential of a password (RFC 5802, section 3)."""
    algorithm = ALGORITHMS[mechanism]
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), b"salt", 4096)
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    return ScramCredential(
        salt=b"salt",
        stored_key=hashlib.new(algorithm, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", algorithm),
        iterations=4096,
    )
