"""What waits to be sent to ZooKeeper, of which callers may take back what is theirs.

kazoo's connection thread looks at the first request, sends it, and then drops whatever is first. If
somebody takes the request back in between, the next one is dropped: it was never sent, and who
waits for its answer waits for ever. So the request that is being sent stays.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, SupportsIndex


class RequestQueue(deque[tuple[object, Any]]):
    """kazoo's queue of requests, each with what takes its answer."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._being_sent: tuple[object, Any] | None = None

    def __getitem__(self, index: SupportsIndex) -> tuple[object, Any]:  # type: ignore[override]
        """The first one is about to be sent, which is what kazoo looks at it for."""
        with self._lock:
            entry = super().__getitem__(index)
            self._being_sent = entry
            return entry

    def popleft(self) -> tuple[object, Any]:
        """Drop the first one: it was sent, or the connection is lost."""
        with self._lock:
            self._being_sent = None
            return super().popleft()

    def remove(self, value: tuple[object, Any]) -> None:
        """Take a request back.

        Raises:
            ValueError: It is not there (any more), or is being sent.
        """
        with self._lock:
            if value == self._being_sent:
                raise ValueError("the request is being sent")
            super().remove(value)
