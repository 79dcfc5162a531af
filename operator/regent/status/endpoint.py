"""What the HTTP endpoint of a Regent says, and whether that Regent belongs to the cluster."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from regent.settings import Settings

HTTP_TIMEOUT_S: Final = 2.0
WHY_TIMEOUT_S: Final = 8.0
"""The endpoint itself gives up after less, when the controller is busy."""

_ANSWER_BYTES_MAX: Final = 1_000_000
_FIELDS: Final[Mapping[str, type]] = {
    "controllerId": int,
    "isActive": bool,
    "eventQueueSize": int,
    "channelQueueSizes": dict,
}
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


def ask_regent(url: str) -> EndpointAnswer:
    """Ask for ``/status``. Whatever goes wrong is the answer's problem.

    Args:
        url: ``http://`` or ``https://``, without a path.
    """
    try:
        with urllib.request.urlopen(f"{url}/status", timeout=HTTP_TIMEOUT_S) as answer:  # noqa: S310
            status = json.loads(answer.read(_ANSWER_BYTES_MAX))
    except (OSError, ValueError, http.client.HTTPException) as error:
        return EndpointAnswer(problem=f"no Regent answers at {url}: {error}")
    if not isinstance(status, dict) or not all(
        isinstance(status.get(name), type_) for name, type_ in _FIELDS.items()
    ):
        return EndpointAnswer(problem=f"what answers at {url} is not a Regent")
    return EndpointAnswer(status=status)


def ask_why(url: str, topic: str, partition: int | None) -> EndpointAnswer:
    """Ask for ``/why``. Whatever goes wrong is the answer's problem, except for what a Regent says:
    that it is not the controller, or knows no such topic, is in the answer's field ``problem``."""
    query = {"topic": topic} if partition is None else {"topic": topic, "partition": str(partition)}
    address = f"{url}/why?{urllib.parse.urlencode(query)}"
    try:
        body = _get(address)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return EndpointAnswer(problem=f"no Regent answers at {url}: {error}")
    if not isinstance(body, dict):
        return EndpointAnswer(problem=f"what answers at {url} is not a Regent")
    if isinstance(body.get("problem"), str) and "controllerId" not in body:
        return EndpointAnswer(problem=f"the Regent at {url} does not answer: {body['problem']}")
    if not all(isinstance(body.get(name), type_) for name, type_ in _WHY_FIELDS.items()):
        return EndpointAnswer(problem=f"what answers at {url} is not a Regent")
    return EndpointAnswer(status={"problem": None, **body})


def _get(address: str) -> Any:
    try:
        with urllib.request.urlopen(address, timeout=WHY_TIMEOUT_S) as answer:  # noqa: S310
            return json.loads(answer.read(_ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as refused:
        with refused:
            try:
                return json.loads(refused.read(_ANSWER_BYTES_MAX))
            except ValueError:
                raise refused from None  # not an answer of ours


def of_this_cluster(
    answer: EndpointAnswer, cluster: Mapping[str, Any], *, url: str
) -> EndpointAnswer:
    """The answer, unless it comes from a Regent that serves another Kafka cluster.

    The cluster id decides. A Regent that does not know it (yet) is believed, unless it takes itself
    for the controller and ``/controller`` names another one.
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
    if answer.status["isActive"] and own_id != holder:
        return EndpointAnswer(
            problem=f"the Regent at {url} serves another Kafka cluster: it is the controller with "
            f"id {own_id} there, here it is {'none' if holder is None else holder}"
        )
    return answer
