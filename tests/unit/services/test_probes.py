"""Probes of a process and the work on custom resources."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from regent.app import App
from regent.kube.client import KubeClient
from regent.kube.health import KubeHealth
from regent.kube.object_cache import ObjectKey
from regent.kube.operator import KubeOperator
from regent.kube.settings import KubeSettings
from regent.settings.loading import load_settings
from tests.unit.kube.jumping_clock import elapse, run

STUCK = "work on custom resources has been stuck for 130 s"


@contextmanager
def stuck_process(mode: str) -> Iterator[App]:
    """A process in which nothing was done about a resource for 130 s."""
    app = App(load_settings({"zookeeper": "127.0.0.1:1", "http_port": 0, "mode": mode}))
    side = app._kubernetes = app._kubernetes_side(on_signal=lambda: None)
    assert side is not None
    side.operator = KubeOperator(
        app._controller,
        KubeSettings(),
        client=KubeClient(max_connections=1, request_timeout_s=1),
        metrics=None,
        health=KubeHealth(),
        why_inactive=lambda: None,
    )
    side.operator.queue.add(ObjectKey("KafkaTopic", "shop", "orders"))
    app._http.start()
    try:
        yield app
    finally:
        app._http.close()


def get(app: App, path: str) -> tuple[int, str]:
    """Ask while the main loop is blocked."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{app._http.port}{path}") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(("mode", "status"), [("controller", 200), ("client", 503)])
def test_stuck_resource_ends_no_controller(mode: str, status: int) -> None:
    async def scenario() -> None:
        with stuck_process(mode) as app:
            assert get(app, "/healthz") == (200, "ok\n")
            await elapse(130)
            assert get(app, "/healthz")[0] == status

    run(scenario())


def test_stuck_work_on_resources_is_shown() -> None:
    async def scenario() -> tuple[dict[str, Any], str | None]:
        with stuck_process("controller") as app:
            await elapse(130)
            return json.loads(get(app, "/status")[1]), app._remark()

    status, remark = run(scenario())
    assert STUCK in status["kubernetes"]["stall"]
    assert STUCK in str(remark)
