"""Requests that open a connection: SASL, ApiVersions, and a few of the broker's own settings.

They are rare and small, so requests go through kio's entities. Each is a value that carries all a
connection needs to send it; each ``decode_*`` takes the body of the answer. Answers are read here:
kio reserves memory for as many elements as an array announces, and a process that cannot have it is
aborted. Whoever listens at a broker's address could end the controller with a dozen bytes.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kio.schema.api_versions.v0.request import ApiVersionsRequest as ApiVersionsRequestV0
from kio.schema.api_versions.v3.request import ApiVersionsRequest as ApiVersionsRequestV3
from kio.schema.describe_configs.v1.request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kio.schema.sasl_authenticate.v0.request import SaslAuthenticateRequest as SaslAuthenticateV0
from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest as SaslAuthenticateV1
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.serial import entity_writer
from kio.static.primitive import i8

from regent.model.errors import RegentError
from regent.model.topic_config import ADMIN_SETTINGS, SETTINGS_SINCE
from regent.protocol.api_versions import ProtocolVersion, VersionRange, parse_protocol_version
from regent.protocol.error_codes import INVALID_REQUEST, UNSUPPORTED_VERSION, error_name
from regent.protocol.primitives import DecodeError, Reader

_BROKER_RESOURCE: Final = i8(4)

_PROTOCOL_VERSION_KEY: Final = "inter.broker.protocol.version"
_LISTENER_KEY: Final = "inter.broker.listener.name"
_SECURITY_PROTOCOL_KEY: Final = "security.inter.broker.protocol"
_CONTROL_PLANE_KEY: Final = "control.plane.listener.name"


class AuthenticationError(RegentError):
    """A broker refused the credentials or the mechanism."""


class OtherBrokerError(ConnectionError):
    """Another broker answers at the address that a broker has registered. It would take what is
    sent to that one for its own: what the other one is to delete, it deletes."""


class UnknownApiVersionsError(DecodeError):
    """A broker that is too old for this version of ApiVersions."""


class SetupRequest(NamedTuple):
    """A request of this module, ready to be framed."""

    api_key: int
    api_version: int
    flexible: bool
    body: bytes


class BrokerSettings(NamedTuple):
    """What a broker says of its own configuration.

    Attributes:
        protocol_version: ``inter.broker.protocol.version``; None if the broker did not say.
        listener: Name of the listener that controllers use: that of the control plane (KIP-291) if
            the broker has one, else the inter-broker one; None if the broker did not say.
        topics: Values of the settings on which topics depend, None for an unset one. What the
            broker does not know is missing. None: the broker did not say.
    """

    protocol_version: ProtocolVersion | None
    listener: str | None
    topics: Mapping[str, str | None] | None = None


def _request(entity: Any) -> SetupRequest:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return SetupRequest(
        api_key=entity.__api_key__,
        api_version=entity.__version__,
        flexible=entity.__flexible__,
        body=buffer.getvalue(),
    )


def api_versions_request(software_version: str, *, version: int = 3) -> SetupRequest:
    """Asks what the broker understands, and introduces the client (KIP-511).

    Version 3, or version 0 for brokers that do not know it.
    """
    if version == 0:
        return _request(ApiVersionsRequestV0())
    return _request(
        ApiVersionsRequestV3(
            client_software_name="regent", client_software_version=software_version
        )
    )


def decode_api_versions_response(version: int, body: bytes) -> Mapping[int, VersionRange]:
    """Version ranges by API key.

    Raises:
        UnknownApiVersionsError: If the broker wants the request in version 0 instead. It answers a
            version that it does not know in version 0.
        DecodeError: If the body is malformed, or says any other error.
    """
    reader = Reader(body, flexible=version > 0)
    code = reader.int16()
    if code == UNSUPPORTED_VERSION and version > 0:
        raise UnknownApiVersionsError(f"the broker does not know version {version} of ApiVersions")
    if code:
        raise DecodeError(f"the broker answered ApiVersions with {error_name(code)}")
    ranges: dict[int, VersionRange] = {}
    for _ in range(reader.array_length()):
        api_key = reader.int16()
        ranges[api_key] = VersionRange(reader.int16(), reader.int16())
        reader.tags()
    return ranges


def broker_settings_request(broker_id: int) -> SetupRequest:
    """Asks a broker for its own settings. Others cannot answer for it.

    DescribeConfigs version 1, which every supported broker has. Settings that it does not know, it
    leaves out of its answer.
    """
    keys = (
        *(_PROTOCOL_VERSION_KEY, _LISTENER_KEY, _SECURITY_PROTOCOL_KEY, _CONTROL_PLANE_KEY),
        *SETTINGS_SINCE,
        *ADMIN_SETTINGS,
    )
    resource = DescribeConfigsResource(
        resource_type=_BROKER_RESOURCE, resource_name=str(broker_id), configuration_keys=keys
    )
    return _request(DescribeConfigsRequest(resources=(resource,)))


def decode_broker_settings_response(body: bytes) -> BrokerSettings | str:
    """The settings, or Kafka's name of the error with which the broker refused to give them.

    Raises:
        OtherBrokerError: If it is another broker than the one that was asked.
        DecodeError: If the body is malformed.
    """
    reader = Reader(body)
    code = _read_refusal(reader)
    reader.int8()  # resource type
    reader.string()  # resource name
    if code:
        return error_name(code)
    values = dict(_read_config(reader) for _ in range(reader.array_length()))
    text = values.get(_PROTOCOL_VERSION_KEY)
    try:
        protocol_version = None if text is None else parse_protocol_version(text)
    except ValueError as error:
        raise DecodeError(str(error)) from error
    # Kafka names a listener after its security protocol where none is named.
    listener = (
        values.get(_CONTROL_PLANE_KEY)
        or values.get(_LISTENER_KEY)
        or values.get(_SECURITY_PROTOCOL_KEY)
    )
    topics = {key: values[key] for key in (*SETTINGS_SINCE, *ADMIN_SETTINGS) if key in values}
    return BrokerSettings(protocol_version, listener, topics)


def check_identity(body: bytes) -> None:
    """Raise if the answer to :func:`broker_settings_request` says that another broker was asked.
    Any other refusal says nothing.

    Raises:
        OtherBrokerError: If so.
        DecodeError: If the body is malformed.
    """
    _read_refusal(Reader(body))


def _read_refusal(reader: Reader) -> int:
    """The beginning of the answer for one broker: the error code, 0 for none."""
    reader.int32()  # throttle time
    results = reader.array_length()
    if results != 1:
        raise DecodeError(f"{results} results for one resource")
    code, message = reader.int16(), reader.nullable_string()
    # Every broker answers so if it is asked for the settings of another one, and only then.
    if code == INVALID_REQUEST:
        raise OtherBrokerError(f"another broker answers there: {message or error_name(code)}")
    return code


def _read_config(reader: Reader) -> tuple[str, str | None]:
    """Name and value of one setting, version 1 of DescribeConfigs."""
    name, value = reader.string(), reader.nullable_string()
    for _ in ("read only", "source", "sensitive"):
        reader.int8()
    for _ in range(reader.array_length()):  # synonyms
        reader.string()
        reader.nullable_string()
        reader.int8()
    return name, value


def sasl_handshake_request(mechanism: str) -> SetupRequest:
    """Names the SASL mechanism; its messages follow in requests of their own (KIP-152)."""
    return _request(SaslHandshakeRequest(mechanism=mechanism))


def check_sasl_handshake_response(body: bytes) -> None:
    """Raise unless the broker accepts the mechanism.

    Raises:
        AuthenticationError: If it does not; the message lists what it accepts.
        DecodeError: If the body is malformed.
    """
    reader = Reader(body)
    code = reader.int16()
    mechanisms = [reader.string() for _ in range(reader.array_length())]
    if code:
        raise AuthenticationError(f"{error_name(code)}: the broker offers {', '.join(mechanisms)}")


def sasl_authenticate_version(supported: Mapping[int, VersionRange]) -> int:
    """Of SaslAuthenticate, for a broker. From 1 on answers say when a session ends (KIP-368)."""
    versions = supported.get(SaslAuthenticateV1.__api_key__)
    return 1 if versions is not None and versions.highest >= 1 else 0


def sasl_authenticate_request(message: bytes, *, version: int) -> SetupRequest:
    """One message of the mechanism, in version 0 or 1."""
    entity = SaslAuthenticateV0 if version == 0 else SaslAuthenticateV1
    return _request(entity(auth_bytes=message))


class SaslAnswer(NamedTuple):
    """What a broker answers to a message of the mechanism.

    Attributes:
        message: Its own one.
        session_lifetime_s: Seconds after which it takes no requests on the connection unless it is
            authenticated again; 0: the session has no end, or the broker does not say it.
    """

    message: bytes
    session_lifetime_s: float


def decode_sasl_authenticate_response(body: bytes, *, version: int) -> SaslAnswer:
    """The broker's message of the mechanism.

    Raises:
        AuthenticationError: If the broker refuses the credentials.
        DecodeError: If the body is malformed.
    """
    reader = Reader(body)
    code, message = reader.int16(), reader.nullable_string()
    if code:
        raise AuthenticationError(message or error_name(code))
    answer = reader.sized_bytes()
    lifetime_ms = reader.int64() if version >= 1 else 0
    return SaslAnswer(answer, lifetime_ms / 1000)
