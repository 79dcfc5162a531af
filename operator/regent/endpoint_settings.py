"""How brokers and clients are served, made of the settings of the process."""

from __future__ import annotations

import socket
from typing import Final

from regent.model.cluster import Address
from regent.model.errors import ConfigurationError
from regent.network.server_settings import ServerLimits, ServerSettings
from regent.network.server_tls import TlsFiles
from regent.network.tls import tls_to_brokers
from regent.network.upstream_settings import UpstreamSettings
from regent.settings import Settings

_BACKLOG: Final = 100
_ALL_ADDRESSES: Final = ("", "0.0.0.0", "::")  # noqa: S104 - not listened on here
_OF_THIS_MACHINE_ONLY: Final = ("localhost", "localhost.localdomain", "localhost6")


def advertised_address(settings: Settings, port: int) -> Address:
    """Where brokers and clients reach the endpoint.

    Args:
        settings: Those of the process.
        port: Where it listens.

    Raises:
        ConfigurationError: There is no address that others can use.
    """
    host = settings.endpoint_advertised_host or settings.endpoint_host
    if host in _ALL_ADDRESSES and settings.endpoint_advertised_host is None:
        host = socket.getfqdn()
    if host in (*_ALL_ADDRESSES, *_OF_THIS_MACHINE_ONLY):
        raise ConfigurationError(
            f"brokers and clients cannot reach {host or 'an empty name'!r} from elsewhere: set "
            "endpoint_advertised_host to a name or an address of this machine"
        )
    return Address(host, settings.endpoint_advertised_port or port)


def listening_socket(settings: ServerSettings) -> socket.socket:
    """A socket that accepts connections already.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(
            (str(address[0]), int(address[1])), family=family, backlog=_BACKLOG
        )
    except OSError as error:  # socket.gaierror included
        raise ConfigurationError(
            f"cannot listen on {settings.host}:{settings.port}: {error}; choose another "
            "endpoint_host or endpoint_port"
        ) from error


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
        listener=settings.endpoint_listener or ServerSettings().listener,
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
