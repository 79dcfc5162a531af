"""Brokers and their listeners."""

from __future__ import annotations

from regent.model.cluster import Broker, EndPoint

INTERNAL = EndPoint("REPLICATION", "SSL", "broker-1.internal", 9093)
EXTERNAL = EndPoint("PLAINTEXT", "PLAINTEXT", "broker-1", 9092)


def test_a_listener_is_found_by_its_name() -> None:
    broker = Broker(1, 7, (EXTERNAL, INTERNAL))
    assert broker.endpoint("REPLICATION") == INTERNAL
    assert broker.endpoint("PLAINTEXT") == EXTERNAL
    assert broker.endpoint("SSL") is None
