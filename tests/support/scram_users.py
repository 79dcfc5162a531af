"""The credential that Kafka keeps of a SCRAM user's password."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterable

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


def scram_user_node(password: str, mechanisms: Iterable[str]) -> bytes:
    """The node of a user that ``kafka-configs --alter --add-config SCRAM-...`` writes."""
    config = {}
    for mechanism in mechanisms:
        credential = scram_credential_of(password, mechanism)
        fields = {
            "salt": credential.salt,
            "stored_key": credential.stored_key,
            "server_key": credential.server_key,
        }
        parts = [f"{name}={base64.b64encode(value).decode()}" for name, value in fields.items()]
        config[mechanism] = ",".join([*parts, f"iterations={credential.iterations}"])
    return json.dumps({"version": 1, "config": config}).encode()
