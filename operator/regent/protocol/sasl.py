"""SASL mechanisms as dialogues: messages in, messages out.

SCRAM follows RFC 5802 and RFC 7677, without channel binding, as Kafka has it (KIP-84).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Generator
from typing import Final

import msgspec

from regent.protocol.connection_setup import AuthenticationError

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_MIN_ITERATIONS: Final = 4096
_MAX_ITERATIONS: Final = 1_000_000
"""Far above what anybody configures: each costs the event loop about half a microsecond."""

MECHANISMS: Final = ("PLAIN", *HASHES)

Dialogue = Generator[bytes, bytes, None]
"""Yields what to send, is sent what the broker answered, and returns when it is satisfied."""


class SaslCredentials(msgspec.Struct, frozen=True):
    """How to authenticate.

    Attributes:
        mechanism: One of :data:`MECHANISMS`.
    """

    mechanism: str
    username: str
    password: str

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"{self.mechanism!r} is none of {', '.join(MECHANISMS)}")

    def __repr__(self) -> str:
        return f"SaslCredentials({self.mechanism}, {self.username}, password withheld)"

    def dialogue(self, nonce: str) -> Dialogue:
        """A new dialogue.

        Args:
            nonce: Fresh unpredictable text without commas; PLAIN does not use it.

        Raises:
            AuthenticationError: From within, if the broker's messages do not prove that it knows
                the password.
        """
        if self.mechanism == "PLAIN":
            return _plain(self.username, self.password)
        return _scram(HASHES[self.mechanism], self.username, self.password, nonce=nonce)


def _plain(username: str, password: str) -> Dialogue:
    yield f"\0{username}\0{password}".encode()


def _scram(algorithm: str, username: str, password: str, *, nonce: str) -> Dialogue:
    name = username.replace("=", "=3D").replace(",", "=2C")
    client_first = f"n={name},r={nonce}"
    server_first = (yield f"n,,{client_first}".encode()).decode(errors="replace")
    fields = _fields(server_first)
    server_nonce = fields.get("r", "")
    if not server_nonce.startswith(nonce) or server_nonce == nonce:
        raise AuthenticationError("the broker's SCRAM nonce does not continue the client's")
    try:
        salt = base64.b64decode(fields["s"], validate=True)
        iterations = int(fields["i"])
    except (KeyError, ValueError, binascii.Error) as error:
        raise AuthenticationError("the broker's first SCRAM message is malformed") from error
    if not _MIN_ITERATIONS <= iterations <= _MAX_ITERATIONS:
        raise AuthenticationError(f"the broker asks for {iterations} SCRAM iterations")
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    stored_key = hashlib.new(algorithm, client_key).digest()
    without_proof = f"c=biws,r={server_nonce}"
    exchange = f"{client_first},{server_first},{without_proof}".encode()
    signature = hmac.digest(stored_key, exchange, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_final = yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
    server_key = hmac.digest(salted, b"Server Key", algorithm)
    expected = base64.b64encode(hmac.digest(server_key, exchange, algorithm)).decode()
    found = _fields(server_final.decode(errors="replace")).get("v", "")
    if not hmac.compare_digest(found.encode(), expected.encode()):
        raise AuthenticationError("the broker's SCRAM signature is wrong: it lacks the password")


def _fields(message: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in message.split(",") if "=" in part)
