"""The chart, rendered; and an API server for the folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from regent.resources.crd import RESOURCES
from sandbox import KubernetesApi
from tests.support.helm_chart import Render, render_chart


@pytest.fixture(scope="session")
def render() -> Render:
    """Render the chart with values; the objects by kind and name."""
    return render_chart


@pytest.fixture(scope="package")
def api() -> Iterator[KubernetesApi]:
    """An API server without controllers, and a user without rights."""
    with KubernetesApi(users={"regent": []}) as server:
        yield server


@pytest.fixture
def bare_api(api: KubernetesApi) -> Iterator[KubernetesApi]:
    """The API server without Regent's definitions."""
    definitions = [resource.kind.crd_name for resource in RESOURCES]
    api.kubectl("delete", "crd", "--ignore-not-found", *definitions)
    yield api
    api.kubectl("delete", "crd", "--ignore-not-found", *definitions)
