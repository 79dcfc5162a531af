"""What a server of Kafka's protocol and those who answer its requests know of each other."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from regent.model.cluster import Broker
from regent.model.errors import RegentError
from regent.model.scram_credential import ScramCredential
from regent.protocol.framing import RequestHeader
from regent.protocol.server_codec import Request

ANONYMOUS: Final = "User:ANONYMOUS"
"""Kafka's principal of a client that has not authenticated."""


def user_principal(name: str) -> str:
    """Principal of a SASL user or of a certificate's subject."""
    return f"User:{name}"


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Who is at the other end of a connection.

    Attributes:
        address: Its IP address, as text.
        port: Its port.
        principal: As Kafka words it: ``User:alice``, ``User:CN=broker-1,O=Example`` or
            :data:`ANONYMOUS`.
        listener: Name of the listener to which it has connected.
        security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        is_broker: Whether it was judged to be a broker, for the request that is answered.
    """

    address: str
    port: int
    principal: str
    listener: str
    security_protocol: str
    is_broker: bool = False


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody was refused.

    Attributes:
        kind: ``TLS``, ``authentication`` or ``authorization``.
        principal: Who it is, or says to be; None if it has not said so.
        address: Where it has connected from.
        listener: Name of the listener to which it has connected.
        reason: Why. Never has a secret.
        remedy: What to do if it is to be let in.
    """

    kind: str
    principal: str | None
    address: str
    listener: str
    reason: str
    remedy: str

    def fields(self) -> dict[str, str]:
        """For the log and for ``/status``; without what is not known."""
        values = msgspec.structs.asdict(self)
        return {name: value for name, value in values.items() if value is not None}


Refuse = Callable[[Refusal], None]
"""Is informed of everybody who is refused."""


def ignore_refusal(_: Refusal) -> None:
    """For whom nobody wants to know."""


class Close(enum.Enum):
    """Instead of an answer: the connection is to be closed."""

    CLOSE = enum.auto()


class PassOn(NamedTuple):
    """Instead of an answer: a broker is to answer.

    Attributes:
        request: The request's entity if another one than the client's is to be passed on.
        merged: Makes the answer's entity of the broker's; None: it is the broker's as it is.
    """

    request: Any | None = None
    merged: Callable[[Any], Any] | None = None


class Throttled(NamedTuple):
    """An answer after which the client has to wait.

    Attributes:
        entity: The response's entity.
        seconds: So long nothing else of this connection is processed.
    """

    entity: Any
    seconds: float


class Admission(NamedTuple):
    """What is made of a request by its header and its peer, before it is read.

    Attributes:
        is_broker: Whether only brokers may ask this, and the peer is believed to be one.
        answer: Instead of reading the request: the response's entity, or that the connection is to
            be closed; None: it is read.
    """

    is_broker: bool = False
    answer: Any | Close | None = None


READ: Final = Admission()


class UpstreamBroker(NamedTuple):
    """A broker to which requests can be passed on.

    Attributes:
        broker: Its registration.
        versions: The APIs that it serves, with the lowest and the highest version that it
            understands.
        is_stopping: Whether it is about to stop.
    """

    broker: Broker
    versions: Mapping[int, tuple[int, int]]
    is_stopping: bool = False


class Admit(Protocol):
    """Judges who asks before a request is read: to read a large one takes seconds."""

    async def __call__(self, header: RequestHeader, peer: Peer, /) -> Admission: ...


async def admit_everybody(_: RequestHeader, __: Peer) -> Admission:
    """For a server that has nobody judged."""
    return READ


class Dispatcher(Protocol):
    """Answers requests.

    A call is cancelled when its connection is closed: by the peer, by a limit, or because the
    server stops. What it has submitted by then may still happen. An exception closes the
    connection, too, and is logged as a defect.
    """

    async def __call__(self, request: Request, peer: Peer, /) -> Any | Close | PassOn | Throttled:
        """The response's entity in the version of the request, also :class:`Throttled`, or
        :class:`Close`.

        Of a server that passes requests on also :class:`PassOn`.
        """
        ...


class CredentialsUnavailableError(RegentError):
    """Nobody can say now what a client has to know."""


class Credentials(Protocol):
    """What clients have to prove that they know.

    Both methods raise :class:`CredentialsUnavailableError` when it cannot be found out.
    """

    async def password(self, username: str, /) -> str | None:
        """Password of a PLAIN user; None if there is no such user."""
        ...

    async def scram_credential(self, mechanism: str, username: str, /) -> ScramCredential | None:
        """Of a SCRAM user; None if there is no such user, or none of that mechanism."""
        ...
