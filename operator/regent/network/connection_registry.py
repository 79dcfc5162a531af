"""All connections of a server, and the limits that they share."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from typing import Final, Protocol

from regent.network.server_settings import ServerLimits
from regent.network.server_statistics import CloseReason, ServerStatistics
from regent.network.token_bucket import TokenBuckets

TIME_SHARE: Final = 0.25
"""Of the processor's time, how much of it is spent at most on reading and answering the requests of
one address. Those of brokers are not counted."""

_AUTHENTICATION_S: Final = 2.0
"""For so long a connection that has not authenticated is taken for one that is about to: else of
many that come at once each would close the one before."""


class Limited(Protocol):
    """A connection as the registry sees it.

    Attributes:
        group: Stands for its address, see :func:`~regent.model.peer_address.address_group`.
        is_broker: Whether its last request was that of a broker: these have a rate of their own,
            so that what others at their address ask is not theirs to pay.
        is_busy: Whether a request of it is in progress.
        is_authenticated: Whether TLS and SASL are done.
        last_active: When its last request came, by the loop's clock.
        buffered_bytes: Of requests that have not been processed yet.
    """

    group: str
    is_broker: bool
    is_busy: bool
    is_authenticated: bool
    last_active: float
    buffered_bytes: int

    def end(self, reason: CloseReason, detail: str = "") -> None:
        """Close at once."""
        ...


class ConnectionRegistry:
    """Belongs to the server's loop.

    Args:
        limits: What is enforced here: the number of connections, their rate, buffered bytes.
        statistics: Keeps the present numbers.
    """

    def __init__(self, limits: ServerLimits, statistics: ServerStatistics) -> None:
        self._limits = limits
        self._statistics = statistics
        self._by_group: dict[str, set[Limited]] = {}
        self._held_bytes: dict[str, int] = {}
        self._rate = TokenBuckets(limits.connection_rate)
        self._request_rate = TokenBuckets(limits.request_rate)
        self._broker_request_rate = TokenBuckets(limits.request_rate)
        self._turns: dict[str, dict[tuple[bool, bool], asyncio.Lock]] = {}

    def __iter__(self) -> Iterator[Limited]:
        return iter([each for group in self._by_group.values() for each in group])

    def admit(self, connection: Limited, *, now: float) -> CloseReason | None:
        """Take a new connection in, or say why not. May close another one for it."""
        group = self._by_group.get(connection.group, set())
        if not self._rate.try_take(connection.group, now=now):
            return CloseReason.CONNECTION_RATE
        if len(group) >= self._limits.connections_per_address:
            _evict(group, CloseReason.TOO_MANY_OF_ADDRESS, now=now)
        elif self._statistics.connections >= self._limits.connections:
            _evict(max(self._by_group.values(), key=len), CloseReason.TOO_MANY, now=now)
        self._by_group.setdefault(connection.group, set()).add(connection)
        self._statistics.connections += 1
        return None

    def remove(self, connection: Limited) -> None:
        """Forget a connection, if it is known."""
        if not self._knows(connection):
            return
        self.buffer(connection, 0)
        group = self._by_group[connection.group]
        group.remove(connection)
        if not group:
            del self._by_group[connection.group]
            self._held_bytes.pop(connection.group, None)
            self._turns.pop(connection.group, None)
        self._statistics.connections -= 1

    async def wait_turn(self, connection: Limited, tokens: int) -> None:
        """Wait until the rate of the connection's address allows its next request.

        Those of an address wait in a queue. So what the first of them turns out to cost counts for
        the others, however many wait. Small ones have a queue of their own: a broker that connects
        begins with these, and does not wait for all that is large at its address.
        """
        queue = (connection.is_broker, tokens > 1)
        turns = self._turns.setdefault(connection.group, {})
        rate = self._broker_request_rate if connection.is_broker else self._request_rate
        async with turns.setdefault(queue, asyncio.Lock()):
            now = asyncio.get_running_loop().time()
            delay_s = rate.take(connection.group, tokens, now=now)
            if delay_s > 0:
                self._statistics.throttled += 1
                await asyncio.sleep(delay_s)

    def spent(self, connection: Limited, seconds: float) -> None:
        """A request has taken so much time of the processor: the next ones wait the longer."""
        if not connection.is_broker:
            tokens = seconds * self._limits.request_rate / TIME_SHARE
            now = asyncio.get_running_loop().time()
            self._request_rate.take(connection.group, tokens, now=now)

    def buffer(self, connection: Limited, size: int) -> None:
        """Note what a connection holds. May close one of the address that holds most."""
        if not self._knows(connection):
            return
        group, more = connection.group, size - connection.buffered_bytes
        self._statistics.buffered_bytes += more
        self._held_bytes[group] = self._held_bytes.get(group, 0) + more
        connection.buffered_bytes = size
        if self._statistics.buffered_bytes > self._limits.buffered_bytes:
            self._free_bytes()

    def _knows(self, connection: Limited) -> bool:
        return connection in self._by_group.get(connection.group, ())

    def _free_bytes(self) -> None:
        """Close a connection of the address that holds most: of those that hold their share of it
        or more the one that holds most, a broker's last."""
        most = max(self._held_bytes, key=self._held_bytes.__getitem__)
        group = self._by_group[most]
        share = self._held_bytes[most] / len(group)
        large = [each for each in group if each.buffered_bytes >= share]
        victim = max(large, key=lambda each: (not each.is_broker, each.buffered_bytes))
        victim.end(CloseReason.BUFFERED_BYTES)


def _evict(group: Collection[Limited], reason: CloseReason, *, now: float) -> None:
    """Close a connection of an address: one that has had time for TLS and SASL and has not done
    them, else the one that is idle longest; a broker's after all others that are idle."""

    def worth(each: Limited) -> tuple[bool, bool, bool, float]:
        counts = each.is_authenticated or now - each.last_active < _AUTHENTICATION_S
        return (each.is_busy, each.is_broker, counts, each.last_active)

    min(group, key=worth).end(reason)
