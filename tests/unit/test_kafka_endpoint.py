"""What is built of the settings to serve brokers and clients."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from regent.app import App, controller_config
from regent.endpoint_settings import advertised_address
from regent.kafka_endpoint import KafkaEndpoint
from regent.model.cluster import Address
from regent.model.errors import ConfigurationError
from regent.settings import Settings


def settings(**values: Any) -> Settings:
    return Settings(
        zookeeper="localhost:1", without_kubernetes=True, http_port=0, endpoint_port=0, **values
    )


def test_it_listens_at_once_on_the_port_that_is_advertised() -> None:
    endpoint = KafkaEndpoint(settings(), CollectorRegistry())
    (protocol, address), *_ = endpoint.served.items()
    assert protocol == "PLAINTEXT"
    with socket.create_connection(address, timeout=5):
        pass
    endpoint.close()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, Address("127.0.0.1", 9)),
        ({"endpoint_host": "10.1.2.3"}, Address("10.1.2.3", 9)),
        ({"endpoint_advertised_host": "regent.example"}, Address("regent.example", 9)),
        ({"endpoint_advertised_port": 30_000}, Address("127.0.0.1", 30_000)),
        (
            {"endpoint_host": "0.0.0.0", "endpoint_advertised_host": "fd00::5"},
            Address("fd00::5", 9),
        ),
    ],
)
def test_the_advertised_address_is_the_one_listened_on_unless_it_is_set(
    values: dict[str, Any], expected: Address
) -> None:
    assert advertised_address(settings(**values), 9) == expected


def test_who_listens_on_all_addresses_advertises_the_name_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda: "machine.example")
    assert advertised_address(settings(endpoint_host="::"), 9).host == "machine.example"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "localhost"])
def test_what_others_cannot_use_is_not_advertised(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda: "localhost.localdomain")
    with pytest.raises(ConfigurationError, match="set endpoint_advertised_host"):
        advertised_address(settings(endpoint_host=host), 9)


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_an_address_that_cannot_be_listened_on_is_named(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        wanted = Settings(
            zookeeper="localhost:1",
            without_kubernetes=True,
            http_port=0,
            endpoint_host=host,
            endpoint_port=port,
        )
        with pytest.raises(ConfigurationError, match=rf"{host}:{port}.*endpoint_port"):
            App(wanted)


def test_listeners_and_the_security_protocol_reach_the_controller() -> None:
    wanted = settings(
        endpoint_announced_listeners="internal, CLIENTS", inter_broker_listener="internal"
    )
    served = {"SASL_SSL": Address("regent", 9095)}
    config = controller_config(wanted, served=served)
    assert config.announced_listeners == {"INTERNAL", "CLIENTS"}
    assert config.inter_broker_listener == "INTERNAL"
    assert config.served == served
    assert not controller_config(wanted).served
