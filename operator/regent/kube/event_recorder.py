"""Kubernetes Events: what happened to a resource, for ``kubectl describe`` and alerts.

Events are a courtesy: they are sent in the background, and losing one loses nothing but a line of
history. The same Event about the same object is not sent twice within ``QUIET_S``, unless it
stands for something that happened twice.

An Event costs the API server nearly as much as a status. So while resources wait for their turn or
are worked on, those that warn of nothing wait, too: of ten thousand new topics the statuses are
shown first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from regent.kube.client import KubeClient
from regent.kube.errors import NAMESPACE_TERMINATING, KubeApiError, KubeError
from regent.kube.object_cache import CachedObject
from regent.model.entry_budget import EntryBudget
from regent.reconcile.plan import PlannedEvent
from regent.resources.conditions import rfc3339, shorten
from regent.resources.kind import API_VERSION

logger = logging.getLogger(__name__)

QUIET_S: Final = 600.0
PATIENCE_S: Final = 120.0
"""How long an Event that warns of nothing waits for resources at most."""
FINISH_TIMEOUT_S: Final = 5.0
COMPONENT: Final = "regent"
MAX_MESSAGE_LENGTH: Final = 1024

_NAME_LENGTH_MAX: Final = 200
_QUEUE_SIZE_MAX: Final = 20_000
_PATIENT_MAX: Final = 10_000
"""With so many of them waiting, resources have to share."""
_REMEMBERED_MAX: Final = 20_000
_GOING_MAX: Final = 100
"""Namespaces that are remembered as being deleted, the last ones."""


class _Recorded(NamedTuple):
    """An Event that was not sent yet.

    Attributes:
        moment: When it was recorded, as the API has it.
        at: The same as loop time.
    """

    subject: CachedObject
    event: PlannedEvent
    moment: str
    at: float


class EventRecorder:
    """Sends Events in the order in which they are recorded, warnings first. :meth:`run` must be
    running."""

    def __init__(
        self,
        client: KubeClient,
        *,
        now: Callable[[], datetime],
        instance: str,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Args:
            instance: Name of this process, for ``reportingInstance``.
            is_busy: Returns whether resources wait for their turn or are worked on; when that is
                over, :meth:`wake` is to be called.
        """
        self._client = client
        self._now = now
        self._instance = instance
        self._is_busy = is_busy
        self._entries = EntryBudget()
        self._entries_about_dropped = EntryBudget()
        self._entries_about_news = EntryBudget()
        self._going: deque[str] = deque(maxlen=_GOING_MAX)
        self._urgent: deque[_Recorded] = deque()
        self._patient: deque[_Recorded] = deque()
        self._is_hurried = False
        self._woken = asyncio.Event()
        self._all_sent = asyncio.Event()
        self._all_sent.set()
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
        if event.is_logged:
            self._log(subject, event, now)
        if len(self._urgent) + len(self._patient) >= _QUEUE_SIZE_MAX:
            self._note_dropped(subject, event, now)
            return
        waiting = self._urgent if event.is_warning else self._patient
        waiting.append(_Recorded(subject, event, rfc3339(self._now()), now))
        self._all_sent.clear()
        self._woken.set()

    def _log(self, subject: CachedObject, event: PlannedEvent, now: float) -> None:
        self._entries_about_news.log(
            logger.info,
            "A resource has news",
            now=now,
            resource=str(subject.key),
            reason=str(event.reason),
            event=event.message,
        )

    def _note_dropped(self, subject: CachedObject, event: PlannedEvent, now: float) -> None:
        self._entries_about_dropped.log(
            logger.warning,
            "An Event is dropped, too many are waiting",
            now=now,
            resource=str(subject.key),
            reason=event.reason,
            event=event.message,
            waiting=_QUEUE_SIZE_MAX,
        )

    def wake(self) -> None:
        """No resource waits for its turn or is worked on any more."""
        self._woken.set()

    async def run(self) -> None:
        """Send what is recorded until cancelled."""
        while True:
            recorded = self._next()
            if recorded is None:
                await self._until_woken()
                continue
            await self._send(recorded)
            if not self._urgent and not self._patient:
                self._all_sent.set()

    def _next(self) -> _Recorded | None:
        """What is to be sent now, if anything."""
        if self._urgent:
            return self._urgent.popleft()
        if self._patient and (self._is_hurried or not self._is_busy() or self._is_overdue):
            return self._patient.popleft()
        return None

    @property
    def _is_overdue(self) -> bool:
        """Whether the Events that wait for resources have waited long enough, or are too many."""
        now = asyncio.get_running_loop().time()
        return len(self._patient) > _PATIENT_MAX or now >= self._patient[0].at + PATIENCE_S

    async def _until_woken(self) -> None:
        """Wait until something is recorded, :meth:`wake` is called, or an Event is overdue."""
        self._woken.clear()
        due = self._patient[0].at + PATIENCE_S if self._patient else None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await self._woken.wait()

    async def flush(self) -> None:
        """Wait until everything recorded so far is sent, which now happens without waiting for
        resources. :meth:`run` must be running."""
        self._is_hurried = True
        self._woken.set()
        try:
            await self._all_sent.wait()
        finally:
            self._is_hurried = False

    async def finish(self) -> None:
        """As :meth:`flush`, but not for longer than ``FINISH_TIMEOUT_S``: the process ends."""
        try:
            await asyncio.wait_for(self.flush(), timeout=FINISH_TIMEOUT_S)
        except TimeoutError:
            logger.warning("Some Events were not sent before the end")

    async def _send(self, recorded: _Recorded) -> None:
        namespace = recorded.subject.key.namespace
        try:
            path = f"/api/v1/namespaces/{namespace}/events"
            await self._client.create(path, self._body(recorded))
        except KubeError as error:
            # Nothing depends on it.
            if _is_namespace_going(error):
                self._note_going(namespace)
                return
            self._entries.log(
                logger.warning,
                "An Event cannot be recorded",
                now=asyncio.get_running_loop().time(),
                namespace=namespace,
                error=str(error),
            )
        else:
            if namespace in self._going:
                self._going.remove(namespace)

    def _note_going(self, namespace: str) -> None:
        """That is the normal course, and is said once: of each resource there is an Event."""
        if namespace in self._going:
            return
        self._going.append(namespace)
        logger.info(
            "A namespace is being deleted and takes no Events any more",
            extra={"namespace": namespace},
        )

    def _body(self, recorded: _Recorded) -> dict[str, Any]:
        subject, event = recorded.subject, recorded.event
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
            "firstTimestamp": recorded.moment,
            "lastTimestamp": recorded.moment,
            "count": 1,
        }


def _is_namespace_going(error: KubeError) -> bool:
    """Whether an Event was refused as its namespace is being deleted, or is gone."""
    return isinstance(error, KubeApiError) and (
        NAMESPACE_TERMINATING in error.causes or error.status == HTTPStatus.NOT_FOUND
    )
