"""Authentication of a client by SASL: the requests up to the point where it is somebody.

The states are those of Kafka's ``SaslServerAuthenticator``: ApiVersions as often as the client
likes, one SaslHandshake, then messages of the mechanism. These come in SaslAuthenticate requests
after a handshake of version 1 (KIP-152), and bare after one of version 0.

A client of Kafka's gives up for good when it is answered that it is refused. So nobody is answered
so whom brokers may let in: who has a mechanism that is not enabled here, a delegation token, a
password of PLAIN that is not the one known here, or a credential that cannot be read now. The
connection is closed without an answer, and the client goes on with another node.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode

from regent.protocol.primitives import DecodeError
from regent.protocol.sasl import Authenticating
from regent.protocol.sasl_server import PlainServer, SaslFailedError, SaslUnservedError, ScramServer
from regent.protocol.served_apis import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from regent.protocol.server_codec import Request, ServerCodec
from regent.protocol.serving import Credentials

_BARE_MESSAGES: Final = 0
"""Version of SaslHandshake after which the mechanism's messages come without a header."""

_PLAIN_REMEDY: Final = "the client's password must be the one in endpoint_sasl_plain_users_file"
_SCRAM_REMEDY: Final = (
    "the client's password must be the one that kafka-configs --alter --entity-type users has set "
    "for this mechanism"
)

_pack_size: Final = struct.Struct(">i").pack

_UNSERVED_REMEDY: Final = (
    "If brokers let this client in, it goes on with them, and lacks only what the controller alone "
    "answers; to keep such clients away leave their listener out of endpoint_announced_listeners"
)


class AuthenticationStep(NamedTuple):
    """What becomes of one frame of the client.

    Attributes:
        answer: Frame to send, length included; None for none.
        failure: Why the client is not let in, for our log; the connection is to be closed. The
            answer goes out after a delay then, so that passwords cannot be tried quickly.
        claimed: With a failure: the user that the client says to be, if it has said so.
        remedy: With a failure: what to do if the client is to be let in.
    """

    answer: bytes | None
    failure: str | None = None
    claimed: str | None = None
    remedy: str = ""


