"""SASL mechanisms as dialogues: messages in, messages out.

SCRAM follows RFC 5802 and RFC 7677, without channel binding, as Kafka has it (KIP-84).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Generator
from typing import Final, NamedTuple, Protocol

import msgspec

from regent.protocol.connection_setup import AuthenticationError

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_MIN_ITERATIONS: Final = 4096
_MAX_ITERATIONS: Final = 1_000_000
"""Far above what anybody configures: each costs the event loop about half a microsecond."""

MECHANISMS: Final = ("PLAIN", *HASHES)

Dialogue = Generator[bytes, bytes, None]
"""Yields what to send, is sent what the broker answered, and returns when it is satisfied."""


class Authenticating(Protocol):
    """What somebody can authenticate with."""

    @property
    def mechanism(self) -> str:
        """One of :data:`MECHANISMS`."""
        ...

    @property
    def username(self) -> str:
        """Who authenticates."""
        ...

    def dialogue(self, nonce: str, /) -> Dialogue:
        """See :meth:`SaslCredentials.dialogue`."""
        ...


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

    def dialogue(self, nonce: str, /) -> Dialogue:
        """A new dialogue.

        Args:
            nonce: Fresh unpredictable text without commas; PLAIN does not use it.

        Raises:
            AuthenticationError: From within, if the broker's messages do not prove that it knows
                the password.
        """
        if self.mechanism == "PLAIN":
            return _plain(self.username, self.password)
        algorithm = HASHES[self.mechanism]

        def keys(salt: bytes, iterations: int) -> _Keys:
            salted = hashlib.pbkdf2_hmac(algorithm, self.password.encode(), salt, iterations)
            client_key = hmac.digest(salted, b"Client Key", algorithm)
            return _Keys(client_key, hmac.digest(salted, b"Server Key", algorithm))

        return _scram(algorithm, self.username, keys, nonce=nonce)


class ScramKeys(msgspec.Struct, frozen=True, kw_only=True):
    """How to authenticate as a user who has authenticated here, without the password.

    What a SCRAM client proves is that it has the client key, which its proof gives away to whoever
    has its stored key. With it everything can be proved to a server with the same salt (RFC 5802,
    section 9).

    Attributes:
        mechanism: One of :data:`HASHES`.
        salt: With these, keys and password belong together.
        iterations: Likewise.
    """

    mechanism: str
    username: str
    salt: bytes
    iterations: int
    client_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramKeys({self.mechanism}, {self.username}, keys withheld)"

    def dialogue(self, nonce: str, /) -> Dialogue:
        """As :meth:`SaslCredentials.dialogue`.

        Raises:
            AuthenticationError: From within; also if the broker has another salt: the password was
                changed since.
        """

        def keys(salt: bytes, iterations: int) -> _Keys:
            if (salt, iterations) != (self.salt, self.iterations):
                raise AuthenticationError(
                    f"the broker has another credential of user {self.username!r}"
                )
            return _Keys(self.client_key, self.server_key)

        return _scram(HASHES[self.mechanism], self.username, keys, nonce=nonce)


class _Keys(NamedTuple):
    client_key: bytes
    server_key: bytes


def _plain(username: str, password: str) -> Dialogue:
    yield f"\0{username}\0{password}".encode()


def _scram(
    algorithm: str, username: str, keys: Callable[[bytes, int], _Keys], *, nonce: str
) -> Dialogue:
    """The client's part.

    Args:
        keys: What the client knows, for a salt and a number of iterations.
    """
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
    client_key, server_key = keys(salt, iterations)
    stored_key = hashlib.new(algorithm, client_key).digest()
    without_proof = f"c=biws,r={server_nonce}"
    exchange = f"{client_first},{server_first},{without_proof}".encode()
    signature = hmac.digest(stored_key, exchange, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_final = yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
    expected = base64.b64encode(hmac.digest(server_key, exchange, algorithm)).decode()
    found = _fields(server_final.decode(errors="replace")).get("v", "")
    if not hmac.compare_digest(found.encode(), expected.encode()):
        raise AuthenticationError("the broker's SCRAM signature is wrong: it lacks the password")


def _fields(message: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in message.split(",") if "=" in part)
