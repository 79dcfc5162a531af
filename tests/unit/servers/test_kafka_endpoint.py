"""What is built of the settings to serve brokers and clients."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from pydantic import ValidationError

from regent.app import App, controller_config
from regent.model.cluster import Address
from regent.model.errors import ConfigurationError
from regent.servers.endpoint_settings import (
    advertised_address,
    advertised_listeners,
    further_listeners,
)
from regent.servers.kafka_endpoint import KafkaEndpoint
from regent.settings import Settings


def settings(**values: Any) -> Settings:
    return Settings(
        zookeeper="localhost:1", without_kubernetes=True, http_port=0, endpoint_port=0, **values
    )


def test_it_listens_at_once_on_the_port_that_is_advertised() -> None:
    endpoint = KafkaEndpoint(settings(), CollectorRegistry())
    (protocol, address), *_ = endpoint.served.items()
    assert protocol == "PLAINTEXT"
    with socket.create_connection(address, timeout=60):
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
def test_advertised_address_follows_settings(values: dict[str, Any], expected: Address) -> None:
    assert advertised_address(settings(**values), 9) == expected


def test_wildcard_host_advertises_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda: "machine.example")
    assert advertised_address(settings(endpoint_host="::"), 9).host == "machine.example"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "localhost"])
def test_useless_address_is_not_advertised(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"tls": True, "tls_certificate_file": "none.pem", "tls_key_file": "none.pem"},
            "TLS of the endpoint: .*none.pem",
        ),
        (
            {"sasl_mechanisms": "PLAIN", "sasl_plain_users_file": "none.yaml"},
            "file of users none.yaml cannot be read",
        ),
    ],
)
def test_unusable_file_is_named_at_the_start(values: dict[str, Any], message: str) -> None:
    options = {f"endpoint_{name}": value for name, value in values.items()}
    with pytest.raises(ConfigurationError, match=message):
        App(settings(**options))


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


class TestListenersWithAnAddressOfTheirOwn:
    def test_each_has_a_port_that_is_advertised(self) -> None:
        endpoint = KafkaEndpoint(
            settings(endpoint_further_listeners="external://:0, OTHER://127.0.0.1:0"),
            CollectorRegistry(),
        )
        assert list(endpoint.listener_addresses) == ["EXTERNAL", "OTHER"]
        addresses = [*endpoint.served.values(), *endpoint.listener_addresses.values()]
        assert len(set(addresses)) == 3
        for address in addresses:
            with socket.create_connection(address, timeout=60):
                pass
        endpoint.close()
        for address in addresses:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address, timeout=60)

    @pytest.mark.parametrize(
        ("advertised", "expected"),
        [
            ("", Address("regent", 9093)),
            ("EXTERNAL://kafka.example:9095", Address("kafka.example", 9095)),
            ("external://:9095", Address("regent", 9095)),
            ("EXTERNAL://[fd00::5]:9095", Address("fd00::5", 9095)),
        ],
    )
    def test_what_is_advertised(self, advertised: str, expected: Address) -> None:
        wanted = settings(endpoint_advertised_listeners=advertised)
        found = advertised_listeners(wanted, host="regent", ports={"EXTERNAL": 9093})
        assert found == {"EXTERNAL": expected}

    def test_the_port_for_all_can_have_several_addresses(self) -> None:
        wanted = settings(endpoint_advertised_listeners="EXTERNAL://kafka.example:9095")
        found = advertised_listeners(wanted, host="regent", ports={})
        assert found == {"EXTERNAL": Address("kafka.example", 9095)}

    @pytest.mark.parametrize(
        ("advertised", "message"),
        [
            ("EXTERNAL://localhost:9095", "set endpoint_advertised_listeners"),
            ("EXTERNAL://0.0.0.0:9095", "set endpoint_advertised_listeners"),
            ("EXTERNAL://kafka.example:0", "port 0 for EXTERNAL"),
        ],
    )
    def test_useless_address_is_not_advertised(self, advertised: str, message: str) -> None:
        wanted = settings(endpoint_advertised_listeners=advertised)
        with pytest.raises(ConfigurationError, match=message):
            advertised_listeners(wanted, host="regent", ports={})

    @pytest.mark.parametrize(("name", "listener"), [("internal", "INTERNAL"), (None, "CONTROLLER")])
    def test_main_listener_has_no_other_port(self, name: str | None, listener: str) -> None:
        wanted = settings(endpoint_listener=name, endpoint_further_listeners=f"{listener}://:9093")
        with pytest.raises(ConfigurationError, match=f"(?i){listener}.*endpoint_listener"):
            further_listeners(wanted)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("EXTERNAL:9093", "'EXTERNAL:9093' is no listener such as"),
            ("EXTERNAL://host", "'EXTERNAL://host' is no listener"),
            ("EXTERNAL://host:65536", "host:65536' is no listener"),
            ("://host:9093", "is no listener"),
            ("EXTERNAL://fd00::5:9093", "is no listener"),
            ("EXTERNAL://a:1,external://b:2", "EXTERNAL has an address already"),
        ],
    )
    @pytest.mark.parametrize("name", ["further", "advertised"])
    def test_bad_values_are_named(self, name: str, value: str, message: str) -> None:
        with pytest.raises(ValidationError, match=message):
            settings(**{f"endpoint_{name}_listeners": value})

    def test_they_are_beside_the_port_for_all(self) -> None:
        with pytest.raises(ValidationError, match="endpoint_port, which is not set"):
            Settings(
                zookeeper="localhost:1",
                without_kubernetes=True,
                endpoint_further_listeners=("EXTERNAL://:9093",),
            )

    def test_an_address_that_cannot_be_listened_on_is_named(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            wanted = settings(endpoint_further_listeners=f"EXTERNAL://127.0.0.1:{port}")
            with pytest.raises(ConfigurationError, match=f"{port}.*in endpoint_further_listeners"):
                KafkaEndpoint(wanted, CollectorRegistry())
