"""Carries out the plans for resources of a kind, one reconciliation of a resource at a time.

A reconciliation reads the newest version of the object and the newest view, asks the kind what to
do, does it, and asks again with the outcomes, until nothing is left to be sent. Only then is the
status written: it says what came of it, and mostly there is one write per change.

What has to be stored before a command is sent, the finalizer or an intent, is stored in a round of
its own: the object may have changed by then, and if it cannot be stored nothing is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from regent.admin.commands import ResourceCommand
from regent.controller.view import ClusterView
from regent.kube.command_batcher import CommandsOutdatedError
from regent.kube.errors import (
    KubeApiError,
    KubeError,
    KubeRightLostError,
    KubeSchemaError,
    KubeTooLargeError,
)
from regent.kube.event_recorder import EventRecorder
from regent.kube.memory import ObjectMemory, Outranked
from regent.kube.object_cache import CachedObject, ObjectCache, ObjectKey
from regent.kube.settings import KubeSettings
from regent.kube.status_writer import StatusWriter, WritableStatus, WriteResult
from regent.planning.orders import PlanningOrder
from regent.reconcile.plan import EventReason, FinalizerAction, Plan, PlannedEvent
from regent.resources.conditions import ConditionReason

logger = logging.getLogger(__name__)

_ROUNDS_MAX: Final = 6
"""Rounds in one reconciliation. Storing the finalizer and an intent, creating the topic and saying
so take four; so do reading the configuration and changing it behind a finalizer."""

_CONTESTS_REPORTED: Final = 5
"""So many times in a row somebody else has overwritten a status, or taken a finalizer off: that is
no edit by hand."""

_STATUS_CONTESTED: Final = (
    "The status of a resource is changed again and again by somebody else; it is written less "
    "often now. Two Regents may serve its namespace, or an admission webhook changes it"
)

_FINALIZER_CONTESTED: Final = (
    "The finalizer of a resource is taken off again and again by somebody else; it is put back "
    "less often now, and nothing is done for the resource meanwhile"
)

_TOO_LARGE: Final = (
    "its status does not fit beside its spec into what the API server stores of an object, 1.5 MB; "
    "it is out of date or missing, and nothing that depends on it is done: make the spec smaller, "
    "or split the resource"
)

_REFUSED: Final = (
    "the API server refuses what Regent writes, so the status may be out of date, and a deletion "
    "may not end; let Regent do it, or change the resource so that it is admitted"
)

_OUTRANKED_RETRY_S: Final = 10.0
"""When to requeue a resource that belongs to a newer controller, in case it is gone."""

StatusT = TypeVar("StatusT", bound=WritableStatus)
RequestT = TypeVar("RequestT")
MemoryT = TypeVar("MemoryT", bound=ObjectMemory[Any])


class ReconciledKind(Protocol[RequestT, StatusT, MemoryT]):
    """What a kind brings to its reconciliation."""

    def remember(self, known: CachedObject, *, at: float) -> MemoryT:
        """A new memory for an object that is first seen at this loop time."""
        ...

    def request(self, known: CachedObject, memory: MemoryT) -> RequestT:
        """Everything that is known about an object now."""
        ...

    def plan(self, request: RequestT) -> Plan[StatusT]:
        """What has to be done. Pure."""
        ...

    async def send(
        self,
        request: RequestT,
        commands: Sequence[ResourceCommand],
        memory: MemoryT,
        is_wanted: Callable[[], bool],
    ) -> Sequence[PlannedEvent]:
        """Have commands carried out, and remember the outcomes; the Events for them.

        Raises:
            CommandsOutdatedError: They have waited, and ``is_wanted`` returned False then.
        """
        ...

    def status_of(self, known: CachedObject) -> StatusT:
        """The stored status; an empty one if it cannot be read."""
        ...

    def stored(self, status: StatusT, *, over: StatusT, memory: MemoryT) -> Sequence[PlannedEvent]:
        """This process has stored a status in the place of another one; the Events for that."""
        ...


class Planning(Protocol):
    """Has plans made beside, outside the event loop."""

    def keep(self, key: ObjectKey, uid: str, order: PlanningOrder | None) -> None:
        """Have this plan made for an object, unless it is under way or made; None: it wants
        none."""
        ...


class Reconciled(NamedTuple):
    """What came of a reconciliation.

    Attributes:
        again_s: After how many seconds the resource is to be requeued; None: no need.
        cost_s: For how many seconds planning has kept the event loop busy.
    """

    again_s: float | None
    cost_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerParts:
    """What a reconciler works with.

    Attributes:
        view: Returns the newest view of the cluster.
        planning: Makes the plans that resources of the kind want; None: they want none.
        ask_about_definition: Finds out whether an object, by its request, is deleted together with
            its definition, and remembers it; returns whether it is, and that was not known. Its
            last argument says whether the API server has to be asked now. Raises KubeError if that
            does not say. None: no plan of the kind asks.
        on_gone: Called with the key of an object that is gone.
        on_step: Called before each round of a reconciliation: what came before it is finished.
        on_contest: Called with the key of an object each time that something was written to it once
            more which somebody else changes again and again.
    """

    cache: ObjectCache
    writer: StatusWriter[Any, Any]
    recorder: EventRecorder
    settings: KubeSettings
    view: Callable[[], ClusterView]
    planning: Planning | None = None
    ask_about_definition: Callable[[Any, Any, bool], Awaitable[bool]] | None = None
    on_gone: Callable[[ObjectKey], None] = lambda _: None
    on_step: Callable[[], None] = lambda: None
    on_contest: Callable[[ObjectKey], None] = lambda _: None


def warning_of(error: KubeError) -> tuple[str, str] | None:
    """Reason and message of the Warning for what fails again until somebody changes something;
    None: it may go away by itself."""
    match error:
        case KubeSchemaError():
            return EventReason.NOT_STORED_AS_WRITTEN, str(error)
        case KubeTooLargeError():
            return ConditionReason.TOO_LARGE, _TOO_LARGE
        case KubeRightLostError():
            return EventReason.RIGHT_LOST, str(error)
        case KubeApiError() if error.is_refusal:
            return ConditionReason.WRITE_REFUSED, f"{_REFUSED}: {error}"
        case _:
            return None


class _Stopwatch:
    """Adds up the time that is spent in its context."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._began_at = 0.0
        self.elapsed_s = 0.0

    def __enter__(self) -> None:
        self._began_at = self._now()

    def __exit__(self, *_: object) -> None:
        self.elapsed_s += self._now() - self._began_at


