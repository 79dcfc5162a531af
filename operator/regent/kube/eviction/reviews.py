"""What the API server asks a webhook, and how it is answered (``admission.k8s.io/v1``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from regent.kube.eviction.broker_pods import is_name
from regent.model.errors import RegentError

_VERSION: Final = "admission.k8s.io/v1"


class ReviewError(RegentError):
    """It is no AdmissionReview of an eviction."""


class EvictionReview(NamedTuple):
    """The question whether a pod may be evicted.

    Attributes:
        uid: Of the question.
        is_dry_run: Whether nothing may be changed.
    """

    uid: str
    namespace: str
    pod: str
    is_dry_run: bool


class Verdict(NamedTuple):
    """The answer.

    Attributes:
        refused_with: HTTP status for who evicts; None: the pod may be evicted.
        message: Why, as a sentence for people.
    """

    refused_with: HTTPStatus | None = None
    message: str = ""


ALLOWED: Final = Verdict()


def read_review(payload: bytes) -> EvictionReview:
    """Read an AdmissionReview.

    Raises:
        ReviewError: It is none, or is not about the creation of an Eviction.
    """
    try:
        body = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ReviewError(f"the body is no JSON: {error}") from error
    request = body.get("request") if isinstance(body, dict) else None
    if not isinstance(request, dict) or body.get("apiVersion") != _VERSION:
        raise ReviewError(f"the body is no AdmissionReview of {_VERSION} with a request")
    resource = request.get("resource")
    plural = resource.get("resource") if isinstance(resource, dict) else None
    asked = (plural, request.get("subResource"), request.get("operation"))
    if asked != ("pods", "eviction", "CREATE"):
        raise ReviewError(
            f"it is about {plural}/{asked[1]} and {asked[2]}: the webhook is to be asked for "
            "CREATE of pods/eviction only"
        )
    texts = [request.get(name) for name in ("uid", "namespace", "name")]
    uid, namespace, pod = (text if isinstance(text, str) else "" for text in texts)
    if not (uid and namespace and pod):
        raise ReviewError("uid, namespace or name of the request is missing")
    # They become a path of the API: whoever reaches the hook must not choose another one.
    for what, name in (("namespace", namespace), ("name", pod)):
        if not is_name(name):
            raise ReviewError(f"it is about {what} {name[:300]!r}, which no object can have")
    return EvictionReview(uid, namespace, pod, _is_dry_run(request))


def answer(review: EvictionReview, verdict: Verdict) -> dict[str, Any]:
    """The AdmissionReview that answers another one."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": verdict.refused_with is None}
    status = verdict.refused_with
    if status is not None:
        reason = status.phrase.replace(" ", "")
        response["status"] = {"code": int(status), "reason": reason, "message": verdict.message}
    return {"apiVersion": _VERSION, "kind": "AdmissionReview", "response": response}


def _is_dry_run(request: Mapping[str, Any]) -> bool:
    """The API server knows of a dry run by the parameter; kubectl says it in the Eviction alone."""
    eviction = request.get("object")
    options = eviction.get("deleteOptions") if isinstance(eviction, dict) else None
    in_eviction = options.get("dryRun") if isinstance(options, dict) else None
    return bool(request.get("dryRun") or in_eviction)
