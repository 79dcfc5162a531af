"""The chart, rendered; and an API server for a module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import KubernetesApi
from tests.support.helm_chart import Render, render_chart


@pytest.fixture(scope="session")
def render() -> Render:
    """Render the chart with values; the objects by kind and name."""
    return render_chart


@pytest.fixture(scope="module")
def api() -> Iterator[KubernetesApi]:
    """An API server without controllers, and a user without rights."""
    with KubernetesApi(users={"regent": []}) as server:
        yield server


@pytest.fixture
def bare_api() -> Iterator[KubernetesApi]:
    """An API server for one test, without Regent's definitions."""
    with KubernetesApi() as server:
        yield server
