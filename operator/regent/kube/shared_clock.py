"""The time that all replicas share: the API server's.

What one replica writes down another one, whose machine has another time, counts from: when a plan
can be undone no more, a resource is deleted, or nobody asks for an eviction any more.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from regent.kube.client import KubeClient


def own_time() -> datetime:
    """The present by this machine, aware."""
    return datetime.now(UTC)


def shared_clock(client: KubeClient) -> Callable[[], datetime]:
    """The present by the API server, aware; our own time until it has said its own."""
    return lambda: client.server_time() or own_time()
