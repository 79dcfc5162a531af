"""Answers requests: who may ask is checked, then the handler of the API is called."""

from __future__ import annotations

import dataclasses
import datetime
import logging
from collections.abc import Iterable
from typing import Any, Final

from regent.endpoint import (
    allocate_producer_ids,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    control_requests,
    controlled_shutdown,
    create_partitions,
    create_topics,
    delete_topics,
    describe_log_dirs,
    elect_leaders,
    list_groups,
    list_partition_reassignments,
    list_transactions,
    node_configs,
    update_features,
)
from regent.endpoint.authorization import AclsUnavailableError, Authorizer, PeerAccess
from regent.endpoint.broker_trust import BrokerTrust
from regent.endpoint.handling import AdminHandler, Handler, MutationHandler
from regent.endpoint.quotas import MutationQuotas, QuotasUnavailableError
from regent.protocol.error_codes import CLUSTER_AUTHORIZATION_FAILED, NOT_CONTROLLER
from regent.protocol.framing import RequestHeader
from regent.protocol.served_apis import Api
from regent.protocol.server_codec import Request
from regent.protocol.serving import READ, Admission, Close, PassOn, Peer, Throttled
from regent.runtime.ports import ControllerRequests

logger = logging.getLogger(__name__)

AnyHandler = Handler | AdminHandler | MutationHandler

HANDLERS: Final[tuple[AnyHandler, ...]] = (
    controlled_shutdown.HANDLER,
    alter_partition.HANDLER,
    allocate_producer_ids.HANDLER,
    create_topics.HANDLER,
    delete_topics.HANDLER,
    create_partitions.HANDLER,
    elect_leaders.HANDLER,
    alter_partition_reassignments.HANDLER,
    list_partition_reassignments.HANDLER,
    alter_user_scram_credentials.HANDLER,
    update_features.HANDLER,
    control_requests.LEADER_AND_ISR_HANDLER,
    control_requests.STOP_REPLICA_HANDLER,
    control_requests.UPDATE_METADATA_HANDLER,
)
"""What is asked of the controller."""

NODE_HANDLERS: Final = (
    list_groups.HANDLER,
    list_transactions.HANDLER,
    describe_log_dirs.HANDLER,
    alter_replica_log_dirs.HANDLER,
    node_configs.DESCRIBE_HANDLER,
    node_configs.ALTER_HANDLER,
    node_configs.INCREMENTAL_HANDLER,
)
"""What clients ask each node about itself. Only of use beside what is passed on to brokers."""


def served_apis(handlers: Iterable[AnyHandler] = HANDLERS) -> tuple[Api, ...]:
    """What the dispatcher answers."""
    return tuple(handler.api for handler in handlers)


class EndpointDispatcher:
    """Implements :class:`~regent.protocol.serving.Dispatcher`; :meth:`admit` is its
    :class:`~regent.protocol.serving.Admit`.

    Args:
        controller: Whom to ask.
        trust: Who counts as a broker.
        authorizer: Who may ask what else.
        quotas: How many partitions who may create and delete.
        handlers: What is answered.
    """

    def __init__(
        self,
        controller: ControllerRequests,
        trust: BrokerTrust,
        authorizer: Authorizer,
        quotas: MutationQuotas,
        handlers: Iterable[AnyHandler] = HANDLERS,
    ) -> None:
        self._controller = controller
        self._trust = trust
        self._authorizer = authorizer
        self._quotas = quotas
        self._handlers = {handler.api.key: handler for handler in handlers}

    async def admit(self, header: RequestHeader, peer: Peer, /) -> Admission:
        """What only brokers may ask is not read for anybody else. In an unknown version it is left
        to the reader, who refuses that."""
        handler = self._handlers.get(header.api_key)
        if (
            not isinstance(handler, Handler)
            or not handler.is_for_brokers
            or header.api_version not in handler.api.requests
        ):
            return READ
        try:
            error = await self._error_of_stranger(peer)
        except AclsUnavailableError as unavailable:
            return Admission(answer=_not_answered(unavailable))
        if error is None:
            return Admission(is_broker=True)
        return Admission(answer=handler.refusal(Request(header, None), error))

    async def __call__(self, request: Request, peer: Peer, /) -> Any | Close | PassOn | Throttled:
        handler = self._handlers[request.header.api_key]
        try:
            if isinstance(handler, MutationHandler):
                return await self._mutate(handler, request, peer)
            if isinstance(handler, AdminHandler):
                access = PeerAccess(self._authorizer, peer)
                return await handler.answer(request, self._controller, access)
            error = await self._error_of_stranger(peer) if handler.is_for_brokers else None
            if error is not None:
                return handler.refusal(request, error)
        except (AclsUnavailableError, QuotasUnavailableError) as unavailable:
            return _not_answered(unavailable)
        return await handler.answer(request, self._controller)

    async def _error_of_stranger(self, peer: Peer) -> int | None:
        """The error for a peer that is not believed to be a broker; None: it is.

        A broker that is referred elsewhere looks there; one that is refused for want of a right
        asks here for ever.
        """
        is_broker = peer.is_broker or await self._trust.is_broker(peer)
        if is_broker:
            return None
        is_judged = is_broker is not None and self._controller.view.is_active
        return CLUSTER_AUTHORIZATION_FAILED if is_judged else NOT_CONTROLLER

    async def _mutate(
        self, handler: MutationHandler, request: Request, peer: Peer
    ) -> Any | Throttled:
        quota = self._quotas.without_limit()
        if self._controller.view.is_active:
            quota = await self._quotas.quota_of(
                peer.principal,
                request.header.client_id or "",
                is_strict=request.header.api_version >= handler.strict_since,
            )
        access = PeerAccess(self._authorizer, peer)
        entity = await handler.answer(request, self._controller, access, quota)
        seconds = quota.throttle_s
        return entity if seconds == 0 else _throttled(entity, seconds)


def _not_answered(why: Exception) -> Close:
    logger.warning("Request not answered", extra={"reason": str(why)})
    return Close.CLOSE


def _throttled(entity: Any, seconds: float) -> Throttled:
    """The first versions of some APIs do not say how long the client has to wait."""
    if hasattr(entity, "throttle_time"):
        milliseconds = max(round(seconds * 1000), 1)
        throttle_time = datetime.timedelta(milliseconds=milliseconds)
        entity = dataclasses.replace(entity, throttle_time=throttle_time)
    return Throttled(entity, seconds)
