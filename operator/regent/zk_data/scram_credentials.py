"""SCRAM credentials of users, which are kept as configuration in ``/config/users/<user>``."""

from __future__ import annotations

import base64
import binascii

from regent.model.errors import MalformedZNodeError
from regent.model.scram_credential import ScramCredential
from regent.zk_data.config import decode_entity_config


def decode_scram_credential(path: str, data: bytes, mechanism: str) -> ScramCredential | None:
    """A user's credential of a mechanism; None if it has none of that.

    The form is that of Kafka's ``ScramCredentialUtils``.

    Raises:
        MalformedZNodeError: If the node or the credential does not decode.
    """
    text = decode_entity_config(path, data).get(mechanism)
    if text is None:
        return None
    fields = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        return ScramCredential(
            salt=base64.b64decode(fields["salt"], validate=True),
            stored_key=base64.b64decode(fields["stored_key"], validate=True),
            server_key=base64.b64decode(fields["server_key"], validate=True),
            iterations=int(fields["iterations"]),
        )
    except (KeyError, ValueError, binascii.Error):
        # Without the cause: its text may have a part of a key.
        raise MalformedZNodeError(path, f"the credential of {mechanism} is malformed") from None


def encode_scram_credential(credential: ScramCredential) -> str:
    """The value of a mechanism in a user's configuration."""
    fields = {
        "salt": base64.b64encode(credential.salt).decode(),
        "stored_key": base64.b64encode(credential.stored_key).decode(),
        "server_key": base64.b64encode(credential.server_key).decode(),
        "iterations": str(credential.iterations),
    }
    return ",".join(f"{name}={value}" for name, value in fields.items())
