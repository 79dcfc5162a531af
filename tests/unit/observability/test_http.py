"""The HTTP endpoint answers metrics, probes and status."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter

from regent.observability.http import HttpEndpoint


class Health:
    """What the probes say."""

    problem: str | None = None

    def __call__(self) -> str | None:
        return self.problem


@pytest.fixture
def liveness() -> Health:
    return Health()


@pytest.fixture
def endpoint(liveness: Health) -> Iterator[HttpEndpoint]:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc()
    endpoint = HttpEndpoint(
        host="127.0.0.1",
        port=0,
        registry=registry,
        liveness=liveness,
        readiness=lambda: "not yet",
        status=lambda: {"isActive": True},
    )
    endpoint.start()
    yield endpoint
    endpoint.close()


def get(endpoint: HttpEndpoint, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{endpoint.port}{path}", timeout=30
        ) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_metrics_are_served(endpoint: HttpEndpoint) -> None:
    status, body = get(endpoint, "/metrics")
    assert status == 200
    assert "things_total 1.0" in body


def test_a_probe_names_the_problem(endpoint: HttpEndpoint, liveness: Health) -> None:
    assert get(endpoint, "/healthz") == (200, "ok\n")
    liveness.problem = "stuck"
    assert get(endpoint, "/healthz") == (503, "stuck\n")
    assert get(endpoint, "/readyz") == (503, "not yet\n")


def test_status_is_json(endpoint: HttpEndpoint) -> None:
    status, body = get(endpoint, "/status")
    assert status == 200
    assert json.loads(body) == {"isActive": True}


def test_another_path_says_which_there_are(endpoint: HttpEndpoint) -> None:
    status, body = get(endpoint, "/")
    assert status == 404
    assert "/metrics" in body
