"""How the replicas of a Regent know each other, made of the settings of the process."""

from __future__ import annotations

import socket
import uuid
from functools import partial
from typing import Final

from regent.model.cluster import Address
from regent.model.errors import ConfigurationError
from regent.network.heartbeats import Heartbeats
from regent.network.own_address import own_address
from regent.network.replica_tls import ReplicaTls, tls_between_replicas
from regent.replicas.suspicion import SuspicionSettings
from regent.services.controller_loop import ReplicaSettings
from regent.settings import Settings
from regent.sockets.listening import listening_socket
from regent.zookeeper.settings import parse_connect_string

_ASKED_AT_LEAST: Final = 5
"""So often a replica has not answered until it is held to be frozen."""


def replica_settings(settings: Settings) -> ReplicaSettings | None:
    """A listener for heartbeats, and what goes with it; None without ``warm_standby``.

    Raises:
        ConfigurationError: The address cannot be listened on, a file cannot be used, or a setting
            contradicts another one.
    """
    if not settings.warm_standby:
        return None
    suspicion = suspicion_settings(settings)
    tls = _tls(settings)
    listening = listening_socket(settings.replica_host, settings.replica_port, setting="replica")
    hosts, _ = parse_connect_string(settings.zookeeper)
    servers = [_address(host) for host in hosts]
    heartbeats = Heartbeats(
        instance=str(uuid.uuid4()), listening=listening, settings=suspicion, tls=tls
    )
    return ReplicaSettings(heartbeats, partial(_own_host, settings, servers))


def suspicion_settings(settings: Settings) -> SuspicionSettings:
    """When another replica is suspected.

    Raises:
        ConfigurationError: It would be suspected after a few questions.
    """
    interval_ms, silence_ms = settings.replica_heartbeat_interval_ms, settings.replica_silence_ms
    if silence_ms < _ASKED_AT_LEAST * interval_ms:
        raise ConfigurationError(
            f"replica_silence_ms {silence_ms} is less than {_ASKED_AT_LEAST} times "
            f"replica_heartbeat_interval_ms {interval_ms}: raise the one or lower the other"
        )
    return SuspicionSettings(
        heartbeat_s=interval_ms / 1000,
        silence_s=silence_ms / 1000,
        unreached_s=settings.replica_connect_timeout_ms / 1000,
    )


def own_pause_s(settings: Settings) -> float:
    """For how long this process has to have slept to ask whether it is still the controller.

    Raises:
        ConfigurationError: As of :func:`suspicion_settings`.
    """
    suspicion = suspicion_settings(settings) if settings.warm_standby else SuspicionSettings()
    return suspicion.own_pause_s


def _address(server: str) -> Address:
    host, _, port = server.rpartition(":")
    return Address(host.strip("[]"), int(port))


def _own_host(settings: Settings, servers: list[Address]) -> str:
    return settings.replica_advertised_host or own_address(servers) or socket.gethostname()


def _tls(settings: Settings) -> ReplicaTls | None:
    if not settings.replica_tls:
        return None
    authorities = settings.replica_tls_ca_file
    certificate, key = settings.replica_tls_certificate_file, settings.replica_tls_key_file
    if authorities is None or certificate is None or key is None:
        raise ConfigurationError(
            "replica_tls needs replica_tls_ca_file, replica_tls_certificate_file and "
            "replica_tls_key_file"
        )
    return tls_between_replicas(authorities=authorities, certificate=certificate, key=key)
