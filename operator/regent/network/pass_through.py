"""Requests that any broker can answer are passed on to one, each client's with its own identity.

A client's connection has a connection to a broker of its own, from its first such request on. Bytes
go through as they are: what a client may do and how fast is up to the broker, as if it were asked
by the client itself.
"""

from __future__ import annotations

import asyncio
import itertools
import operator
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from regent.model.cluster import EndPoint
from regent.model.errors import RegentError
from regent.network.connection import BrokerConnection
from regent.network.server_statistics import ServerStatistics
from regent.network.settings import ChannelSettings
from regent.network.upstream import Upstream, UpstreamError
from regent.network.upstream_settings import UpstreamSettings
from regent.protocol.api_versions import VersionRange
from regent.protocol.connection_setup import AuthenticationError
from regent.protocol.framing import RequestHeader
from regent.protocol.passed_on import PASSED_ON, common_versions
from regent.protocol.primitives import DecodeError
from regent.protocol.sasl import Authenticating
from regent.protocol.served_apis import Api
from regent.protocol.serving import ANONYMOUS, Peer, UpstreamBroker

_READ_AHEAD: Final = 16 * 1024
"""Bytes of an answer that are read before the client has taken what was sent to it."""

_AVOIDED_S: Final = 10.0
"""For so long a broker that could not be reached is the last to be tried."""

_ATTEMPTS: Final = 3
"""Brokers that are tried for one request."""


class NotPassedOnError(RegentError):
    """The client's requests cannot be passed on with its own identity, and with no more rights."""