class SaslServerAuthenticator:
    """Authenticates the client of one connection.

    Args:
        codec: Of requests and answers.
        mechanisms: What is enabled, of those that ``sasl.MECHANISMS`` names.
        credentials: What clients have to know.
        nonce: Makes fresh unpredictable text for SCRAM.
        api_versions: Makes the answer to an ApiVersions request.

    Attributes:
        username: Who the client is; None until it has authenticated.
        proved: With what the client can be authenticated elsewhere; None until then.
    """

    def __init__(
        self,
        codec: ServerCodec,
        *,
        mechanisms: Sequence[str],
        credentials: Credentials,
        nonce: Callable[[], str],
        api_versions: Callable[[Request], Any],
    ) -> None:
        self._codec = codec
        self._mechanisms = tuple(mechanisms)
        self._credentials = credentials
        self._nonce = nonce
        self._api_versions = api_versions
        self._mechanism = ""
        self._server: PlainServer | ScramServer | None = None
        self._messages_are_bare = False
        self.username: str | None = None
        self.proved: Authenticating | None = None

    async def step(self, frame: bytes) -> AuthenticationStep:
        """Take a frame of the client.

        Raises:
            UnsupportedRequestError: A request of a version that is not served.
            DecodeError: The frame is no request.
        """
        if self._server is not None and self._messages_are_bare:
            return await self._bare_message(self._server, frame)
        request = self._codec.decode(frame)
        api_key = request.header.api_key
        if self._server is None and api_key == API_VERSIONS.key:
            return self._answer(request, self._api_versions(request))
        if self._server is None and api_key == SASL_HANDSHAKE.key:
            return self._handshake(request)
        if self._server is not None and api_key == SASL_AUTHENTICATE.key:
            return await self._message(self._server, request)
        raise DecodeError(f"a request of API {api_key} during authentication")

    def _handshake(self, request: Request) -> AuthenticationStep:
        mechanism = request.entity.mechanism
        if mechanism not in self._mechanisms:
            # The text is the client's: of a bounded length in our log.
            return AuthenticationStep(
                None,
                failure=f"mechanism {mechanism[:40]!r} is not enabled",
                remedy="the client's sasl.mechanism must be one of endpoint_sasl_mechanisms: "
                f"{', '.join(self._mechanisms)}. {_UNSERVED_REMEDY}",
            )
        self._mechanism = mechanism
        self._messages_are_bare = request.header.api_version == _BARE_MESSAGES
        if mechanism == "PLAIN":
            self._server = PlainServer(self._credentials)
        else:
            self._server = ScramServer(mechanism, self._credentials, nonce=self._nonce())
        kind = SASL_HANDSHAKE.responses[request.header.api_version]
        return self._answer(request, kind(error_code=ErrorCode.none, mechanisms=self._mechanisms))

    async def _message(
        self, server: PlainServer | ScramServer, request: Request
    ) -> AuthenticationStep:
        kind = SASL_AUTHENTICATE.responses[request.header.api_version]
        try:
            challenge = await server.evaluate(request.entity.auth_bytes)
        except SaslUnservedError as error:
            return self._unserved(str(error), server.claimed)
        except SaslFailedError as error:
            entity = kind(
                error_code=ErrorCode.sasl_authentication_failed,
                error_message=error.for_client or self._nothing_given_away(),
                auth_bytes=b"",
            )
            return self._failed(self._encode(request, entity), str(error), server.claimed)
        self.username, self.proved = server.username, server.proved
        return self._answer(
            request, kind(error_code=ErrorCode.none, error_message=None, auth_bytes=challenge)
        )

    async def _bare_message(
        self, server: PlainServer | ScramServer, message: bytes
    ) -> AuthenticationStep:
        try:
            challenge = await server.evaluate(message)
        except SaslUnservedError as error:
            return self._unserved(str(error), server.claimed)
        except SaslFailedError as error:
            return self._failed(None, str(error), server.claimed)
        self.username, self.proved = server.username, server.proved
        return AuthenticationStep(_pack_size(len(challenge)) + challenge)

    def _nothing_given_away(self) -> str:
        """Kafka's text where the true one could tell which users exist."""
        return (
            "Authentication failed during authentication due to invalid credentials with SASL "
            f"mechanism {self._mechanism}"
        )

    def _answer(self, request: Request, entity: Any) -> AuthenticationStep:
        return AuthenticationStep(self._encode(request, entity))

    def _unserved(self, failure: str, claimed: str | None) -> AuthenticationStep:
        remedy = _UNSERVED_REMEDY
        if self._mechanism == "PLAIN":
            remedy = f"{_PLAIN_REMEDY}. {remedy}"
        return AuthenticationStep(None, failure, claimed, remedy)

    def _failed(
        self, answer: bytes | None, failure: str, claimed: str | None
    ) -> AuthenticationStep:
        remedy = _PLAIN_REMEDY if self._mechanism == "PLAIN" else _SCRAM_REMEDY
        return AuthenticationStep(answer, failure, claimed, remedy)

    def _encode(self, request: Request, entity: Any) -> bytes:
        return self._codec.encode(request.header, entity)


def refuse_sasl(request: Request) -> Any:
    """Answer to SaslHandshake or SaslAuthenticate where nothing is to be authenticated any more."""
    version = request.header.api_version
    if request.header.api_key == SASL_HANDSHAKE.key:
        return SASL_HANDSHAKE.responses[version](
            error_code=ErrorCode.illegal_sasl_state, mechanisms=()
        )
    return SASL_AUTHENTICATE.responses[version](
        error_code=ErrorCode.illegal_sasl_state,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
    )
