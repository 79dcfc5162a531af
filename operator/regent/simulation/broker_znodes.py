"""Znodes that brokers write, and a controller never does."""

from __future__ import annotations

from regent.model.cluster import Broker, EndPoint
from regent.zk_data.decoding import json_object


def encode_broker(broker: Broker, *, timestamp_ms: int, jmx_port: int = -1) -> bytes:
    """The registration of a broker in its ``registration_version`` (2 to 5).

    ``host`` and ``port`` are those of the first PLAINTEXT endpoint, null and -1 without one.
    """
    version = broker.registration_version
    plaintext = next((e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"), None)
    members: list[tuple[str, object]] = []
    if version >= 5:
        features = {
            name: {"min_version": low, "max_version": high}
            for name, (low, high) in broker.features.items()
        }
        members.append(("features", features))
    if version >= 4:
        protocols = {e.listener: e.security_protocol for e in broker.endpoints}
        members.append(("listener_security_protocol_map", protocols))
    members.append(("endpoints", [_connection_string(e) for e in broker.endpoints]))
    if version >= 3 and broker.rack is not None:
        members.append(("rack", broker.rack))
    members += [
        ("jmx_port", jmx_port),
        ("port", plaintext.port if plaintext else -1),
        ("host", plaintext.host if plaintext else None),
        ("version", version),
        ("timestamp", str(timestamp_ms)),
    ]
    return json_object(members)


def _connection_string(endpoint: EndPoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def encode_cluster_id(cluster_id: str) -> bytes:
    """Inverse of ``decode_cluster_id``. The version is a string in Kafka, too."""
    return json_object([("version", "1"), ("id", cluster_id)])
