"""Why a broker is not reached: for the log and for ``regent status``."""

from __future__ import annotations

from typing import Final, NamedTuple

from regent.model.cluster import EndPoint
from regent.network.settings import ChannelSettings
from regent.network.tls_remedies import remedy_for_broker
from regent.protocol.connection_setup import AuthenticationError, OtherBrokerError
from regent.protocol.framing import FrameError
from regent.protocol.serving import user_principal

_CREDENTIALS: Final = (
    "see broker_sasl_mechanism, broker_sasl_username and broker_sasl_password_file, which is read "
    "when Regent starts; a SCRAM user's password is set with kafka-configs --alter --entity-type "
    "users"
)
_ADDRESSES: Final = (
    "nothing is sent there in its place; every broker needs an address of its own: see "
    "advertised.listeners of both"
)

_NOT_KAFKA: Final = "what answers there is no listener of Kafka"
_OR_TLS: Final = ", or one that expects TLS"
_LISTENERS: Final = ": see the broker's advertised.listeners and listener.security.protocol.map"


class ConnectionProblem(NamedTuple):
    """A failed attempt to reach a broker.

    Attributes:
        endpoint: Where, as ``LISTENER://host:port``; None if there was nowhere to try.
        error: What went wrong.
        principal: As whom, if it was refused.
        remedy: What to do, if it is known.
    """

    endpoint: str | None
    error: str
    principal: str | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        as_whom = "" if self.principal is None else f" as {self.principal}"
        remedy = "" if self.remedy is None else f"; {self.remedy}"
        return f"{self.endpoint or 'no listener'}{as_whom}: {self.error}{remedy}"


def connection_problem(
    error: Exception, *, endpoint: EndPoint | None, settings: ChannelSettings
) -> ConnectionProblem:
    """What is known of a failed attempt.

    Args:
        endpoint: The one that was tried.
    """
    text = _text(error)
    if endpoint is None:
        return ConnectionProblem(None, text)
    where = endpoint_text(endpoint)
    has_tls = endpoint.security_protocol.endswith("SSL")
    if isinstance(error, AuthenticationError) and settings.sasl is not None:
        principal = user_principal(settings.sasl.username)
        return ConnectionProblem(where, text, principal, _CREDENTIALS)
    if isinstance(error, OtherBrokerError):
        return ConnectionProblem(where, text, remedy=_ADDRESSES)
    if isinstance(error, FrameError):
        or_tls = "" if has_tls else _OR_TLS
        return ConnectionProblem(where, text, remedy=f"{_NOT_KAFKA}{or_tls}{_LISTENERS}")
    if has_tls and settings.tls is not None:
        own_problem = settings.tls.problem()
        remedy = remedy_for_broker(error, host=endpoint.host, own_problem=own_problem)
        return ConnectionProblem(where, text, remedy=remedy)
    return ConnectionProblem(where, text)


def _text(error: Exception) -> str:
    name, said = type(error).__name__, str(error)
    if not said and isinstance(error, TimeoutError):
        said = "no answer in time; the broker may hang, or something drops what is sent to it"
    return f"{name}: {said}" if said else name


def endpoint_text(endpoint: EndPoint) -> str:
    """An endpoint as Kafka writes it, with the name of its listener."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"
