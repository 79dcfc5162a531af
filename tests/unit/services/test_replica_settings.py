"""How replicas know each other, made of the settings of the process."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from regent.app import controller_config
from regent.model.cluster import Address
from regent.model.errors import ConfigurationError
from regent.network.own_address import own_address
from regent.replicas.suspicion import SuspicionSettings
from regent.services.controller_loop import ReplicaSettings
from regent.services.replica_settings import own_pause_s, replica_settings, suspicion_settings
from regent.settings import Settings
from sandbox.pki import Authority

LOCALHOST = "127.0.0.1"


def settings(**given: Any) -> Settings:
    return Settings(**{"zookeeper": f"{LOCALHOST}:2181/kafka", "warm_standby": True, **given})


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def made(stack: ExitStack, **given: Any) -> ReplicaSettings:
    replicas = replica_settings(settings(**given))
    assert replicas is not None
    stack.callback(replicas.heartbeats.close)
    return replicas


def test_without_a_warm_standby_replicas_do_not_know_each_other() -> None:
    assert replica_settings(settings(warm_standby=False)) is None


def test_the_defaults_are_those_of_the_reducer() -> None:
    assert suspicion_settings(settings()) == SuspicionSettings()
    assert controller_config(settings()).suspicion_backoff_ms == 30_000


def test_a_process_has_slept_before_others_hold_it_to_be_frozen() -> None:
    """Its last answer may be as old as the time between two questions."""
    for interval_ms, silence_ms in ((200, 2_000), (10, 100), (20, 100), (1_000, 5_000)):
        given = settings(replica_heartbeat_interval_ms=interval_ms, replica_silence_ms=silence_ms)
        assert own_pause_s(given) < (silence_ms - interval_ms) / 1000


def test_it_does_so_without_a_warm_standby() -> None:
    assert own_pause_s(settings(warm_standby=False)) == own_pause_s(settings())


def test_each_process_is_another_instance(stack: ExitStack) -> None:
    assert made(stack).heartbeats.instance != made(stack).heartbeats.instance


@pytest.mark.parametrize("host", [None, LOCALHOST])
def test_it_listens_from_the_beginning(stack: ExitStack, host: str | None) -> None:
    port = made(stack, replica_host=host).heartbeats.port
    socket.create_connection((LOCALHOST, port)).close()


def test_others_use_the_address_from_which_zookeeper_is_reached(stack: ExitStack) -> None:
    assert made(stack).own_host() == LOCALHOST
    assert made(stack, replica_advertised_host="10.1.2.3").own_host() == "10.1.2.3"


def test_a_server_without_a_route_is_passed_over() -> None:
    assert own_address([Address("no-such-host.invalid", 1), Address(LOCALHOST, 1)]) == LOCALHOST
    assert own_address([Address("no-such-host.invalid", 1)]) is None


def test_a_port_that_is_taken_is_named(stack: ExitStack) -> None:
    taken = made(stack, replica_host=LOCALHOST).heartbeats.port
    with pytest.raises(ConfigurationError, match=rf"{LOCALHOST}:{taken}.*replica_port"):
        replica_settings(settings(replica_host=LOCALHOST, replica_port=taken))


def test_a_few_lost_answers_are_no_silence() -> None:
    with pytest.raises(ConfigurationError, match=r"replica_silence_ms 900.*5 times.*200"):
        suspicion_settings(settings(replica_silence_ms=900))


@pytest.mark.parametrize(
    ("ca_file", "message"),
    [
        pytest.param(None, "replica_tls needs replica_tls_ca_file", id="not given"),
        pytest.param("missing", r"TLS between replicas.*missing", id="cannot be used"),
    ],
)
def test_tls_needs_all_its_files(tmp_path: Path, ca_file: str | None, message: str) -> None:
    files = Authority(tmp_path).issue("regent")
    with pytest.raises(ConfigurationError, match=message):
        replica_settings(
            settings(
                replica_tls=True,
                replica_tls_ca_file=None if ca_file is None else tmp_path / ca_file,
                replica_tls_certificate_file=files.certificate,
                replica_tls_key_file=files.key,
            )
        )
