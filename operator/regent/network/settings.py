"""How the controller's connections to brokers behave."""

from __future__ import annotations

import msgspec

from regent.model.cluster import Broker, EndPoint
from regent.network.tls import Tls
from regent.protocol.api_versions import ProtocolVersion
from regent.protocol.control_codec import partitions_in
from regent.protocol.control_requests import ControlRequest
from regent.protocol.metadata_updates import MAX_PARTITIONS
from regent.protocol.sasl import Authenticating


class ChannelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of all channels. Times are in seconds; the defaults are Kafka's where it has one.

    Attributes:
        listener: Name of the listener to connect to. None: brokers are asked for the listener that
            their own controller would use (control plane, else inter-broker).
        tls: For listeners with TLS. It decides about verification and client certificates.
        sasl: For listeners with SASL.
        protocol_version: The inter.broker.protocol.version of brokers that do not report theirs,
            for clusters where the controller may not describe their configuration.
        connect_timeout: Bound for opening a connection, TLS and SASL included
            (controller.socket.timeout.ms).
        response_timeout: Bound for sending a request of up to
            :data:`~regent.protocol.metadata_updates.MAX_PARTITIONS` partitions and receiving its
            answer (request.timeout.ms); a larger request has proportionally longer.
        retry_delay: Pause after a first failure, doubled with each further one; and between two
            looks at the fence.
        max_retry_delay: Upper end of the pause after a failure.
        protocol_version_wait: How long the lowest protocol version waits for brokers that are just
            being connected.
    """

    listener: str | None = None
    tls: Tls | None = None
    sasl: Authenticating | None = None
    protocol_version: ProtocolVersion | None = None
    connect_timeout: float = 30.0
    response_timeout: float = 30.0
    retry_delay: float = 0.1
    max_retry_delay: float = 1.0
    protocol_version_wait: float = 2.0

    def can_use(self, endpoint: EndPoint) -> bool:
        """Whether these settings have what the endpoint's security protocol asks for."""
        protocol = endpoint.security_protocol
        return (self.tls is not None or not protocol.endswith("SSL")) and (
            self.sasl is not None or not protocol.startswith("SASL")
        )

    def chosen(self, broker: Broker) -> EndPoint | None:
        """The configured listener of a broker; None: none is configured, or the broker lacks it,
        as one that is set up otherwise than the others."""
        return None if self.listener is None else broker.endpoint(self.listener)

    def candidates(self, broker: Broker) -> tuple[EndPoint, ...]:
        """Endpoints on which to try to reach a broker, the most promising first.

        That is the configured listener. Without one, or if the broker lacks it, listeners that use
        exactly what is configured come before those that use less. Empty if the broker has none
        that can be used.
        """
        chosen = self.chosen(broker)
        if chosen is not None:
            return (chosen,) if self.can_use(chosen) else ()
        tls = "SSL" if self.tls is not None else "PLAINTEXT"
        natural = tls if self.sasl is None else f"SASL_{tls}"
        usable = [endpoint for endpoint in broker.endpoints if self.can_use(endpoint)]
        return tuple(sorted(usable, key=lambda endpoint: endpoint.security_protocol != natural))

    def pause_after(self, failures_in_a_row: int) -> float:
        """How long to wait before the next attempt."""
        doublings = min(failures_in_a_row - 1, 10)
        return min(self.retry_delay * float(2**doublings), self.max_retry_delay)


def response_timeout(request: ControlRequest, seconds: float) -> float:
    """How long to wait for an answer: ``seconds`` for each part of :data:`MAX_PARTITIONS`.

    Brokers need time in proportion to the partitions of a request. The parts are as large as a
    broker can manage in ``seconds``, and only a first LeaderAndIsr, and an UpdateMetadata that
    removes no partition, are larger.
    """
    return seconds * max(1.0, partitions_in(request) / MAX_PARTITIONS)
