"""What a handler of requests is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from regent.endpoint.authorization import PeerAccess
from regent.endpoint.quotas import MutationQuota
from regent.protocol.served_apis import Api
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests


class Handler(NamedTuple):
    """Answers the requests of one API.

    Attributes:
        api: The API, with all versions that it has.
        answer: Makes the response's entity, or has a broker make it (``serving.PassOn``).
        refusal: The response's entity with an error that concerns the request as a whole.
        is_for_brokers: Whether only brokers may ask: ClusterAction on the cluster, in terms of
            Kafka's authorization.
    """

    api: Api
    answer: Callable[[Request, ControllerRequests], Awaitable[Any]]
    refusal: Callable[[Request, int], Any]
    is_for_brokers: bool = True


class AdminHandler(NamedTuple):
    """Answers the requests of one API that administrators ask.

    Attributes:
        api: The API, with all versions that it has.
        answer: Makes the response's entity; checks what the peer may do.
    """

    api: Api
    answer: Callable[[Request, ControllerRequests, PeerAccess], Awaitable[Any]]


class MutationHandler(NamedTuple):
    """Answers the requests of one API by which administrators create and delete partitions.

    Attributes:
        api: The API, with all versions that it has.
        answer: Makes the response's entity; checks what the peer may do, and how much of it. That
            the client has to wait is added to the answer.
        strict_since: The version from which what exceeds the quota is refused (KIP-599).
    """

    api: Api
    answer: Callable[[Request, ControllerRequests, PeerAccess, MutationQuota], Awaitable[Any]]
    strict_since: int
