"""Who counts as a broker: whose requests about ISRs, shutdowns and producer ids are believed.

With an authorizer Kafka asks for the right ClusterAction on the cluster. Who has authenticated is
believed if its principal is a super user, or if an access control list grants it that right. Who
has not (PLAINTEXT, or TLS without a certificate) is judged by the setting: by default it must come
from the address of a registered broker.
"""

from __future__ import annotations

import asyncio
import enum
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final, NamedTuple

from regent.controller.view import ClusterView
from regent.endpoint.acl_commands import grant_command
from regent.model.acls import CLUSTER_ACTION
from regent.protocol.serving import ANONYMOUS, Peer, Refusal, Refuse, ignore_refusal

_FRESH_S: Final = 30.0
"""For so long the addresses of a host are not looked up again."""

Resolve = Callable[[str], Awaitable[Collection[str]]]
"""Addresses of a host; none if there is no such host. OSError: nobody can say so now."""

_NO_SUCH_HOST: Final = (socket.EAI_NONAME, socket.EAI_NODATA)
"""What name servers have answered; every other failure is one for now."""


class TrustedAsBrokers(enum.StrEnum):
    """Whom to believe without authentication."""

    REGISTERED_BROKERS = "registered-brokers"
    EVERYBODY = "everybody"
    NOBODY = "nobody"


class _Resolved(NamedTuple):
    """Addresses of a host as of a time; ``is_old``: name servers did not answer then."""

    addresses: Collection[str]
    at: float
    is_old: bool = False


class BrokerTrust:
    """Judges peers. Belongs into the controller's loop.

    Args:
        trusted: Whom to believe without authentication.
        super_users: Principals that may ask everything.
        view: The newest view of the cluster.
        resolve: Looks the hosts of brokers up.
        is_granted: Whether an access control list grants a peer ClusterAction.
        refuse: Is informed of who is refused.
    """

    def __init__(
        self,
        *,
        trusted: TrustedAsBrokers,
        super_users: Collection[str],
        view: Callable[[], ClusterView],
        resolve: Resolve | None = None,
        is_granted: Callable[[Peer], Awaitable[bool]] | None = None,
        refuse: Refuse = ignore_refusal,
    ) -> None:
        self._trusted = trusted
        self._super_users = frozenset(super_users)
        self._view = view
        self._resolve = resolve or resolve_host
        self._is_granted = is_granted
        self._resolved: dict[str, _Resolved] = {}
        self._refuse = refuse
        self._lookups: dict[str, asyncio.Future[Collection[str]]] = {}

    async def is_broker(self, peer: Peer) -> bool | None:
        """Whether to believe a peer that it is a broker.

        None: its address would tell, and no brokers are known. So it is where this process is not
        the controller, or is about to become it.
        """
        knows_brokers = bool(self._view().brokers)
        believed = await self._is_believed(peer)
        if not believed and self._is_granted is not None:
            believed = await self._is_granted(peer)
        if believed:
            return True
        if self._is_judged_by_address(peer) and not knows_brokers:
            return None
        self._refuse(_refusal(peer, unanswered=self._unanswered(peer)))
        return False

    async def _is_believed(self, peer: Peer) -> bool:
        if peer.principal in self._super_users:
            return True
        if not self._is_judged_by_address(peer):
            return peer.principal == ANONYMOUS and self._trusted is TrustedAsBrokers.EVERYBODY
        return await self._comes_from(peer.address, self._hosts())

    def _hosts(self) -> Collection[str]:
        brokers = self._view().brokers.values()
        return dict.fromkeys(e.host for broker in brokers for e in broker.endpoints)

    def _unanswered(self, peer: Peer) -> str | None:
        """A host of brokers for which name servers do not answer, if that may be why a peer is not
        known."""
        if not self._is_judged_by_address(peer):
            return None
        hosts = sorted(self._hosts())
        return next((h for h in hosts if h in self._resolved and self._resolved[h].is_old), None)

    def _is_judged_by_address(self, peer: Peer) -> bool:
        return peer.principal == ANONYMOUS and self._trusted is TrustedAsBrokers.REGISTERED_BROKERS

    async def _comes_from(self, address: str, hosts: Iterable[str]) -> bool:
        known = {host: self._resolved[host] for host in hosts if host in self._resolved}
        if any(address in resolved.addresses for resolved in known.values()):
            return True
        now = time.monotonic()
        stale = [h for h in hosts if h not in known or now - known[h].at > _FRESH_S]
        # Some names may take half a minute: no broker waits for those of others.
        for lookup in asyncio.as_completed(map(self._look_up, stale)):
            if address in await lookup:
                return True
        return False

    def _look_up(self, host: str) -> asyncio.Future[Collection[str]]:
        """Addresses of a host. Who asks meanwhile shares the answer: each lookup takes a thread."""
        lookup = self._lookups.get(host)
        if lookup is None:
            lookup = self._lookups[host] = asyncio.ensure_future(self._newest(host))
            lookup.add_done_callback(lambda _: self._lookups.pop(host))
        return lookup

    async def _newest(self, host: str) -> Collection[str]:
        """Addresses of a host; while name servers do not answer, those that it had before."""
        try:
            addresses = await self._resolve(host)
            resolved = _Resolved(addresses, time.monotonic())
        except OSError:
            known = self._resolved.get(host)
            addresses = () if known is None else known.addresses
            resolved = _Resolved(addresses, time.monotonic(), is_old=True)
        self._resolved[host] = resolved
        return addresses


def _refusal(peer: Peer, *, unanswered: str | None) -> Refusal:
    reason = "ClusterAction on Cluster kafka-cluster is not granted: it is not known as a broker"
    remedy = (
        "endpoint_trusted_as_brokers says who is trusted without authentication"
        if peer.principal == ANONYMOUS
        else f"{grant_command(peer.principal, CLUSTER_ACTION)}, or add it to endpoint_super_users"
    )
    if unanswered is not None:
        reason += f", and name servers do not answer for the broker's host {unanswered}"
        remedy = f"if it is a broker, have its host's name resolved here; else {remedy}"
    return Refusal(
        kind="authorization",
        principal=peer.principal,
        address=peer.address,
        listener=peer.listener,
        reason=reason,
        remedy=remedy,
    )


async def resolve_host(host: str) -> Collection[str]:
    """Addresses of a host; none if there is no such host, or that is no name of one.

    Raises:
        OSError: If name servers do not answer.
    """
    try:
        answers = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError:
        return ()
    except socket.gaierror as error:
        if error.errno in _NO_SUCH_HOST:
            return ()
        raise
    return frozenset(str(address[0]) for *_, address in answers)
