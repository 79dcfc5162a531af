"""Kubernetes Events: what happened to a resource, for ``kubectl describe`` and alerts.

Events are a courtesy: they are sent in the background, and losing one loses nothing but a line of
history. The same Event about the same object is not sent twice within ``QUIET_S``, unless it
stands for something that happened twice.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from regent.kube.client import KubeClient
from regent.kube.errors import KubeError
from regent.kube.object_cache import CachedObject
from regent.reconcile.plan import PlannedEvent
from regent.resources.conditions import rfc3339, shorten
from regent.resources.kind import API_VERSION

logger = logging.getLogger(__name__)

QUIET_S: Final = 600.0
FINISH_TIMEOUT_S: Final = 5.0
COMPONENT: Final = "regent"
MAX_MESSAGE_LENGTH: Final = 1024

_NAME_LENGTH_MAX: Final = 200
_QUEUE_SIZE_MAX: Final = 10_000
_REMEMBERED_MAX: Final = 20_000


class EventRecorder:
    """Sends Events in the order in which they are recorded. :meth:`run` must be running."""

    def __init__(self, client: KubeClient, *, now: Callable[[], datetime], instance: str) -> None:
        """
        Args:
            instance: Name of this process, for ``reportingInstance``.
        """
        self._client = client
        self._now = now
        self._instance = instance
        self._queue: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue(_QUEUE_SIZE_MAX)
        self._recent: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    def record(self, subject: CachedObject, event: PlannedEvent) -> None:
        """Record an Event about an object, unless the same one was recorded a moment ago."""
        mark = (subject.uid, event.reason, event.message)
        now = asyncio.get_running_loop().time()
        last = self._recent.get(mark)
        if not event.is_occurrence and last is not None and now - last < QUIET_S:
            return
        self._recent[mark] = now
        self._recent.move_to_end(mark)
        while len(self._recent) > _REMEMBERED_MAX:
            self._recent.popitem(last=False)
        try:
            self._queue.put_nowait((subject.key.namespace, self._body(subject, event)))
        except asyncio.QueueFull:
            logger.warning(
                "An Event is dropped, too many are waiting",
                extra={
                    "resource": str(subject.key),
                    "reason": event.reason,
                    "event": event.message,
                    "waiting": _QUEUE_SIZE_MAX,
                },
            )

    async def run(self) -> None:
        """Send what is recorded until cancelled."""
        while True:
            namespace, body = await self._queue.get()
            await self._send(namespace, body)
            self._queue.task_done()

    async def flush(self) -> None:
        """Wait until everything recorded so far is sent. :meth:`run` must be running."""
        await self._queue.join()

    async def finish(self) -> None:
        """As :meth:`flush`, but not for longer than ``FINISH_TIMEOUT_S``: the process ends."""
        try:
            await asyncio.wait_for(self.flush(), timeout=FINISH_TIMEOUT_S)
        except TimeoutError:
            logger.warning("Some Events were not sent before the end")

    async def _send(self, namespace: str, body: dict[str, Any]) -> None:
        try:
            await self._client.create(f"/api/v1/namespaces/{namespace}/events", body)
        except KubeError as error:
            # A namespace that is being deleted takes no Events; nothing depends on them.
            logger.warning(
                "An Event cannot be recorded", extra={"namespace": namespace, "error": str(error)}
            )

    def _body(self, subject: CachedObject, event: PlannedEvent) -> dict[str, Any]:
        moment = rfc3339(self._now())
        reference = {
            "apiVersion": API_VERSION,
            "kind": subject.key.kind,
            "namespace": subject.key.namespace,
            "name": subject.key.name,
            "uid": subject.uid,
            "resourceVersion": subject.version,
        }
        return {
            "metadata": {
                # As client-go names them: unique as long as the clock moves.
                "name": f"{subject.key.name[:_NAME_LENGTH_MAX].rstrip('.-')}.{time.time_ns():x}",
                "namespace": subject.key.namespace,
            },
            "involvedObject": reference,
            "type": "Warning" if event.is_warning else "Normal",
            "reason": event.reason,
            "message": shorten(event.message, limit=MAX_MESSAGE_LENGTH),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
