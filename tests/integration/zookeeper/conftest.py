from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import ZooKeeper


@pytest.fixture(scope="module")
def shared_server() -> Iterator[ZooKeeper]:
    """A server that tests leave running; each works below a chroot of its own."""
    with ZooKeeper(heap_mb=768) as server:
        yield server


@pytest.fixture
def server() -> Iterator[ZooKeeper]:
    """A server that the test may stop, pause and restart."""
    with ZooKeeper() as server:
        yield server
