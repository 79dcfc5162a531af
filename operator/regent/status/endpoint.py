"""What the HTTP endpoint of a Regent says, and whether that Regent belongs to the cluster."""

from __future__ import annotations

import asyncio
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

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


class _WarmStandby(msgspec.Struct):
    phase: str
    problem: str | None
    partitions: int
    dirty: int
    malformed: int
    differences: int


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
    kubernetes: _Kubernetes | None = None


_WHY_FIELDS: Final[Mapping[str, type]] = {"controllerId": int, "isActive": bool}


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


def ask_regent(url: str, *, timeout_s: float = HTTP_TIMEOUT_S) -> EndpointAnswer:
    """Ask for ``/status``. Whatever goes wrong is the answer's problem.

    Args:
        url: ``http://`` or ``https://``, without a path.
        timeout_s: For everything together.
    """
    try:
        body = asyncio.run(_fetch(f"{url}/status", timeout_s))
    except TimeoutError:
        return EndpointAnswer(problem=f"no Regent answers at {url}: not within {timeout_s:g} s")
    except (OSError, ValueError, aiohttp.ClientError) as error:
        return EndpointAnswer(problem=f"no Regent answers at {url}: {error}")
    try:
        msgspec.json.decode(body, type=_Status)
        return EndpointAnswer(status=msgspec.json.decode(body, type=dict[str, Any]))
    except (ValueError, RecursionError):
        return EndpointAnswer(problem=f"what answers at {url} is not a Regent")


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
        body = msgspec.json.decode(asyncio.run(_fetch(address, WHY_TIMEOUT_S, refusals=True)))
    except TimeoutError:
        return EndpointAnswer(problem=f"no Regent answers at {url}: not within {WHY_TIMEOUT_S:g} s")
    except (OSError, aiohttp.ClientError) as error:
        return EndpointAnswer(problem=f"no Regent answers at {url}: {error}")
    except (ValueError, RecursionError):
        return EndpointAnswer(problem=f"what answers at {url} is not a Regent")
    if not isinstance(body, dict):
        return EndpointAnswer(problem=f"what answers at {url} is not a Regent")
    if isinstance(body.get("problem"), str) and "controllerId" not in body:
        return EndpointAnswer(problem=f"the Regent at {url} does not answer: {body['problem']}")
    if not all(isinstance(body.get(name), type_) for name, type_ in _WHY_FIELDS.items()):
        return EndpointAnswer(problem=f"what answers at {url} is not a Regent")
    return EndpointAnswer(status={"problem": None, **body})


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
            problem=f"the Regent at {url} serves another Kafka cluster: {found}, not {expected}"
        )
    own_id, holder = answer.status["controllerId"], cluster["controller"]["id"]
    is_known = cluster["controller"]["kind"] != "unknown"
    if answer.status["isActive"] and is_known and own_id != holder:
        return EndpointAnswer(
            problem=f"the Regent at {url} serves another Kafka cluster: it is the controller with "
            f"id {own_id} there, here it is {'none' if holder is None else holder}"
        )
    return answer
