"""Requests of brokers and administrators to a live controller, without a socket between them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kio.schema.errors import ErrorCode

from regent.endpoint.acl_cache import AclCache
from regent.endpoint.authorization import Authorizer, AuthorizerKind
from regent.endpoint.broker_trust import BrokerTrust, TrustedAsBrokers
from regent.endpoint.dispatcher import EndpointDispatcher, served_apis
from regent.endpoint.quotas import MutationQuotas
from regent.model.acls import AclRules
from regent.protocol.entity_building import build_entity
from regent.protocol.framing import RequestHeader
from regent.protocol.served_apis import Api, table_of
from regent.protocol.server_codec import Request, ServerCodec
from regent.protocol.serving import ANONYMOUS, Close, Peer, Throttled
from regent.runtime.ports import ControllerRequests, ZooKeeperPort

CODEC = ServerCodec(table_of(served_apis()))


def peer_of(principal: str = ANONYMOUS, *, address: str = "127.0.0.1") -> Peer:
    return Peer(
        address=address,
        port=40_000,
        principal=principal,
        listener="CONTROLLER",
        security_protocol="PLAINTEXT",
    )


def new_topic(name: str, **fields: Any) -> dict[str, Any]:
    """A topic of CreateTopics with one partition on one broker, unless fields say otherwise."""
    number = -1 if fields.get("assignments") else 1
    numbers = {"num_partitions": number, "replication_factor": number}
    return {"name": name, **numbers, "assignments": (), "configs": (), **fields}


def plain(value: Any) -> Any:
    """An entity as mappings, tuples and numbers."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.value if isinstance(value, ErrorCode) else value


class LocalEndpoint:
    """Implements :class:`~regent.runtime.ports.EndpointPort` for whoever calls :meth:`ask`.

    Pass :meth:`serve` to the controller.
    """

    def __init__(
        self,
        *,
        kind: AuthorizerKind = AuthorizerKind.NONE,
        rules: AclRules | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kind = kind
        self._rules = rules or AclRules()
        self._clock = clock
        self.muted_s: list[float] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dispatcher: EndpointDispatcher | None = None
        self._controller: ControllerRequests | None = None

    def serve(self, controller: ControllerRequests, zookeeper: ZooKeeperPort) -> LocalEndpoint:
        authorizer = Authorizer(
            kind=self._kind,
            rules=self._rules,
            cache=AclCache(zookeeper),
            view=lambda: controller.view,
        )
        trust = BrokerTrust(
            trusted=TrustedAsBrokers.EVERYBODY,
            super_users=self._rules.super_users,
            view=lambda: controller.view,
            is_granted=authorizer.is_cluster_action_granted,
        )
        self._controller = controller
        self._dispatcher = EndpointDispatcher(
            controller, trust, authorizer, MutationQuotas(zookeeper, clock=self._clock)
        )
        return self

    def problem(self) -> str | None:
        return None

    def refused_peers(self) -> Sequence[Mapping[str, str]]:
        return ()

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def stop(self) -> None:
        self._loop = None

    def submit(
        self, api: Api, version: int, fields: Mapping[str, Any], *, peer: Peer | None = None
    ) -> concurrent.futures.Future[Any]:
        """Ask; the answer comes as mappings, or as :class:`Close`. It has been encoded before."""
        header = RequestHeader(api.key, version, 1, "test")
        request = Request(header, build_entity(api.requests[version], fields))
        return self.submit_request(request, peer=peer)

    def submit_request(
        self, request: Request, *, peer: Peer | None = None
    ) -> concurrent.futures.Future[Any]:
        """The same for a request that was decoded."""
        assert self._loop is not None, "the controller does not run"
        return asyncio.run_coroutine_threadsafe(
            self._answer(request, peer or peer_of()), self._loop
        )

    def ask(
        self, api: Api, version: int, fields: Mapping[str, Any], *, peer: Peer | None = None
    ) -> Any:
        """The answer."""
        return self.submit(api, version, fields, peer=peer).result(timeout=60)

    def lagging_brokers(self) -> set[int]:
        """Brokers to which requests are not passed on."""
        assert self._loop is not None
        assert self._controller is not None

        async def ask(controller: ControllerRequests) -> set[int]:
            return set(controller.lagging_brokers())

        return asyncio.run_coroutine_threadsafe(ask(self._controller), self._loop).result(60)

    async def _answer(self, request: Request, peer: Peer) -> Any:
        assert self._dispatcher is not None, "the controller does not serve"
        entity = await self._dispatcher(request, peer)
        if isinstance(entity, Throttled):
            self.muted_s.append(entity.seconds)
            entity = entity.entity
        if isinstance(entity, Close):
            return entity
        CODEC.encode(request.header, entity)
        return plain(entity)
