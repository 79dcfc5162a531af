"""Registrations: ``/brokers/ids/<id>``. Source: ``kafka.zk.BrokerIdZNode``.

Those of brokers are read. The controller has one, too, where brokers look for it there: with a
member of its own, by which everybody here leaves it out. Kafka does not read that member.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from regent.model.cluster import Broker, EndPoint
from regent.model.errors import MalformedZNodeError
from regent.zk_data import paths
from regent.zk_data.decoding import Int32, json_decoder, json_object
from regent.zk_data.operations import ZNode

_CONNECTION_STRING: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]{1,5})")
_SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MARK: Final = "regentController"
_STRING_SIZE_MAX: Final = 2**15 - 1
"""Bytes of the longest string in a request: a longer one cannot be sent to brokers."""


class _Registration(msgspec.Struct):
    version: Int32
    jmx_port: Int32
    host: str | None = None
    port: int | None = None
    endpoints: list[str] | None = None
    listener_security_protocol_map: dict[str, str] | None = None
    rack: str | None = None
    features: dict[str, dict[str, int]] | None = None


class _Marked(msgspec.Struct):
    is_controller: bool = msgspec.field(default=False, name=_MARK)


_decode = json_decoder(_Registration)
_decode_mark = json_decoder(_Marked)


def decode_broker(broker_id: int, node: ZNode) -> Broker:
    """A broker from its registration, versions 1 to 5; later ones are read as 5.

    Raises:
        MalformedZNodeError: If Kafka's own decoder would refuse it, no endpoint is given, or a
            name is too long for the requests that announce the broker.
    """
    path = paths.broker_id(broker_id)
    registration = _decode(path, node.data)
    endpoints = _endpoints(path, registration)
    for text in (registration.rack or "", *(t for e in endpoints for t in (e.listener, e.host))):
        if len(text.encode()) > _STRING_SIZE_MAX:
            raise MalformedZNodeError(path, f"a name is longer than {_STRING_SIZE_MAX} bytes")
    return Broker(
        broker_id=broker_id,
        epoch=node.czxid,
        endpoints=endpoints,
        rack=registration.rack,
        registration_version=registration.version,
        features=_features(path, registration.features or {}),
        session_id=node.ephemeral_owner,
    )


def is_controller_registration(node: ZNode) -> bool:
    """Whether a registration is that of a Regent, which is no broker."""
    try:
        return _decode_mark("", node.data).is_controller
    except MalformedZNodeError:
        return False


def encode_controller_registration(controller: Broker, timestamp_ms: int) -> bytes:
    """A registration of the controller, version 4, which all versions of Kafka read.

    Args:
        controller: As it is announced.
        timestamp_ms: When it was made.
    """
    plaintext = next((e for e in controller.endpoints if e.security_protocol == "PLAINTEXT"), None)
    members: list[tuple[str, object]] = [
        (
            "listener_security_protocol_map",
            {e.listener: e.security_protocol for e in controller.endpoints},
        ),
        ("endpoints", [_connection_string(e) for e in controller.endpoints]),
    ]
    if controller.rack is not None:
        members.append(("rack", controller.rack))
    return json_object(
        [
            *members,
            ("jmx_port", -1),
            ("host", None if plaintext is None else plaintext.host),
            ("port", -1 if plaintext is None else plaintext.port),
            ("version", 4),
            ("timestamp", str(timestamp_ms)),
            (_MARK, True),
        ]
    )


def _connection_string(endpoint: EndPoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _endpoints(path: str, registration: _Registration) -> tuple[EndPoint, ...]:
    if registration.version < 1:
        raise MalformedZNodeError(path, f"unsupported version {registration.version}")
    if registration.version == 1:
        if registration.host is None or registration.port is None:
            raise MalformedZNodeError(path, "no host or no port")
        return (_endpoint(path, "PLAINTEXT", registration.host, registration.port),)
    if not registration.endpoints:
        raise MalformedZNodeError(path, "no endpoints")
    protocols = registration.listener_security_protocol_map or {}
    return tuple(_parse_endpoint(path, text, protocols) for text in registration.endpoints)


def _parse_endpoint(path: str, text: str, protocols: Mapping[str, str]) -> EndPoint:
    match = _CONNECTION_STRING.fullmatch(text)
    if match is None:
        raise MalformedZNodeError(path, f"not an endpoint: {text[:100]!r}")
    listener, host, port = match.groups()
    listener = listener.upper()  # Kafka normalises the names of endpoints, and only these
    protocol = protocols.get(listener, "") if protocols else listener
    return _endpoint(path, listener, host, int(port), protocol=protocol)


def _endpoint(
    path: str, listener: str, host: str, port: int, *, protocol: str = "PLAINTEXT"
) -> EndPoint:
    protocol = protocol.upper()
    if protocol not in _SECURITY_PROTOCOLS:
        raise MalformedZNodeError(path, f"listener {listener[:100]!r} has no security protocol")
    if not -1 <= port <= 65535:
        raise MalformedZNodeError(path, f"port {port} of listener {listener[:100]!r}")
    return EndPoint(listener=listener, security_protocol=protocol, host=host, port=port)


def _features(path: str, features: Mapping[str, Mapping[str, int]]) -> dict[str, tuple[int, int]]:
    decoded: dict[str, tuple[int, int]] = {}
    for name, levels in features.items():
        if "min_version" not in levels or "max_version" not in levels:
            raise MalformedZNodeError(path, f"feature {name[:100]!r} without version levels")
        decoded[name] = (levels["min_version"], levels["max_version"])
    return decoded
