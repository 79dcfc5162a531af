"""Who may ask what: Kafka's access control lists as they stand in ZooKeeper.

Brokers learn of changes by watches. Here what has changed is asked for whenever it is needed: the
notifications are listed, which takes one round trip to ZooKeeper. So an administrator's request is
judged by what ZooKeeper says at that moment.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from regent.controller.view import ClusterView
from regent.endpoint.acl_cache import AclCache, AclsUnavailableError
from regent.endpoint.acl_commands import MAX_NAME, grant_command
from regent.endpoint.log_pauses import LogPauses
from regent.model.acls import (
    CLUSTER_ACTION,
    CLUSTER_NAME,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclRules,
    Action,
    ResourceType,
    is_authorized,
    java_host_address,
)
from regent.model.topic_config import AUTHORIZER, BrokerFacts
from regent.protocol.serving import Peer, Refusal, Refuse, ignore_refusal

logger = logging.getLogger(__name__)

__all__ = ["AclsUnavailableError", "Authorizer", "AuthorizerKind", "PeerAccess"]

ACL_AUTHORIZERS: Final = frozenset(
    {"kafka.security.auth.SimpleAclAuthorizer", "kafka.security.authorizer.AclAuthorizer"}
)
"""Kafka's own authorizers of ZooKeeper mode: both decide by the same znodes in the same way."""

_ADDRESSES_FRESH_S: Final = 5.0
"""For so long it is not looked up again whether entries name hosts: every connection asks."""

_SUPER_USERS_ONLY: Final = (
    "the brokers' authorizer is not Kafka's, so super users only may: see endpoint_super_users and "
    "endpoint_authorizer"
)


class AuthorizerKind(enum.StrEnum):
    """What decides who may ask what of the endpoint."""

    DETECT = "detect"
    """As the brokers do, as far as they say what that is; in doubt nobody may."""
    KAFKA_ACLS = "kafka-acls"
    """Kafka's access control lists in ZooKeeper."""
    NONE = "none"
    """Everybody may ask everything, as in Kafka without an authorizer."""


