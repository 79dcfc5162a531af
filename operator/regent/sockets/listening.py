"""Sockets on which this process is reached."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

from regent.model.errors import ConfigurationError

BACKLOG: Final = 100
"""Connections that may wait to be accepted."""

_ALL_IPV6: Final = "::"


def listening_socket(
    host: str | None, port: int, *, setting: str, is_list: bool = False
) -> socket.socket:
    """A socket that accepts connections already.

    Args:
        host: Name or address to listen on; None or empty: all addresses of the machine. For
            ``::``, the IPv6 address of all interfaces, IPv4 is taken as well if the machine can.
        port: 0 takes any free one.
        setting: The settings are called ``<setting>_host`` and ``<setting>_port``.
        is_list: They are one, called ``<setting>``, that has several addresses.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """
    try:
        return _all_addresses(port) if not host else _one_address(host, port)
    except OSError as error:  # socket.gaierror included
        settings = f"address in {setting}" if is_list else f"{setting}_host or {setting}_port"
        raise ConfigurationError(
            f"cannot listen on {host or 'all addresses'}:{port}: {error}; choose another {settings}"
        ) from error


def _all_addresses(port: int) -> socket.socket:
    with contextlib.suppress(OSError):  # a machine whose IPv6 is switched off
        if socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
            )
    return socket.create_server(("", port), backlog=BACKLOG)


def _one_address(host: str, port: int) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # A name such as localhost has addresses of both families; clients try IPv4 in any case.
    family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    return socket.create_server(
        (str(address[0]), int(address[1])),
        family=family,
        backlog=BACKLOG,
        dualstack_ipv6=host == _ALL_IPV6 and socket.has_dualstack_ipv6(),
    )
