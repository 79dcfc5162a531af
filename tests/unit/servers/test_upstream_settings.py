"""How requests of clients are passed on, out of the settings."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from regent.model.errors import ConfigurationError
from regent.servers.endpoint_settings import upstream_settings
from regent.settings import Settings
from sandbox.pki import Authority
from tests.support.present import present


def settings(**values: Any) -> Settings:
    given = {"endpoint_port": 0, "controller_id": 1_000_000_007, **values}
    return Settings(zookeeper="localhost:1", without_kubernetes=True, **given)


@pytest.mark.parametrize("values", [{"endpoint_port": None}, {"endpoint_pass_through": False}])
def test_nothing_is_passed_on_where_it_is_not_wanted(values: dict[str, Any]) -> None:
    assert upstream_settings(settings(**values)) is None


@pytest.mark.parametrize(
    ("values", "listeners"),
    [
        ({}, ()),
        ({"endpoint_announced_listeners": "internal,Clients"}, ("INTERNAL", "CLIENTS")),
        (
            {"endpoint_announced_listeners": "INTERNAL,CLIENTS", "endpoint_listener": "clients"},
            ("CLIENTS",),
        ),
    ],
)
def test_listener_is_named_or_announced(values: dict[str, Any], listeners: tuple[str, ...]) -> None:
    found = present(upstream_settings(settings(**values)))
    assert (found.listeners, found.tls, found.client_id) == (listeners, None, "1000000007")
    assert found.further_listeners == ()


def test_listeners_with_ports_of_their_own_are_named() -> None:
    found = present(upstream_settings(settings(endpoint_further_listeners="external://:0")))
    assert found.further_listeners == ("EXTERNAL",)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """A certificate of ours for brokers, and their authority."""
    issued = Authority(tmp_path).issue()
    return {
        "endpoint_tls": True,
        "broker_tls": True,
        "broker_tls_ca_file": issued.ca_certificate,
        "broker_tls_certificate_file": issued.certificate,
        "broker_tls_key_file": issued.key,
    }


def test_own_certificate_never_used(files: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Who shows it is Regent, which may do more than its clients."""
    loaded: list[object] = []
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", lambda *args: loaded.append(args))
    tls = present(present(upstream_settings(settings(**files))).tls)
    assert tls.context().verify_mode is ssl.CERT_REQUIRED
    assert tls.context().check_hostname
    assert loaded == []


def test_a_file_that_cannot_be_used_is_named(files: dict[str, Any], tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    with pytest.raises(ConfigurationError, match=r"missing\.pem"):
        upstream_settings(settings(**files | {"broker_tls_ca_file": missing}))