class Authorizer:
    """Decides for peers. Belongs into the controller's loop.

    Args:
        kind: What decides.
        rules: Super users, and what becomes of resources without entries.
        cache: The entries.
        view: The newest view: what the brokers say about their authorizer.
        refuse: Is informed of who is refused.
    """

    def __init__(
        self,
        *,
        kind: AuthorizerKind,
        rules: AclRules,
        cache: AclCache,
        view: Callable[[], ClusterView],
        refuse: Refuse = ignore_refusal,
    ) -> None:
        self._kind = kind
        self._refuse = refuse
        self._rules = rules
        self._cache = cache
        self._view = view
        self._pauses = LogPauses()

    async def allowed(self, peer: Peer, actions: Sequence[Action]) -> list[bool]:
        """Whether a peer may do each of these things now.

        Raises:
            AclsUnavailableError: ZooKeeper does not say.
        """
        return await self._decide(peer, actions, max_age_s=0.0)

    async def is_cluster_action_granted(self, peer: Peer) -> bool:
        """Whether an entry lets a peer ask what only brokers may ask.

        Without access control lists none does. What was granted a second ago still is: leaders ask
        often.
        """
        if await self._effective_kind() is not AuthorizerKind.KAFKA_ACLS:
            return False
        (granted,) = await self._decide(peer, (CLUSTER_ACTION,), max_age_s=1.0)
        return granted or (await self._decide(peer, (CLUSTER_ACTION,), max_age_s=0.0))[0]

    async def depends_on_address(self, peer: Peer) -> bool:
        """Whether what a peer may do depends on the address that it asks from.

        Brokers judge what is passed on to them by our address. An authorizer that is not Kafka's
        may look at it for all that is known.

        Raises:
            AclsUnavailableError: ZooKeeper does not say.
        """
        kind = await self._effective_kind()
        if kind is not AuthorizerKind.KAFKA_ACLS:
            return kind is AuthorizerKind.DETECT
        acls = await self._cache.acls(max_age_s=_ADDRESSES_FRESH_S)
        return bool({peer.principal, WILDCARD_PRINCIPAL} & acls.principals_with_hosts)

    async def _decide(
        self, peer: Peer, actions: Sequence[Action], *, max_age_s: float
    ) -> list[bool]:
        if not actions:
            return []
        kind = await self._effective_kind()
        if kind is AuthorizerKind.NONE:
            return [True] * len(actions)
        if kind is AuthorizerKind.DETECT:  # an authorizer that is not Kafka's
            return [peer.principal in self._rules.super_users] * len(actions)
        acls = await self._cache.acls(max_age_s=max_age_s)
        host = java_host_address(peer.address)
        return [
            is_authorized(acls, self._rules, principal=peer.principal, host=host, action=action)
            for action in actions
        ]

    async def refused(self, peer: Peer, action: Action) -> None:
        """A request, or a part of one, is refused because a peer may not do this."""
        is_foreign = await self._effective_kind() is AuthorizerKind.DETECT
        resource = f"{action.resource_type} {action.name[:MAX_NAME]}"
        self._refuse(
            Refusal(
                kind="authorization",
                principal=peer.principal,
                address=peer.address,
                listener=peer.listener,
                reason=f"{action.operation} on {resource} is not granted",
                remedy=_SUPER_USERS_ONLY if is_foreign else grant_command(peer.principal, action),
            )
        )

    async def _effective_kind(self) -> AuthorizerKind:
        """What decides now; :attr:`AuthorizerKind.DETECT` if it is not known here."""
        if self._kind is not AuthorizerKind.DETECT:
            return self._kind
        view = self._view()
        live = [facts for facts in view.broker_facts if facts.broker_id in view.brokers]
        classes = {_authorizer_of(facts) for facts in live if facts.settings is not None}
        foreign = sorted(classes - ACL_AUTHORIZERS - {""})
        if foreign:
            self._warn(
                "The brokers have an authorizer that is not Kafka's: administrators are refused",
                authorizer=foreign[0],
            )
            return AuthorizerKind.DETECT
        if classes & ACL_AUTHORIZERS:
            return AuthorizerKind.KAFKA_ACLS
        if live and len([f for f in live if f.settings is not None]) == len(view.brokers):
            return AuthorizerKind.NONE
        # A broker that does not say most likely has one, which keeps us from asking it.
        if any(facts.has_answered and facts.settings is None for facts in live):
            self._warn(
                "Brokers do not say whether they have an authorizer: access control lists decide",
                remedy="give Regent's principal the right DescribeConfigs on the cluster, or set "
                "endpoint_authorizer",
            )
            return AuthorizerKind.KAFKA_ACLS
        has_acls = await self._cache.exists()
        return AuthorizerKind.KAFKA_ACLS if has_acls else AuthorizerKind.NONE

    def _warn(self, message: str, **fields: str) -> None:
        if self._pauses.is_over(message):
            fields.setdefault("remedy", "set endpoint_authorizer")
            logger.warning(message, extra=fields)


def _authorizer_of(facts: BrokerFacts) -> str:
    return (facts.settings or {}).get(AUTHORIZER, "")


class PeerAccess:
    """What one peer may do."""

    def __init__(self, authorizer: Authorizer, peer: Peer) -> None:
        self._authorizer = authorizer
        self._peer = peer

    async def to_cluster(self, operation: AclOperation, *, is_required: bool = True) -> bool:
        """Whether it may do something with the cluster.

        Args:
            is_required: Whether otherwise the request is refused, which is reported.
        """
        action = Action(operation, ResourceType.CLUSTER, CLUSTER_NAME)
        (is_allowed,) = await self._allowed((action,), is_required=is_required)
        return is_allowed

    async def to_topics(
        self, operation: AclOperation, topics: Iterable[str], *, is_required: bool = True
    ) -> Collection[str]:
        """The topics with which it may do something.

        Args:
            is_required: As with :meth:`to_cluster`; of several topics the first is reported.
        """
        names = list(dict.fromkeys(topics))
        actions = [Action(operation, ResourceType.TOPIC, name) for name in names]
        decisions = await self._allowed(actions, is_required=is_required)
        return dict.fromkeys(
            name for name, is_allowed in zip(names, decisions, strict=True) if is_allowed
        )

    async def _allowed(self, actions: Sequence[Action], *, is_required: bool) -> list[bool]:
        decisions = await self._authorizer.allowed(self._peer, actions)
        denied = [a for a, allowed in zip(actions, decisions, strict=True) if not allowed]
        if is_required and denied:
            await self._authorizer.refused(self._peer, denied[0])
        return decisions
