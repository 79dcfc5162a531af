"""The address of this machine by which others that use the same servers can reach it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence

from regent.model.cluster import Address


def own_address(servers: Sequence[Address]) -> str | None:
    """The address from which this machine reaches one of the servers: in a pod the pod's.

    Nothing is sent: a datagram socket that is connected has a route, and so an address. Resolving
    a name may take a while.

    Returns:
        None if no server has an address to which there is a route.
    """
    for server in servers:
        with contextlib.suppress(OSError):
            for family, kind, protocol, _, address in socket.getaddrinfo(
                server.host, server.port, type=socket.SOCK_DGRAM
            ):
                with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as probe:
                    probe.connect(address)
                    return str(probe.getsockname()[0])
    return None