class Reconciler(Generic[RequestT, StatusT, MemoryT]):
    """Reconciles the resources of one kind.

    Attributes:
        reconciliations: How many so far.
    """

    def __init__(
        self, parts: ReconcilerParts, kind: ReconciledKind[RequestT, StatusT, MemoryT]
    ) -> None:
        self._parts = parts
        self._kind = kind
        self._memories: dict[ObjectKey, MemoryT] = {}
        self.reconciliations = 0

    async def reconcile(self, key: ObjectKey) -> Reconciled:
        """Reconcile one resource.

        Raises:
            KubeError: If the API server does not answer, refuses, or stores something else (the
                resource gets an Event then). Reconciling again is safe.
        """
        self.reconciliations += 1
        if self._parts.cache.get(key) is None:
            self._memories.pop(key, None)
            self._parts.on_gone(key)
            self._keep_planning(key, "", None)
            return Reconciled(None)
        stopwatch = _Stopwatch(asyncio.get_running_loop().time)
        try:
            return Reconciled(await self._rounds(key, stopwatch), stopwatch.elapsed_s)
        except KubeError as error:
            warning = warning_of(error)
            if warning is not None:
                self._record_warning(key, *warning)
            raise

    async def _rounds(self, key: ObjectKey, stopwatch: _Stopwatch) -> float | None:
        """Plan and act until nothing is left to be done now; after how many seconds to requeue."""
        asked: set[str] = set()
        for _ in range(_ROUNDS_MAX):
            self._parts.on_step()
            known = self._parts.cache.get(key)
            if known is None:
                return None
            # It may be another generation, or another object, than in the round before.
            memory = self._memory_of(known)
            with stopwatch:
                request = self._kind.request(known, memory)
                plan = self._kind.plan(request)
            self._keep_planning(key, known.uid, plan.planning)
            if plan.is_to_be_deleted:
                return await self._delete(known)
            if plan.finalizer is FinalizerAction.ADD:
                pause_s = await self._hold(known, memory)
                if pause_s is None:
                    continue
                return pause_s
            if plan.status_first and plan.status is not None:
                result = await self._write_status(known, plan.status, memory, in_full=True)
                if result is WriteResult.OUTRANKED:
                    return _OUTRANKED_RETRY_S
                continue
            if await self._plans_again(plan, request, memory, asked):
                continue
            if not plan.commands:
                return await self._finish(known, plan, memory)
            await self._send(known, request, plan, memory)
        return 0.0

    async def _send(
        self,
        known: CachedObject,
        request: RequestT,
        plan: Plan[StatusT],
        memory: MemoryT,
    ) -> None:
        """Have commands carried out, unless what they were planned for changes while they wait.
        What cannot be taken back is planned once more: it may depend on others, who declare the
        topic by now."""

        def is_wanted() -> bool:
            newest = self._parts.cache.get(known.key)
            if newest is None or not newest.is_same_generation(known):
                return False
            if not plan.asks_about_definition:
                return True
            return self._kind.plan(self._kind.request(newest, memory)).commands == plan.commands

        try:
            events = await self._kind.send(request, plan.commands, memory, is_wanted)
        except CommandsOutdatedError:
            return  # the next round plans for what is wanted now
        self._record(known, events)

    async def _plans_again(
        self, plan: Plan[StatusT], request: RequestT, memory: MemoryT, asked: set[str]
    ) -> bool:
        """Ask about the definition. What cannot be taken back is planned again with the answer:
        until it has come, somebody may have said that the topic is to stay.

        Args:
            asked: For which objects that was done in this reconciliation, by uid.
        """
        if not plan.asks_about_definition or memory.uid in asked:
            return False
        asked.add(memory.uid)
        ask = self._parts.ask_about_definition
        assert ask is not None, "plans of this kind ask"
        is_irrevocable = bool(plan.commands)
        is_news = await ask(request, memory, is_irrevocable)
        return is_news or is_irrevocable

    def _keep_planning(self, key: ObjectKey, uid: str, order: PlanningOrder | None) -> None:
        if self._parts.planning is not None:
            self._parts.planning.keep(key, uid, order)

    def _memory_of(self, known: CachedObject) -> MemoryT:
        at = asyncio.get_running_loop().time()
        memory = self._memories.get(known.key)
        if memory is None or memory.uid != known.uid:
            memory = self._memories[known.key] = self._kind.remember(known, at=at)
        memory.see(known.generation, at=at)
        return memory

    async def _hold(self, known: CachedObject, memory: MemoryT) -> float | None:
        """Put the finalizer on an object; None: that was done, else after how many seconds to plan
        again."""
        pause_s = memory.hold_pause_s(at=asyncio.get_running_loop().time())
        if pause_s > 0:
            return pause_s
        result = await self._parts.writer.add_finalizer(known.key, known.uid)
        if result is not WriteResult.WRITTEN:
            return 0.0  # it is being deleted or gone
        memory.note_held(at=asyncio.get_running_loop().time())
        self._report_contest(known, memory.holds_lost, _FINALIZER_CONTESTED)
        return None

    async def _delete(self, known: CachedObject) -> float | None:
        """Delete the object as it is known; one that has changed meanwhile is looked at again."""
        result = await self._parts.writer.delete(known)
        if result is WriteResult.CHANGED:
            return 0.0
        logger.info("A resource is deleted: its time is over", extra={"resource": str(known.key)})
        return None

    async def _finish(
        self, known: CachedObject, plan: Plan[StatusT], memory: MemoryT
    ) -> float | None:
        """Write the status, remove the finalizer, and record the events once that is done."""
        delays = [] if plan.requeue_after_s is None else [plan.requeue_after_s]
        if plan.status is not None:
            held_s = self._held_back_s(known, plan.status, memory)
            if held_s is not None:
                delays.append(held_s)
            else:
                result = await self._write_status(
                    known, plan.status, memory, keeps_unread=plan.keeps_unread
                )
                if result is WriteResult.OUTRANKED:
                    return _OUTRANKED_RETRY_S
        if plan.finalizer is FinalizerAction.REMOVE:
            result = await self._remove_finalizer(known, plan, memory)
            if result is WriteResult.CHANGED:
                return 0.0
            memory.note_released()
        self._record(known, plan.events)
        return min(delays) if delays else None

    async def _remove_finalizer(
        self, known: CachedObject, plan: Plan[StatusT], memory: MemoryT
    ) -> WriteResult:
        try:
            return await self._parts.writer.remove_finalizer(
                known.key, known.uid, generation=known.generation
            )
        except (KubeApiError, KubeSchemaError) as error:
            is_held = isinstance(error, KubeSchemaError) or error.is_refusal
            if is_held and plan.status_if_held is not None:
                await self._write_status(known, plan.status_if_held, memory)
            raise

    async def _write_status(
        self,
        known: CachedObject,
        status: StatusT,
        memory: MemoryT,
        *,
        in_full: bool = False,
        keeps_unread: bool = False,
    ) -> WriteResult:
        over = self._overwritable(known, memory)
        result = await self._parts.writer.write_status(
            known.key,
            known.uid,
            status,
            over=over,
            in_full=in_full,
            keeps_unread=keeps_unread,
        )
        if result is WriteResult.OUTRANKED:
            self._note_outranked(known, memory)
            return result
        memory.outranked = None
        if result is not WriteResult.WRITTEN:
            return result
        # Only by the process that stored it: neither a restart nor a second replica repeats it.
        before = self._kind.status_of(known)
        memory.note_written(status, over=before, at=asyncio.get_running_loop().time())
        self._report_contest(known, memory.contests, _STATUS_CONTESTED)
        self._record(known, self._kind.stored(status, over=before, memory=memory))
        return result

    def _report_contest(self, known: CachedObject, times: int, message: str) -> None:
        """Report a write of what somebody else has changed so many times in a row; the log has the
        first one that is no edit by hand."""
        if times < _CONTESTS_REPORTED:
            return
        self._parts.on_contest(known.key)
        if times == _CONTESTS_REPORTED:
            logger.warning(message, extra={"resource": str(known.key)})

    def _record_warning(self, key: ObjectKey, reason: str, message: str) -> None:
        """What the status cannot say: it is not stored, or whatever is written may be stored
        otherwise."""
        known = self._parts.cache.get(key)
        if known is not None:
            self._record(known, [PlannedEvent(reason, message, is_warning=True)])

    def _record(self, known: CachedObject, events: Sequence[PlannedEvent]) -> None:
        for event in events:
            self._parts.recorder.record(known, event)

    def _note_outranked(self, known: CachedObject, memory: MemoryT) -> None:
        """Remember since when a status is left alone in this term."""
        newest = self._parts.cache.get(known.key)
        version = known.version if newest is None else newest.version
        epoch = self._parts.view().controller_epoch
        before = memory.outranked
        if before is not None and (before.version, before.controller_epoch) == (version, epoch):
            return
        logger.warning(
            "A status written by a newer controller is kept", extra={"resource": str(known.key)}
        )
        memory.outranked = Outranked(version, epoch, asyncio.get_running_loop().time())

    def _overwritable(self, known: CachedObject, memory: MemoryT) -> str | None:
        """resourceVersion of an object whose status no newer controller can have written; None if
        one can.

        Two controllers are not active for long at the same time. So the epochs started again
        (ZooKeeper was restored from a backup), or the status was edited by hand.
        """
        view, outranked = self._parts.view(), memory.outranked
        if outranked is None or not view.may_act:
            return None
        if outranked.controller_epoch != view.controller_epoch:
            return None
        age_s = asyncio.get_running_loop().time() - outranked.since
        return outranked.version if age_s >= self._parts.settings.outranked_patience_s else None

    def _held_back_s(self, known: CachedObject, status: StatusT, memory: MemoryT) -> float | None:
        """Seconds until a mere detail may be written; None: write now, or nothing to write.

        While brokers restart, in-sync replicas come and go by the thousand. People look at
        conditions; the rest may be some seconds old. So may what somebody else (a Regent of another
        Kafka cluster) overwrites again and again: else both would write without end.
        """
        if memory.written_at is None:
            return None
        before = self._kind.status_of(known)
        age_s = asyncio.get_running_loop().time() - memory.written_at
        if memory.is_significant(before, status):
            left_s = memory.contest_pause_s(status) - age_s
        else:
            left_s = self._parts.settings.status_detail_interval_s - age_s
        if left_s <= 0:
            return None
        return left_s if before.to_api() != status.to_api() else None
