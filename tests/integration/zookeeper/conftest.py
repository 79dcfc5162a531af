from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from sandbox import ZooKeeper


@pytest.fixture(scope="package")
def shared_server() -> Iterator[ZooKeeper]:
    """A server that tests leave running; each works below a chroot of its own."""
    with ZooKeeper(heap_mb=768) as server:
        yield server


@pytest.fixture(scope="package")
def _fragile_server() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


@pytest.fixture
def server(_fragile_server: ZooKeeper) -> Iterator[ZooKeeper]:
    """A server that the test may stop, pause and restart, below a chroot of its own."""
    yield _fragile_server
    if _fragile_server.is_running:
        _fragile_server.process.resume()
    else:
        _fragile_server.start()


@pytest.fixture(scope="package")
def quota_server() -> Iterator[ZooKeeper]:
    """A server that enforces quotas; each test works below a chroot of its own."""
    with ZooKeeper(config={"enforceQuota": "true"}) as server:
        yield server


@pytest.fixture
def chroot(request: pytest.FixtureRequest) -> str:
    """Return the path below which the test works."""
    return "/" + re.sub(r"\W+", "-", request.node.name)
