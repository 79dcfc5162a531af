"""How brokers and clients are served, made of the settings of the process."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Final

from regent.model.cluster import Address
from regent.model.errors import ConfigurationError
from regent.network.server_settings import ServerLimits, ServerSettings
from regent.network.server_tls import TlsFiles
from regent.network.tls import tls_to_brokers
from regent.network.upstream_settings import UpstreamSettings
from regent.settings import Settings
from regent.settings.endpoint import listener_addresses

_ALL_ADDRESSES: Final = ("", "0.0.0.0", "::")  # noqa: S104 - not listened on here
_OF_THIS_MACHINE_ONLY: Final = ("localhost", "localhost.localdomain", "localhost6")


def advertised_address(settings: Settings, port: int) -> Address:
    """Where brokers and clients reach the endpoint, unless their listener has another address.

    Args:
        settings: Those of the process.
        port: Where it listens.

    Raises:
        ConfigurationError: There is no address that others can use.
    """
    host = settings.endpoint_advertised_host or settings.endpoint_host
    if host in _ALL_ADDRESSES and settings.endpoint_advertised_host is None:
        host = socket.getfqdn()
    _refuse_unreachable(host, setting="endpoint_advertised_host")
    return Address(host, settings.endpoint_advertised_port or port)


def further_listeners(settings: Settings) -> Mapping[str, Address]:
    """Where to listen for one listener each, beside the port for all others.

    Raises:
        ConfigurationError: One of them is the listener of that port.
    """
    further = listener_addresses(settings.endpoint_further_listeners)
    first = _listener_of_the_port(settings)
    if first.upper() in further:
        raise ConfigurationError(
            f"endpoint_further_listeners has {first}, which is served at endpoint_port: take it "
            "out, or name another one of the brokers' listeners in endpoint_listener"
        )
    return {
        listener: Address(address.host or settings.endpoint_host, address.port)
        for listener, address in further.items()
    }


def advertised_listeners(
    settings: Settings, *, host: str, ports: Mapping[str, int]
) -> Mapping[str, Address]:
    """Where users of listeners reach the endpoint that have an address of their own.

    Args:
        settings: Those of the process.
        host: What is advertised for the others.
        ports: Where the endpoint listens for one listener each.

    Raises:
        ConfigurationError: There is an address that others cannot use.
    """
    addresses = {listener: Address(host, port) for listener, port in ports.items()}
    for listener, given in listener_addresses(settings.endpoint_advertised_listeners).items():
        if not given.port:
            raise ConfigurationError(
                f"endpoint_advertised_listeners has port 0 for {listener}, where nobody can be "
                "reached: give the port that its users connect to"
            )
        addresses[listener] = Address(given.host or host, given.port)
        _refuse_unreachable(addresses[listener].host, setting="endpoint_advertised_listeners")
    return addresses


def _refuse_unreachable(host: str, *, setting: str) -> None:
    if host in (*_ALL_ADDRESSES, *_OF_THIS_MACHINE_ONLY):
        raise ConfigurationError(
            f"brokers and clients cannot reach {host or 'an empty name'!r} from elsewhere: set "
            f"{setting} to a name or an address of this machine"
        )


def _listener_of_the_port(settings: Settings) -> str:
    return settings.endpoint_listener or ServerSettings().listener


def server_settings(settings: Settings) -> ServerSettings | None:
    """The server's part of the settings; None if brokers and clients are not served.

    Raises:
        ConfigurationError: A setting lacks another one.
    """
    if settings.endpoint_port is None:
        return None
    if "PLAIN" in settings.endpoint_sasl_mechanisms and (
        settings.endpoint_sasl_plain_users_file is None
    ):
        raise ConfigurationError(
            "endpoint_sasl_mechanisms has PLAIN: name its users in endpoint_sasl_plain_users_file"
        )
    return ServerSettings(
        host=settings.endpoint_host,
        port=settings.endpoint_port,
        listener=_listener_of_the_port(settings),
        tls=_tls_files(settings),
        sasl_mechanisms=settings.endpoint_sasl_mechanisms,
        limits=ServerLimits(
            connections=settings.endpoint_max_connections,
            connections_per_address=settings.endpoint_max_connections_per_address,
            connection_rate=settings.endpoint_max_connection_rate,
            frame_bytes=settings.endpoint_max_request_bytes,
            buffered_bytes=settings.endpoint_max_buffered_bytes,
            idle_s=settings.endpoint_idle_timeout_s,
            frame_s=settings.endpoint_request_timeout_s,
            authentication_s=settings.endpoint_request_timeout_s,
            requests_in_progress=settings.endpoint_max_requests_in_progress,
            request_rate=settings.endpoint_max_request_rate,
        ),
    )


def upstream_settings(settings: Settings) -> UpstreamSettings | None:
    """How requests of clients are passed on to brokers; None if they are not.

    Raises:
        ConfigurationError: A file cannot be used.
    """
    if settings.endpoint_port is None or not settings.endpoint_pass_through:
        return None
    return UpstreamSettings(
        listeners=_client_listeners(settings),
        further_listeners=tuple(further_listeners(settings)),
        # Without a certificate of ours: to brokers, requests of clients must not be ours.
        tls=tls_to_brokers(authorities=settings.broker_tls_ca_file)
        if settings.endpoint_tls
        else None,
        client_id=str(settings.controller_id),
        connections=settings.endpoint_max_upstream_connections,
    )


def _client_listeners(settings: Settings) -> tuple[str, ...]:
    named = settings.endpoint_listener
    listeners = settings.endpoint_announced_listeners if named is None else (named,)
    return tuple(map(str.upper, listeners))


def _tls_files(settings: Settings) -> TlsFiles | None:
    if not settings.endpoint_tls:
        return None
    certificate = settings.endpoint_tls_certificate_file
    key = settings.endpoint_tls_key_file
    if certificate is None or key is None:
        raise ConfigurationError(
            "endpoint_tls needs endpoint_tls_certificate_file and endpoint_tls_key_file"
        )
    return TlsFiles(
        certificate=certificate,
        key=key,
        client_authorities=settings.endpoint_tls_client_ca_file,
        client_auth=settings.endpoint_tls_client_auth,
    )
