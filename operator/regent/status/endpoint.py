"""What the HTTP endpoint of a Regent says, and whether that Regent belongs to the cluster."""

from __future__ import annotations

import asyncio
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import aiohttp
import msgspec

from regent.settings import Settings

HTTP_TIMEOUT_S: Final = 2.0
WHY_TIMEOUT_S: Final = 8.0
"""The endpoint itself gives up after less, when the controller is busy."""

_ANSWER_BYTES_MAX: Final = 1_000_000


class _RefusedReplica(msgspec.Struct):
    topic: str
    partition: int
    broker_id: int
    error: str


class _RefusedReplicas(msgspec.Struct):
    count: int
    sample: list[_RefusedReplica]


class _UnassignedReplica(msgspec.Struct):
    topic: str
    partition: int
    broker_id: int
    size: int


class _UnassignedReplicas(msgspec.Struct):
    count: int
    sample: list[_UnassignedReplica]


class _Kubernetes(msgspec.Struct):
    problem: str | None
    unlisted: str | None
    unreadableNamespaces: dict[str, str]  # noqa: N815
    unwritableNamespaces: dict[str, str]  # noqa: N815
    unkeptLease: str | None = None  # noqa: N815
    stall: str | None = None


class _RefusedPeer(msgspec.Struct):
    kind: str
    address: str
    listener: str
    reason: str
    remedy: str
    principal: str | None = None


class _Endpoint(msgspec.Struct):
    problem: str | None = None
    refusedPeers: list[_RefusedPeer] | None = None  # noqa: N815


class _WarmStandby(msgspec.Struct):
    phase: str
    problem: str | None
    partitions: int
    dirty: int
    malformed: int
    differences: int


class _Replicas(msgspec.Struct):
    others: dict[str, str | None]
    problem: str | None


class _Status(msgspec.Struct):
    """What is shown of ``/status``. Fields with a default are missing in earlier versions."""

    controllerId: int  # noqa: N815
    isActive: bool  # noqa: N815
    eventQueueSize: int  # noqa: N815
    channelQueueSizes: dict[str, int]  # noqa: N815
    refusal: str | None = None
    shuttingDownBrokers: list[int] | None = None  # noqa: N815
    refusedReplicas: _RefusedReplicas | None = None  # noqa: N815
    refusedMetadata: dict[str, str] | None = None  # noqa: N815
    unassignedReplicas: _UnassignedReplicas | None = None  # noqa: N815
    warmStandby: _WarmStandby | None = None  # noqa: N815
    replicas: _Replicas | None = None
    kubernetes: _Kubernetes | None = None
    endpoint: _Endpoint | None = None
    unreachedBrokers: dict[str, str] | None = None  # noqa: N815
    zooKeeperProblem: str | None = None  # noqa: N815


_Count = Annotated[int, msgspec.Meta(ge=0)]
_TimeMs = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
"""Until the end of the year 9999, which is the last that can be shown."""


class _CauseBroker(msgspec.Struct):
    id: int
    epoch: int
    sessionId: str | None  # noqa: N815


class _Cause(msgspec.Struct):
    kind: str
    event: str
    timeMs: _TimeMs  # noqa: N815
    brokers: list[_CauseBroker]


class _Leadership(msgspec.Struct):
    leader: int | None
    leaderEpoch: int  # noqa: N815
    isr: list[int]
    controllerEpoch: int  # noqa: N815
    partitionEpoch: int  # noqa: N815


class _Change(msgspec.Struct):
    cause: _Cause
    kind: str
    after: _Leadership | None


class _PartitionTrail(msgspec.Struct):
    partition: _Count
    offlineDirs: list[int]  # noqa: N815
    refusals: list[tuple[int, str]]
    before: _Leadership | None
    dropped: int
    changes: list[_Change]
    uninformed: list[int] | None = None


class _BrokerTrail(msgspec.Struct):
    isShuttingDown: bool  # noqa: N815
    last: _Cause | None
    problem: str | None = None


class _WhyRefusal(msgspec.Struct):
    """What is said instead of an answer."""

    controllerId: int | None = None  # noqa: N815
    problem: str | None = None


class _WhyHead(msgspec.Struct):
    """What ``/why`` says in any case."""

    controllerId: int  # noqa: N815
    isActive: bool  # noqa: N815
    problem: str | None = None


class _Why(_WhyHead, kw_only=True):
    """What is shown of ``/why`` if nothing keeps it from answering."""

    topic: str
    controllerEpoch: int  # noqa: N815
    termBeganMs: _TimeMs  # noqa: N815
    evictedPartitions: int  # noqa: N815
    removed: _Cause | None
    partitions: list[_PartitionTrail]
    brokers: dict[str, _BrokerTrail]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAnswer:
    """Exactly one of the two is given.

    Attributes:
        status: What ``/status`` says, or ``/why``.
        problem: Why nothing is known of a Regent of this cluster.
    """

    status: Mapping[str, Any] | None = None
    problem: str | None = None


