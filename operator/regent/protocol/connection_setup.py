"""Requests that open a connection: SASL, ApiVersions, and a few of the broker's own settings.

They are rare and small, so they go through kio's entities. Each request is a value that carries all
a connection needs to send it; each ``decode_*`` takes the body of the answer.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

from kio.schema.api_versions.v0.request import ApiVersionsRequest as ApiVersionsRequestV0
from kio.schema.api_versions.v0.response import ApiVersionsResponse as ApiVersionsResponseV0
from kio.schema.api_versions.v3.request import ApiVersionsRequest as ApiVersionsRequestV3
from kio.schema.api_versions.v3.response import ApiVersionsResponse as ApiVersionsResponseV3
from kio.schema.describe_configs.v1.request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kio.schema.describe_configs.v1.response import DescribeConfigsResponse
from kio.schema.sasl_authenticate.v0.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v0.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.primitive import i8

from regent.model.errors import RegentError
from regent.model.topic_config import SETTINGS_SINCE
from regent.protocol.api_versions import ProtocolVersion, VersionRange, parse_protocol_version
from regent.protocol.error_codes import UNSUPPORTED_VERSION, error_name
from regent.protocol.primitives import DecodeError
from regent.protocol.response_errors import read_error_code

_BROKER_RESOURCE: Final = i8(4)

_PROTOCOL_VERSION_KEY: Final = "inter.broker.protocol.version"
_LISTENER_KEY: Final = "inter.broker.listener.name"
_SECURITY_PROTOCOL_KEY: Final = "security.inter.broker.protocol"
_CONTROL_PLANE_KEY: Final = "control.plane.listener.name"

E = TypeVar("E")


class AuthenticationError(RegentError):
    """A broker refused the credentials or the mechanism."""


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
        topics: Values of the settings on which topic configurations depend, None for an unset one.
            What the broker does not know is missing. None: the broker did not say.
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


def _decode(entity_type: type[E], body: bytes) -> E:
    try:
        entity, _ = entity_reader(entity_type)(body, 0)  # type: ignore[type-var]
    except (SerialError, ValueError, KeyError) as error:
        raise DecodeError(f"not a {entity_type.__name__}: {error}") from error
    return entity


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
    code, _ = read_error_code(body, 0)
    if code == UNSUPPORTED_VERSION and version > 0:
        raise UnknownApiVersionsError(f"the broker does not know version {version} of ApiVersions")
    if code:
        raise DecodeError(f"the broker answered ApiVersions with {error_name(code)}")
    if version == 0:
        ranges = [
            (api.api_key, api.min_version, api.max_version)
            for api in _decode(ApiVersionsResponseV0, body).api_keys
        ]
    else:
        ranges = [
            (api.api_key, api.min_version, api.max_version)
            for api in _decode(ApiVersionsResponseV3, body).api_keys
        ]
    return {api_key: VersionRange(lowest, highest) for api_key, lowest, highest in ranges}


def broker_settings_request(broker_id: int) -> SetupRequest:
    """Asks a broker for its own settings. Others cannot answer for it.

    DescribeConfigs version 1, which every supported broker has. Settings that it does not know, it
    leaves out of its answer.
    """
    keys = (
        *(_PROTOCOL_VERSION_KEY, _LISTENER_KEY, _SECURITY_PROTOCOL_KEY, _CONTROL_PLANE_KEY),
        *SETTINGS_SINCE,
    )
    resource = DescribeConfigsResource(
        resource_type=_BROKER_RESOURCE, resource_name=str(broker_id), configuration_keys=keys
    )
    return _request(DescribeConfigsRequest(resources=(resource,)))


def decode_broker_settings_response(body: bytes) -> BrokerSettings | str:
    """The settings, or Kafka's name of the error with which the broker refused to give them.

    Raises:
        DecodeError: If the body is malformed.
    """
    response = _decode(DescribeConfigsResponse, body)
    if len(response.results) != 1:
        raise DecodeError(f"{len(response.results)} results for one resource")
    (result,) = response.results
    if result.error_code:
        return error_name(result.error_code)
    values = {config.name: config.value for config in result.configs}
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
    topics = {key: values[key] for key in SETTINGS_SINCE if key in values}
    return BrokerSettings(protocol_version, listener, topics)


def sasl_handshake_request(mechanism: str) -> SetupRequest:
    """Names the SASL mechanism; its messages follow in requests of their own (KIP-152)."""
    return _request(SaslHandshakeRequest(mechanism=mechanism))


def check_sasl_handshake_response(body: bytes) -> None:
    """Raise unless the broker accepts the mechanism.

    Raises:
        AuthenticationError: If it does not; the message lists what it accepts.
        DecodeError: If the body is malformed.
    """
    response = _decode(SaslHandshakeResponse, body)
    if response.error_code:
        raise AuthenticationError(
            f"{error_name(response.error_code)}: the broker offers {', '.join(response.mechanisms)}"
        )


def sasl_authenticate_request(message: bytes) -> SetupRequest:
    """One message of the mechanism."""
    return _request(SaslAuthenticateRequest(auth_bytes=message))


def decode_sasl_authenticate_response(body: bytes) -> bytes:
    """The broker's message of the mechanism.

    Raises:
        AuthenticationError: If the broker refuses the credentials.
        DecodeError: If the body is malformed.
    """
    response = _decode(SaslAuthenticateResponse, body)
    if response.error_code:
        raise AuthenticationError(response.error_message or error_name(response.error_code))
    return response.auth_bytes
