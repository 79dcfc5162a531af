"""Registrations as brokers of several versions write them (host names replaced)."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.cluster import Broker, EndPoint
from regent.model.errors import MalformedZNodeError
from regent.simulation.broker_znodes import encode_broker
from regent.zk_data.brokers import (
    decode_broker,
    encode_controller_registration,
    is_controller_registration,
)
from regent.zk_data.operations import ZNode

SESSION_ID = 5


def znode(data: bytes, *, czxid: int = 77) -> ZNode:
    return ZNode(data=data, version=1, czxid=czxid, mzxid=czxid + 1, ephemeral_owner=SESSION_ID)


def registration(**changes: object) -> bytes:
    members: dict[str, object] = {
        "version": 4,
        "jmx_port": -1,
        "endpoints": ["PLAINTEXT://h:9092"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
    }
    members.update(changes)
    return json.dumps({k: v for k, v in members.items() if v is not ...}).encode()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            b'{"jmx_port":9999,"timestamp":"2233345666","host":"localhost","version":1,"port":9092}',
            Broker(7, 77, (EndPoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092),), None, 1),
            id="v1",
        ),
        pytest.param(
            b'{"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h1:9092","SSL://h1:9093"],'
            b'"host":"h1","version":2,"port":9092}',
            Broker(
                7,
                77,
                (
                    EndPoint("PLAINTEXT", "PLAINTEXT", "h1", 9092),
                    EndPoint("SSL", "SSL", "h1", 9093),
                ),
                None,
                2,
            ),
            id="v2, no protocol map: listeners are named after protocols",
        ),
        pytest.param(
            b'{"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h1:9092"],'
            b'"host":"h1","version":3,"port":9092,"rack":"dc1"}',
            Broker(7, 77, (EndPoint("PLAINTEXT", "PLAINTEXT", "h1", 9092),), "dc1", 3),
            id="v3",
        ),
        pytest.param(
            b'{"listener_security_protocol_map":{"CLIENT":"SASL_SSL","REPLICATION":"PLAINTEXT"},'
            b'"endpoints":["CLIENT://[2001:db8::1]:9092","REPLICATION://h1:9093"],"rack":"r",'
            b'"jmx_port":-1,"port":9093,"host":"h1","version":4,"timestamp":"1581234567890"}',
            Broker(
                7,
                77,
                (
                    EndPoint("CLIENT", "SASL_SSL", "2001:db8::1", 9092),
                    EndPoint("REPLICATION", "PLAINTEXT", "h1", 9093),
                ),
                "r",
                4,
            ),
            id="v4",
        ),
        pytest.param(
            b'{"features":{"f":{"min_version":1,"max_version":3}},"listener_security_protocol_map":'
            b'{"SSL":"SSL"},"endpoints":["SSL://h1:9093"],"jmx_port":-1,"port":-1,"host":null,'
            b'"version":5,"timestamp":"1614567890123"}',
            Broker(7, 77, (EndPoint("SSL", "SSL", "h1", 9093),), None, 5, {"f": (1, 3)}),
            id="v5, no plaintext listener",
        ),
        pytest.param(
            registration(version=9, something_new={"a": [1]}),
            Broker(7, 77, (EndPoint("PLAINTEXT", "PLAINTEXT", "h", 9092),), None, 9),
            id="a version of the future",
        ),
        pytest.param(
            registration(endpoints=["Plaintext://h:1"], rack=None, features=None),
            Broker(7, 77, (EndPoint("PLAINTEXT", "PLAINTEXT", "h", 1),), None, 4),
            id="endpoint names are upper-cased, as in Kafka",
        ),
        pytest.param(
            registration(endpoints=["PLAINTEXT://:9092"]),
            Broker(7, 77, (EndPoint("PLAINTEXT", "PLAINTEXT", "", 9092),), None, 4),
            id="no host",
        ),
    ],
)
def test_real_registrations(data: bytes, expected: Broker) -> None:
    expected = msgspec.structs.replace(expected, session_id=SESSION_ID)
    assert decode_broker(7, znode(data)) == expected


@pytest.mark.parametrize(
    "data",
    [
        registration(jmx_port=...),
        registration(version=...),
        registration(version=0),
        registration(version="4"),
        registration(endpoints=...),
        registration(endpoints=[]),
        registration(endpoints=["h:9092"]),
        registration(endpoints=["PLAINTEXT://h"]),
        registration(endpoints=["PLAINTEXT://h:70000"]),
        registration(endpoints=["PLAINTEXT://h:9999999999"]),
        registration(endpoints=["OTHER://h:9092"]),
        registration(listener_security_protocol_map={"PLAINTEXT": "TELNET"}),
        registration(features={"f": {"min_version": 1}}),
        registration(version=1, endpoints=...),
        registration(rack=7),
    ],
)
def test_what_kafka_refuses_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedZNodeError) as caught:
        decode_broker(7, znode(data))
    assert caught.value.path == "/brokers/ids/7"
    assert caught.value.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"rack": "r" * 32_768},
        {"rack": "\u00e4" * 16_384},
        {"endpoints": [f"PLAINTEXT://{'h' * 32_768}:1"]},
        {"endpoints": [f"{'L' * 32_768}://h:1"]},
    ],
    ids=["rack", "rack in bytes", "host", "listener"],
)
def test_a_name_that_no_request_can_carry_is_malformed(changes: dict[str, object]) -> None:
    """Every UpdateMetadata names every broker: one such name would end the channels to all."""
    protocols = {"PLAINTEXT": "PLAINTEXT", "L" * 32_768: "PLAINTEXT"}
    with pytest.raises(MalformedZNodeError, match="longer than 32767 bytes"):
        decode_broker(7, znode(registration(listener_security_protocol_map=protocols, **changes)))


def test_encoding_as_kafka_does() -> None:
    broker = Broker(
        1,
        0,
        (EndPoint("TLS", "SSL", "::1", 9093), EndPoint("INSIDE", "PLAINTEXT", "h", 9092)),
        rack="a",
        registration_version=5,
    )
    assert json.loads(encode_broker(broker, timestamp_ms=1614567890123)) == {
        "features": {},
        "listener_security_protocol_map": {"TLS": "SSL", "INSIDE": "PLAINTEXT"},
        "endpoints": ["TLS://[::1]:9093", "INSIDE://h:9092"],
        "rack": "a",
        "jmx_port": -1,
        "port": 9092,
        "host": "h",
        "version": 5,
        "timestamp": "1614567890123",
    }
    no_plaintext = Broker(1, 0, broker.endpoints[:1], registration_version=4)
    encoded = json.loads(encode_broker(no_plaintext, timestamp_ms=1, jmx_port=9))
    assert (encoded["host"], encoded["port"], encoded["jmx_port"]) == (None, -1, 9)
    assert "features" not in encoded
    assert "rack" not in encoded


HOSTS = st.sampled_from(["h", "kafka-0.kafka.svc", "10.0.0.1", "2001:db8::7"])
ENDPOINTS = st.builds(
    EndPoint,
    listener=st.from_regex(r"[A-Z_]{1,8}", fullmatch=True),
    security_protocol=st.sampled_from(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
    host=HOSTS,
    port=st.integers(1, 65535),
)
BROKERS = st.builds(
    Broker,
    broker_id=st.integers(0, 2**31 - 1),
    epoch=st.just(77),
    endpoints=st.lists(ENDPOINTS, min_size=1, max_size=4, unique_by=lambda e: e.listener).map(
        tuple
    ),
    rack=st.none() | st.text(max_size=10),
    registration_version=st.just(5),
    features=st.dictionaries(
        st.text(max_size=5), st.tuples(st.integers(0, 5), st.integers(5, 9)), max_size=2
    ),
)


@given(BROKERS)
def test_round_trip(broker: Broker) -> None:
    data = encode_broker(broker, timestamp_ms=1)
    decoded = decode_broker(broker.broker_id, znode(data))
    assert decoded == msgspec.structs.replace(broker, session_id=SESSION_ID)


@given(BROKERS)
def test_a_controller_registers_as_brokers_do_but_for_a_mark(controller: Broker) -> None:
    node = znode(encode_controller_registration(controller, 1))
    decoded = decode_broker(controller.broker_id, node)
    assert (decoded.endpoints, decoded.rack) == (controller.endpoints, controller.rack)
    assert decoded.registration_version == 4
    assert is_controller_registration(node)
    as_a_broker = znode(encode_broker(controller, timestamp_ms=1))
    assert not is_controller_registration(as_a_broker)
    assert as_a_broker.data != node.data


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"regentController":1}', b"\xff"])
def test_what_does_not_decode_has_no_mark(data: bytes) -> None:
    assert not is_controller_registration(znode(data))
