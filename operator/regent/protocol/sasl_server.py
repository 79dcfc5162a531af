"""The server's side of SASL mechanisms: a client's messages in, challenges out.

PLAIN and SCRAM as Kafka's ``PlainSaslServer`` and ``ScramSaslServer`` have them, with the same
messages for the client.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Final

from regent.model.errors import RegentError
from regent.model.scram_credential import ScramCredential
from regent.protocol.sasl import HASHES, Authenticating, SaslCredentials, ScramKeys
from regent.protocol.serving import Credentials, CredentialsUnavailableError

MIN_ITERATIONS: Final = 4096
"""Least number of iterations of a SCRAM credential that is used."""

_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"

_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<without_proof>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)


_TOKEN: Final = "tokenauth"  # noqa: S105 - the name of an extension
"""Extension of SCRAM by which a client says that it has a delegation token (KIP-48)."""


class SaslFailedError(RegentError):
    """The client has not proved who it is.

    Args:
        reason: For our log. Never has a secret.
        for_client: What the client may read; None for a text that gives nothing away.
    """

    def __init__(self, reason: str, *, for_client: str | None = None) -> None:
        super().__init__(reason)
        self.for_client = for_client


class SaslUnservedError(SaslFailedError):
    """Brokers may let the client in, and only they can tell."""


def _refused(message: str) -> SaslFailedError:
    """A failure of which the client may read everything."""
    return SaslFailedError(message, for_client=message)


class PlainServer:
    """PLAIN (RFC 4616).

    Attributes:
        username: Who has authenticated; None until then.
        proved: With what this user can authenticate elsewhere; None until then.
        claimed: Who the client says to be; None until it has said so.
    """

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self.claimed: str | None = None
        self.username: str | None = None
        self.proved: Authenticating | None = None

    async def evaluate(self, message: bytes) -> bytes:
        """The challenge for a message of the client.

        Raises:
            SaslFailedError: If the client fails to authenticate.
            SaslUnservedError: If it is not known here whether it does.
        """
        tokens = message.decode(errors="replace").split("\0")
        if len(tokens) != 3:
            raise SaslFailedError(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(tokens), 4)}"
            )
        authorization_id, username, password = tokens
        self.claimed = username
        if not username:
            raise _refused("Authentication failed: username not specified")
        if not password:
            raise _refused("Authentication failed: password not specified")
        try:
            expected = await self._credentials.password(username)
        except CredentialsUnavailableError as error:
            raise SaslUnservedError(
                f"password of user {username!r} not found out: {error}"
            ) from error
        if expected is None or not hmac.compare_digest(expected.encode(), password.encode()):
            # Brokers have users of their own, which may have changed there first.
            raise SaslUnservedError(f"user {username!r} is unknown here, or has another password")
        _check_authorization_id(authorization_id, username)
        self.username = username
        self.proved = SaslCredentials("PLAIN", username, password)
        return b""


class ScramServer:
    """SCRAM (RFC 5802, RFC 7677) without channel binding.

    Args:
        mechanism: ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``.
        nonce: Fresh unpredictable text of printable characters without commas.

    Attributes:
        username: Who has authenticated; None until then.
        proved: As that of :class:`PlainServer`.
        claimed: Likewise.
    """

    def __init__(self, mechanism: str, credentials: Credentials, *, nonce: str) -> None:
        self._mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._credentials = credentials
        self._nonce = nonce
        self.claimed: str | None = None
        self._credential: ScramCredential | None = None
        self._exchange = ""
        self.username: str | None = None
        self.proved: Authenticating | None = None

    async def evaluate(self, message: bytes) -> bytes:
        """As :meth:`PlainServer.evaluate`."""
        try:
            text = message.decode("ascii")
        except UnicodeDecodeError as error:
            raise SaslFailedError("a SCRAM message is not ASCII") from error
        if self._credential is None:
            return await self._first(text)
        assert self.claimed is not None
        return self._final(text, self.claimed, self._credential)

    async def _first(self, text: str) -> bytes:
        message = _CLIENT_FIRST.fullmatch(text)
        if message is None:
            raise SaslFailedError("the client's first SCRAM message is malformed")
        username = self.claimed = message["name"].replace("=2C", ",").replace("=3D", "=")
        if _has_token(message["extensions"]):
            raise SaslUnservedError(
                f"{username!r} is a delegation token, which only brokers can check"
            )
        try:
            credential = await self._credentials.scram_credential(self._mechanism, username)
        except CredentialsUnavailableError as error:
            raise SaslUnservedError(
                f"credentials of user {username!r} not found out: {error}"
            ) from error
        if credential is None:
            raise SaslFailedError(f"user {username!r} has no credential of {self._mechanism}")
        _check_authorization_id(message["authzid"] or "", username)
        if credential.iterations < MIN_ITERATIONS:
            raise SaslFailedError(
                f"user {username!r}: {credential.iterations} iterations are less than the minimum "
                f"{MIN_ITERATIONS} for {self._mechanism}"
            )
        self._nonce = message["nonce"] + self._nonce
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._credential = credential
        self._exchange = f"{message['bare']},{answer}"
        return answer.encode()

    def _final(self, text: str, username: str, credential: ScramCredential) -> bytes:
        message = _CLIENT_FINAL.fullmatch(text)
        if message is None:
            raise SaslFailedError("the client's final SCRAM message is malformed")
        if message["nonce"] != self._nonce:
            raise SaslFailedError("the client's final SCRAM message has another nonce")
        exchange = f"{self._exchange},{message['without_proof']}".encode()
        signature = hmac.digest(credential.stored_key, exchange, self._hash)
        proof = base64.b64decode(message["proof"])
        if len(proof) != len(signature):
            raise SaslFailedError("the client's SCRAM proof has an impossible length")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise SaslFailedError(f"user {username!r} does not know the password")
        self.username = username
        self.proved = ScramKeys(
            mechanism=self._mechanism,
            username=username,
            salt=credential.salt,
            iterations=credential.iterations,
            client_key=client_key,
            server_key=credential.server_key,
        )
        server_signature = hmac.digest(credential.server_key, exchange, self._hash)
        return b"v=" + base64.b64encode(server_signature)


def _has_token(extensions: str) -> bool:
    """Whether the extensions of a client's first message say that it has a delegation token."""
    values = dict(each.split("=", 1) for each in extensions.split(",") if each)
    return values.get(_TOKEN, "").lower() == "true"


def _check_authorization_id(authorization_id: str, username: str) -> None:
    if authorization_id not in ("", username):
        raise _refused(
            "Authentication failed: Client requested an authorization id that is different from "
            "username"
        )
