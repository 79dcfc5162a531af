"""Questions of the API server are read, and answered as it understands."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest

from regent.kube.eviction.reviews import (
    ALLOWED,
    EvictionReview,
    ReviewError,
    Verdict,
    answer,
    read_review,
)


def review(**changes: Any) -> bytes:
    request = {
        "uid": "u-1",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "eviction",
        "operation": "CREATE",
        "namespace": "kafka",
        "name": "broker-4",
        "dryRun": False,
        "object": {"apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": None},
        **changes,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "request": request}).encode()


def test_an_eviction_is_read() -> None:
    assert read_review(review()) == EvictionReview("u-1", "kafka", "broker-4", is_dry_run=False)


def test_a_dry_run_is_one_whether_the_request_or_the_eviction_says_so() -> None:
    """kubectl says it in the Eviction, and the API server does not look there."""
    assert read_review(review(dryRun=True)).is_dry_run
    assert read_review(review(object={"deleteOptions": {"dryRun": ["All"]}})).is_dry_run
    assert not read_review(review(object={"deleteOptions": {"dryRun": []}})).is_dry_run
    assert not read_review(review(object=None)).is_dry_run


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\xff", "the body is no JSON"),
        (b"[]", "no AdmissionReview of admission.k8s.io/v1 with a request"),
        (b'{"apiVersion": "admission.k8s.io/v1"}', "with a request"),
        (review().replace(b"k8s.io/v1", b"k8s.io/v1beta1", 1), "no AdmissionReview of"),
        (review(subResource=""), "it is about pods/ and CREATE: the webhook is to be asked for"),
        (review(operation="DELETE"), "it is about pods/eviction and DELETE"),
        (review(resource={"resource": "secrets"}), "it is about secrets/eviction"),
        (review(resource=None), "it is about None/eviction"),
        (review(name=""), "uid, namespace or name of the request is missing"),
        (review(namespace=None), "uid, namespace or name of the request is missing"),
        (review(uid=5), "uid, namespace or name of the request is missing"),
        (b"[" * 100_000, "the body is no JSON"),
        (review(namespace="../../apis"), "namespace '../../apis', which no object can have"),
        (review(namespace="a/pods?watch=1&b="), "which no object can have"),
        (review(name="broker-4/log"), "name 'broker-4/log', which no object can have"),
        (review(name="broker-4\n"), "which no object can have"),
        (review(name="b" * 254), "which no object can have"),
    ],
)
def test_anything_else_is_refused(payload: bytes, message: str) -> None:
    with pytest.raises(ReviewError, match=message):
        read_review(payload)


def test_the_answer_names_the_question() -> None:
    question = read_review(review())
    assert answer(question, ALLOWED) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }
    refused = answer(question, Verdict(HTTPStatus.TOO_MANY_REQUESTS, "wait"))
    assert refused["response"] == {
        "uid": "u-1",
        "allowed": False,
        "status": {"code": 429, "reason": "TooManyRequests", "message": "wait"},
    }