class PassThrough:
    """What all connections of a server share to pass requests on. Belongs to the server's loop.

    Args:
        settings: How brokers are reached, and how much of it there may be.
        brokers: The live brokers whose versions are known, as of now.
        depends_on_address: Whether a right of this client depends on the address that its requests
            come from: brokers would judge it by ours. Raises :class:`NotPassedOnError` if nobody
            can say.
        lagging: Brokers that might not know what clients have been answered, as of now; a request
            goes to another broker if there is one.

    Attributes:
        settings: The same.
        statistics: Gets the numbers; the server's.
    """

    def __init__(
        self,
        settings: UpstreamSettings,
        *,
        brokers: Callable[[], Sequence[UpstreamBroker]],
        depends_on_address: Callable[[Peer], Awaitable[bool]],
        lagging: Callable[[], Collection[int]] = tuple,
    ) -> None:
        self.settings = settings
        self.statistics = ServerStatistics()
        self._brokers = brokers
        self._depends_on_address = depends_on_address
        self._lagging = lagging
        self._by_group: dict[str, set[Upstream]] = {}
        self._failed_at: dict[int, float] = {}
        self._turn = itertools.count()
        self._sweep: asyncio.TimerHandle | None = None
        self._limits: Sequence[Mapping[int, tuple[int, int]]] = ()
        self._listed: Mapping[int, VersionRange] | None = None

    def listed(self, served: Mapping[int, Api]) -> Mapping[int, VersionRange]:
        """What clients may ask: of the APIs that are passed on what all live brokers understand.

        Args:
            served: What the server answers itself. What it only inspects before it is passed on is
                listed as far as both understand it.

        Raises:
            UpstreamError: If no broker is known. Without its list an answer would be fatal to
                clients, that of a moment later is not.
        """
        limits = [each.versions for each in self._brokers()]
        if not limits:
            raise UpstreamError("no live broker has said yet which versions it understands")
        # Anybody may ask, and in a large cluster it takes a millisecond.
        if self._listed is None or not _are_the_same(self._limits, limits):
            self._limits, self._listed = limits, _listed(served, limits)
        return self._listed

    def problem(self, *, listener: str, security_protocol: str) -> str | None:
        """Why no request of a client can be passed on, though clients see Regent; None: requests
        can, or no broker is known. May be called from any thread.

        Args:
            listener: That of the server's first port.
            security_protocol: That of the server.
        """
        brokers = self._brokers()
        matching = [self._matching(each, listener, security_protocol) for each in brokers]
        if not brokers or any(len(each) == 1 for each in matching):
            return None
        names = sorted({each.listener for some in matching for each in some})
        if names:
            return (
                f"clients of the listeners {', '.join(names)} cannot use Regent: all of these "
                f"listeners have {security_protocol}, and endpoint_port does not tell which one a "
                "client means; give all but one of them a port of its own in "
                "endpoint_further_listeners, or name the listener of the clients in "
                "endpoint_listener"
            )
        wanted = set(self.settings.listeners) - set(self.settings.further_listeners)
        if not wanted:
            return None  # each listener has a port of its own
        return (
            f"clients cannot use Regent at endpoint_port: no broker has a listener "
            f"{' or '.join(sorted(wanted))} with {security_protocol}; correct endpoint_listener or "
            "endpoint_announced_listeners"
        )

    def upstream(self, peer: Peer, proved: Authenticating | None, *, group: str) -> Upstream:
        """A client's part.

        Args:
            proved: With what it has authenticated by SASL.
            group: Stands for its address, see :func:`~regent.model.peer_address.address_group`.
        """
        return Upstream(self, peer, proved, group=group)

    def upstreams(self) -> Sequence[Upstream]:
        """Those that are counted."""
        return [each for group in self._by_group.values() for each in group]

    def close(self) -> None:
        """Close all connections to brokers."""
        for each in self.upstreams():
            each.close()
        if self._sweep is not None:
            self._sweep.cancel()

    # For the upstreams

    async def check_identity(self, peer: Peer) -> None:
        """Whether a client's requests can be passed on with its own identity and its own rights.

        Raises:
            NotPassedOnError: If not.
        """
        if peer.principal != ANONYMOUS and not peer.security_protocol.startswith("SASL"):
            raise NotPassedOnError(
                f"{peer.principal} is known by a certificate, which cannot be shown to a broker: "
                "let clients connect to brokers, or use SASL"
            )
        if await self._depends_on_address(peer):
            raise NotPassedOnError(
                f"an ACL of {peer.principal} names a host: brokers would judge its requests by "
                "the address of Regent"
            )

    def is_current(self, broker: UpstreamBroker, header: RequestHeader) -> bool:
        """Whether a broker still lives its same life, understands a request and does not lag."""
        broker_id = broker.broker.broker_id
        return broker_id not in self._lagging() and any(
            each.broker.epoch == broker.broker.epoch and _understands(each, header)
            for each in self._brokers()
            if each.broker.broker_id == broker_id
        )

    async def open(
        self, upstream: Upstream, header: RequestHeader
    ) -> tuple[UpstreamBroker, BrokerConnection]:
        """Connect to a broker that can answer a request, with the client's identity.

        Raises:
            NotPassedOnError: If it is not known which listener the client means.
            UpstreamError: If there is no such broker, or none can be reached.
        """
        peer, proved = upstream.peer, upstream.proved
        candidates = [each for each in self._brokers() if _understands(each, header)]
        if not candidates:
            raise UpstreamError(
                f"no live broker understands version {header.api_version} of API {header.api_key}"
            )
        settings = ChannelSettings(
            tls=self.settings.tls,
            sasl=proved,
            connect_timeout=self.settings.connect_s,
        )
        error: Exception | None = None
        for broker, endpoint in self._with_listener(self._in_order(candidates), peer)[:_ATTEMPTS]:
            try:
                connection = await BrokerConnection.open(
                    endpoint,
                    client_id=self.settings.client_id,
                    settings=settings,
                    read_ahead=_READ_AHEAD,
                )
            except AuthenticationError as refused:
                # Another broker would say the same.
                self.statistics.failed_upstream_connections += 1
                broker_id = broker.broker.broker_id
                raise UpstreamError(f"refused by broker {broker_id}: {refused}") from refused
            except (OSError, TimeoutError, DecodeError) as failure:
                self._failed_at[broker.broker.broker_id] = _now()
                self.statistics.failed_upstream_connections += 1
                error = failure
            else:
                self._failed_at.pop(broker.broker.broker_id, None)
                return broker, connection
        raise UpstreamError(f"no broker can be reached: {type(error).__name__}: {error}")

    def admit(self, upstream: Upstream) -> None:
        """Count a connection to a broker; may close another one for it."""
        if self.statistics.upstream_connections >= self.settings.connections:
            self._evict()
        self._by_group.setdefault(upstream.group, set()).add(upstream)
        self.statistics.upstream_connections += 1
        if self._sweep is None:
            self._sweep_later()

    def forget(self, upstream: Upstream) -> None:
        """Its connection is closed."""
        group = self._by_group.get(upstream.group, set())
        if upstream in group:
            group.remove(upstream)
            self.statistics.upstream_connections -= 1
            if not group:
                del self._by_group[upstream.group]

    def _in_order(self, candidates: Iterable[UpstreamBroker]) -> list[UpstreamBroker]:
        """The best first: not lagging, not about to stop, not out of reach lately, with least
        connections."""
        used: dict[int, int] = {}
        for each in self.upstreams():
            if each.broker is not None:
                broker_id = each.broker.broker.broker_id
                used[broker_id] = used.get(broker_id, 0) + 1
        now, turn, lagging = _now(), next(self._turn), self._lagging()
        ordered = sorted(candidates, key=lambda each: each.broker.broker_id)
        ordered = ordered[turn % len(ordered) :] + ordered[: turn % len(ordered)]
        return sorted(
            ordered,
            key=lambda each: (
                each.broker.broker_id in lagging,
                each.is_stopping,
                now - self._failed_at.get(each.broker.broker_id, -_AVOIDED_S) < _AVOIDED_S,
                used.get(each.broker.broker_id, 0),
            ),
        )

    def _with_listener(
        self, brokers: Sequence[UpstreamBroker], peer: Peer
    ) -> Sequence[tuple[UpstreamBroker, EndPoint]]:
        """Brokers with the listener that the client means: they answer with addresses of it."""
        found = []
        for broker in brokers:
            matching = self._matching(broker, peer.listener, peer.security_protocol)
            if len(matching) == 1:
                found.append((broker, matching[0]))
        if not found:
            raise NotPassedOnError(
                f"no broker has exactly one listener with {peer.security_protocol} that clients "
                "here may mean: name theirs in endpoint_listener, or give each a port in "
                "endpoint_further_listeners"
            )
        return found

    def _matching(
        self, broker: UpstreamBroker, listener: str, security_protocol: str
    ) -> list[EndPoint]:
        """Listeners of a broker that a client may mean, by the port that it has connected to."""
        further = self.settings.further_listeners
        is_further = listener in further
        wanted = (listener,) if is_further else self.settings.listeners
        return [
            each
            for each in broker.broker.endpoints
            if each.security_protocol == security_protocol
            and (not wanted or each.listener in wanted)
            and (is_further or each.listener not in further)
        ]

    def _evict(self) -> None:
        group = max(self._by_group.values(), key=len)
        min(group, key=lambda each: (each.is_busy, each.last_active)).close()

    def _sweep_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(self.settings.idle_s / 2, self._close_idle)

    def _close_idle(self) -> None:
        self._sweep = None
        now = _now()
        for each in self.upstreams():
            is_idle = each.is_lost or now - each.last_active >= self.settings.idle_s
            if is_idle and not each.is_busy:
                each.close()
        if self._by_group:
            self._sweep_later()


def _listed(
    served: Mapping[int, Api], limits: Sequence[Mapping[int, tuple[int, int]]]
) -> Mapping[int, VersionRange]:
    ours = {key: VersionRange(api.lowest, api.highest) for key, api in served.items()}
    inspected = {key: ours.pop(key) for key in PASSED_ON if key in ours}
    passed_on = common_versions(limits, PASSED_ON.keys() - inspected.keys())
    both = common_versions([*limits, inspected], inspected)
    return dict(sorted({**passed_on, **both, **ours}.items()))


def _are_the_same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


def _understands(broker: UpstreamBroker, header: RequestHeader) -> bool:
    lowest, highest = broker.versions.get(header.api_key, (0, -1))
    return lowest <= header.api_version <= highest


def _now() -> float:
    return asyncio.get_running_loop().time()
