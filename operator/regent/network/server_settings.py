"""How the server of Kafka's protocol behaves."""

from __future__ import annotations

import msgspec

from regent.network.server_tls import TlsFiles


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one peer, and all of them together, may take. Times are in seconds.

    An address stands for itself, or for its network of 64 bits with IPv6.

    Attributes:
        connections: Open connections. One more closes another: of the address that has most of
            them, the one that has been idle longest. So a new peer always gets its turn.
        connections_per_address: Of one address; one more closes the one of that address that has
            been idle longest.
        connection_rate: New connections of one address in a second; twice that at once.
        frame_bytes: Size of a request.
        unauthenticated_frame_bytes: The same before SASL has ended (Kafka's
            sasl.server.max.receive.size).
        buffered_bytes: Of all requests that have not been processed yet. If it is exceeded, of the
            address that holds most the connection that does is closed.
        idle_s: Time without a request (connections.max.idle.ms).
        frame_s: Time from the first byte of a request to its last, and for a peer to take an
            answer.
        authentication_s: Time from the connection to the end of TLS and SASL.
        requests_in_progress: Requests of all connections that are processed at a time; further
            ones wait.
        request_s: Time to answer a request.
        request_rate: Requests of one address in a second, twice that at once; further ones wait.
            A large one counts once more for each kilobyte.
        failed_authentication_delay_s: Time until a failed authentication is answered
            (connection.failed.authentication.delay.ms).
        stop_s: Time that requests in progress have to be answered when the server stops.
    """

    connections: int = 5_000
    connections_per_address: int = 500
    connection_rate: float = 100.0
    frame_bytes: int = 8 * 1024 * 1024
    unauthenticated_frame_bytes: int = 512 * 1024
    buffered_bytes: int = 64 * 1024 * 1024
    idle_s: float = 600.0
    frame_s: float = 30.0
    authentication_s: float = 30.0
    requests_in_progress: int = 1_000
    request_s: float = 120.0
    request_rate: float = 2_000.0
    failed_authentication_delay_s: float = 0.1
    stop_s: float = 1.0


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a server.

    Attributes:
        host: Address to listen on.
        port: 0 takes any free one.
        listener: Name of the listener, for those who answer requests.
        tls: Files of TLS; None for none.
        sasl_mechanisms: Those of which a client has to use one; none for no SASL.
        limits: What peers may take.
    """

    host: str = "127.0.0.1"
    port: int = 0
    listener: str = "CONTROLLER"
    tls: TlsFiles | None = None
    sasl_mechanisms: tuple[str, ...] = ()
    limits: ServerLimits = ServerLimits()

    @property
    def security_protocol(self) -> str:
        """Kafka's name of what protects the connections."""
        name = "PLAINTEXT" if self.tls is None else "SSL"
        return f"SASL_{name}" if self.sasl_mechanisms else name
