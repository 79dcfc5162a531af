"""How requests are passed on to brokers."""

from __future__ import annotations

import msgspec

from regent.network.tls import Tls


class UpstreamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the connections to brokers that belong to connections of clients.

    Times are in seconds.

    Attributes:
        listeners: Names of the brokers' listeners that clients of this server may mean; none: any.
            Requests go to the only one of them with the security protocol of the server.
        further_listeners: Names of those that the server serves at ports of their own. Who has
            connected to one means it, and nobody else does.
        tls: For listeners with TLS. It must have no certificate of ours: who shows it would be us,
            not the client.
        client_id: Of the requests by which such a connection authenticates.
        connections: How many there are at most. For one more another is closed: of the address that
            has most of them, the one that has been idle longest.
        connect_s: Time to open one, with TLS and SASL, until another broker is tried.
        idle_s: When one without requests is closed; the client's is kept.
    """

    listeners: tuple[str, ...] = ()
    further_listeners: tuple[str, ...] = ()
    tls: Tls | None = None
    client_id: str = "regent"
    connections: int = 500
    connect_s: float = 5.0
    idle_s: float = 60.0