def default_url(settings: Settings) -> str:
    """Where a Regent with these settings listens, seen from its own machine or pod."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.http_host, settings.http_host)  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.http_port}"


def shown_url(url: str) -> str:
    """The same for messages: without a user and a password, which a proxy may ask for."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def ask_regent(url: str, *, timeout_s: float = HTTP_TIMEOUT_S) -> EndpointAnswer:
    """Ask for ``/status``. Whatever goes wrong is the answer's problem.

    Args:
        url: ``http://`` or ``https://``, without a path.
        timeout_s: For everything together.
    """
    try:
        body = asyncio.run(_fetch(f"{url}/status", timeout_s))
    except TimeoutError:
        return EndpointAnswer(
            problem=f"no Regent answers at {shown_url(url)}: not within {timeout_s:g} s"
        )
    except (OSError, ValueError, aiohttp.ClientError) as error:
        return EndpointAnswer(problem=f"no Regent answers at {shown_url(url)}: {error}")
    try:
        msgspec.json.decode(body, type=_Status)
        return EndpointAnswer(status=msgspec.json.decode(body, type=dict[str, Any]))
    except (ValueError, RecursionError):
        return EndpointAnswer(problem=f"what answers at {shown_url(url)} is not a Regent")


async def _fetch(url: str, timeout_s: float, *, refusals: bool = False) -> bytes:
    """The body of the answer, cut where it gets too long.

    Args:
        timeout_s: For everything together.
        refusals: Whether the body of an error is an answer, too.
    """
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    async with (
        aiohttp.ClientSession(timeout=timeout, raise_for_status=not refusals) as session,
        session.get(url) as answer,
    ):
        body = b""
        async for part in answer.content.iter_any():
            body += part
            if len(body) > _ANSWER_BYTES_MAX:
                break
        if not body.startswith(b"{"):
            answer.raise_for_status()  # a refusal that is none of a Regent's
        return body


def ask_why(url: str, topic: str, partition: int | None) -> EndpointAnswer:
    """Ask for ``/why``. Whatever goes wrong is the answer's problem, except for what a Regent says:
    that it is not the controller, or knows no such topic, is in the answer's field ``problem``."""
    query = {"topic": topic} if partition is None else {"topic": topic, "partition": str(partition)}
    address = f"{url}/why?{urllib.parse.urlencode(query)}"
    try:
        body = asyncio.run(_fetch(address, WHY_TIMEOUT_S, refusals=True))
    except TimeoutError:
        return EndpointAnswer(
            problem=f"no Regent answers at {shown_url(url)}: not within {WHY_TIMEOUT_S:g} s"
        )
    except (OSError, ValueError, aiohttp.ClientError) as error:
        return EndpointAnswer(problem=f"no Regent answers at {shown_url(url)}: {error}")
    try:
        refusal = msgspec.json.decode(body, type=_WhyRefusal)
        if refusal.controllerId is None and refusal.problem is not None:
            return EndpointAnswer(
                problem=f"the Regent at {shown_url(url)} does not answer: {refusal.problem}"
            )
        if msgspec.json.decode(body, type=_WhyHead).problem is None:
            msgspec.json.decode(body, type=_Why)
        status = msgspec.json.decode(body, type=dict[str, Any])
    except (ValueError, RecursionError):
        return EndpointAnswer(problem=f"what answers at {shown_url(url)} is not a Regent")
    return EndpointAnswer(status={"problem": None, **status})


def of_this_cluster(
    answer: EndpointAnswer, cluster: Mapping[str, Any], *, url: str
) -> EndpointAnswer:
    """The answer, unless it comes from a Regent that serves another Kafka cluster.

    The cluster id decides. A Regent that does not know it (yet) is believed, unless it takes itself
    for the controller and ``/controller`` names another one, or there is none.
    """
    if answer.status is None:
        return answer
    expected, found = cluster["clusterId"], answer.status.get("clusterId")
    if isinstance(expected, str) and isinstance(found, str):
        if expected == found:
            return answer
        return EndpointAnswer(
            problem=f"the Regent at {shown_url(url)} serves another Kafka cluster: {found}, not "
            f"{expected}"
        )
    own_id, holder = answer.status["controllerId"], cluster["controller"]["id"]
    is_known = cluster["controller"]["kind"] != "unknown"
    if answer.status["isActive"] and is_known and own_id != holder:
        return EndpointAnswer(
            problem=f"the Regent at {shown_url(url)} serves another Kafka cluster: it is the "
            f"controller with id {own_id} there, here it is {'none' if holder is None else holder}"
        )
    return answer
