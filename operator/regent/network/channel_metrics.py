"""Counters of a channel to a broker."""

from __future__ import annotations

import msgspec


class ChannelMetrics(msgspec.Struct):
    """Counters of one channel since it was opened.

    Attributes:
        queued: Partitions that wait, once for each kind of request; a list of brokers and the
            request in flight count one each. Now.
        sent: Requests written to the broker, repeated and stopped ones included.
        answered: Requests that the broker answered.
        failures: Failed attempts to connect or to send.
    """

    queued: int = 0
    sent: int = 0
    answered: int = 0
    failures: int = 0
