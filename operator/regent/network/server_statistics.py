"""What the server counts, and why it closes connections."""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

logger = logging.getLogger(__name__)

_LOG_INTERVAL: Final = 30.0
"""Seconds between two log entries about connections closed for the same reason."""


class CloseReason(enum.Enum):
    """Why a connection has been closed. The value is a metric's label."""

    PEER = "closed by the peer"
    STOPPED = "the server stops"
    IDLE = "idle"
    ANSWERED_BY_CLOSE = "not answered"
    SLOW_REQUEST = "slow request"
    SLOW_TO_TAKE_ANSWER = "answer not taken"
    FRAME_SIZE = "frame size"
    MALFORMED = "malformed request"
    UNSUPPORTED = "unsupported request"
    TLS = "TLS"
    AUTHENTICATION = "authentication"
    AUTHENTICATION_TIME = "authentication time"
    TOO_MANY = "too many connections"
    TOO_MANY_OF_ADDRESS = "too many connections of the address"
    CONNECTION_RATE = "connection rate"
    BUFFERED_BYTES = "buffered bytes"
    REQUEST_TIME = "request time"
    FAILED = "failed request"
    UPSTREAM = "no answer of a broker"
    NOT_PASSED_ON = "not passed on"


_USUAL: Final = {
    CloseReason.PEER,
    CloseReason.STOPPED,
    CloseReason.IDLE,
    CloseReason.ANSWERED_BY_CLOSE,
}


_REMEDIES: Final = {
    CloseReason.TOO_MANY: "if these are wanted, raise endpoint_max_connections",
    CloseReason.TOO_MANY_OF_ADDRESS: "if many share the address, as behind NAT, raise "
    "endpoint_max_connections_per_address",
    CloseReason.CONNECTION_RATE: "if many share the address, as behind NAT, raise "
    "endpoint_max_connection_rate",
    CloseReason.BUFFERED_BYTES: "if these are wanted, raise endpoint_max_buffered_bytes",
    CloseReason.FRAME_SIZE: "if the request was a valid one, raise endpoint_max_request_bytes",
}
"""Of limits that somebody may have set too low."""


class ServerStatistics(msgspec.Struct):
    """Counters since the start, written in the server's loop; any thread may read them.

    Attributes:
        connections: Connections that are open now.
        requests_in_progress: Requests that are processed now.
        buffered_bytes: Of requests that have not been processed yet, now.
        accepted: Connections that were accepted.
        closed: Connections that were closed, by reason.
        requests: Requests that were read, by API, or passed on.
        throttled: Requests that had to wait for the rate of their address.
        failed_authentications: Clients that failed to authenticate by TLS or SASL.
        upstream_connections: Connections to brokers that requests are passed on by, now.
        failed_upstream_connections: Those that could not be opened.
    """

    connections: int = 0
    requests_in_progress: int = 0
    buffered_bytes: int = 0
    accepted: int = 0
    closed: dict[CloseReason, int] = msgspec.field(
        default_factory=lambda: dict.fromkeys(CloseReason, 0)
    )
    requests: dict[str, int] = msgspec.field(default_factory=dict)
    throttled: int = 0
    failed_authentications: int = 0
    upstream_connections: int = 0
    failed_upstream_connections: int = 0


def statistics_of(apis: Iterable[str]) -> ServerStatistics:
    """Counters at zero. No key is added later, so that any thread may go through them."""
    return ServerStatistics(requests=dict.fromkeys(apis, 0))


class CloseLog:
    """Logs closed connections: of each reason one in a while, with the number of all since then."""

    def __init__(self) -> None:
        self._last: dict[CloseReason, float] = {}
        self._unlogged = dict.fromkeys(CloseReason, 0)

    def closed(
        self,
        reason: CloseReason,
        *,
        now: float,
        fields: Mapping[str, object],
        defect: Exception | None = None,
    ) -> None:
        """Log or count a closed connection.

        Args:
            fields: Of the log entry.
            defect: Of ours, which is why it was closed.
        """
        if reason in _USUAL:
            logger.debug("connection closed", extra={"reason": reason.value, **fields})
            return
        last = self._last.get(reason)
        if last is not None and now - last < _LOG_INTERVAL:
            self._unlogged[reason] += 1
            return
        self._last[reason] = now
        more, self._unlogged[reason] = self._unlogged[reason], 0
        remedy = _REMEDIES.get(reason)
        if remedy is not None:
            fields = {**fields, "remedy": remedy}
        logger.log(
            logging.WARNING if defect is None else logging.ERROR,
            "connection closed",
            extra={"reason": reason.value, "not_logged_before": more, **fields},
            exc_info=defect,
        )
