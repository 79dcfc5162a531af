"""Runs the Kubernetes side: everything between the API server and the controller.

::

    watch (kopf) ─┐                                        ┌─► commands ─► controller
    list, resync ─┼─► object cache ─► work queue ─► workers ┼─► status, finalizers
    view changed ─┘                                        └─► Events

A list comes first: who owns a topic depends on all resources that declare it, so nothing may be
decided before all of them are known. kopf keeps watching from there. What its stream does not show
is looked up, and a list every few minutes finds what a watch has lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import weakref
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from prometheus_client import CollectorRegistry

from regent.controller.view import ClusterView
from regent.kube.absences import Absences
from regent.kube.client import KubeClient
from regent.kube.cluster_knowledge import ClusterKnowledge
from regent.kube.command_batcher import CommandBatcher
from regent.kube.copy_watch import CopyWatch
from regent.kube.errors import KubeApiError, KubeError
from regent.kube.event_recorder import EventRecorder
from regent.kube.health import KubeHealth
from regent.kube.kind_wiring import (
    KindSurroundings,
    serve_broker_drains,
    serve_kafka_topics,
    serve_partition_reassignments,
)
from regent.kube.kopf_runner import KopfOptions
from regent.kube.metrics import ResourceMetrics
from regent.kube.object_cache import ObjectKey
from regent.kube.rebalance_planning import PlanningTools
from regent.kube.reconciler import Reconciled, warning_of
from regent.kube.served_kind import ServedKind
from regent.kube.settings import KubeSettings
from regent.kube.shared_clock import own_time, shared_clock
from regent.kube.waiting import cancel
from regent.kube.work_queue import WorkQueue
from regent.kube.worker import work
from regent.model.entry_budget import EntryBudget
from regent.model.topic_config import kinds_of_brokers
from regent.runtime.ports import BrokerQuestionsPort, ControllerPort


class KubeOperator:
    """All parts of the Kubernetes side, wired. :func:`run_kube` runs one.

    Attributes:
        refused: Resources to which the API server refuses what is written, or stores something
            else.
    """

    def __init__(
        self,
        controller: ControllerPort,
        settings: KubeSettings,
        *,
        client: KubeClient,
        metrics: ResourceMetrics | None,
        health: KubeHealth,
        why_inactive: Callable[[], str | None],
        planning: PlanningTools | None = None,
        broker_questions: BrokerQuestionsPort | None = None,
        knowledge: ClusterKnowledge | None = None,
    ) -> None:
        jitter, clock = random.random, shared_clock(client)  # chance that is no secret
        self._controller = controller
        self._settings = settings
        self._absences = Absences(controller, settings, knowledge, why_inactive=why_inactive)
        self._broker_questions = broker_questions
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._epoch = controller.view.controller_epoch
        self._brokers = controller.view.placement_terms
        self._broker_kinds = kinds_of_brokers(controller.view.broker_facts)
        self._metrics = metrics or ResourceMetrics(CollectorRegistry())
        self.queue = WorkQueue[ObjectKey](jitter=jitter, on_idle=lambda: self.recorder.wake())
        self.refused: set[ObjectKey] = set()
        self.batcher = CommandBatcher(controller, timeout_s=settings.submit_timeout_s)
        self.recorder = EventRecorder(
            client,
            now=own_time,
            instance=socket.gethostname(),
            is_busy=lambda: not self.queue.is_idle,
        )
        self.copies = CopyWatch(
            broker_questions, view=lambda: controller.view, now=clock, on_news=self._enqueue
        )
        surroundings = KindSurroundings(
            client=client,
            settings=settings,
            view=lambda: controller.view,
            absence=self._absences.of,
            batcher=self.batcher,
            recorder=self.recorder,
            metrics=self._metrics,
            health=health,
            now=clock,
            jitter=jitter,
            enqueue=self._enqueue,
            compare_everything=self._compare_everything,
            on_step=self.queue.moved,
            planning=planning,
            copies=self.copies,
        )
        self.kafka_topics = serve_kafka_topics(surroundings)
        self.partition_reassignments = serve_partition_reassignments(surroundings)
        self.broker_drains = serve_broker_drains(surroundings)
        self.kinds: dict[str, ServedKind] = {
            served.kind.kind: served
            for served in (self.kafka_topics, self.partition_reassignments, self.broker_drains)
        }

    @property
    def writes(self) -> int:
        """Requests that changed an object, since the start."""
        return sum(served.writer.writes for served in self.kinds.values())

    @property
    def reconciliations(self) -> int:
        """How many so far, of all kinds."""
        return sum(served.reconciler.reconciliations for served in self.kinds.values())

    def start(self) -> list[asyncio.Task[None]]:
        """Start the tasks that do the work and listen to the controller."""
        self._controller.subscribe(_weak_listener(self))
        for served in self.kinds.values():
            served.view_replaced()
        names = [
            ("command batcher", self.batcher.run()),
            ("event recorder", self.recorder.run()),
            ("copy watch", self.copies.run()),
        ]
        for kind, served in self.kinds.items():
            names.extend((f"{name} {kind}", each) for name, each in served.background())
        entries = EntryBudget()
        names.extend(
            (
                f"worker {index}",
                work(self.queue, self._reconcile, metrics=self._metrics, entries=entries),
            )
            for index in range(self._settings.concurrency)
        )
        return [asyncio.create_task(coroutine, name=f"kube {name}") for name, coroutine in names]

    def watch(
        self, *, stop_event: asyncio.Event, on_signal: Callable[[], None]
    ) -> list[asyncio.Task[None]]:
        """Start to watch, each kind by itself: one that cannot be read keeps no other waiting."""
        watches: list[asyncio.Task[None]] = []
        for kind, served in self.kinds.items():
            options = KopfOptions(
                kinds=[served.kind],
                on_event=self.on_event,
                on_signal=on_signal,
                ready_flag=served.watch.watching,
                page_size=self._settings.page_size,
            )
            running = served.watch.run(options, stop_event=stop_event)
            watches.append(asyncio.create_task(running, name=f"kube watch {kind}"))
        return watches

    async def flag_readiness(self, ready_flag: asyncio.Event | None) -> None:
        """Set ``ready_flag`` once the resources of all kinds are known and watched. Those of one
        are served as soon as they are."""
        for served in self.kinds.values():
            await served.watch.watching.wait()
        if ready_flag is not None:
            ready_flag.set()

    def close(self) -> None:
        """Ignore events and views from now on, and ask brokers nothing."""
        self._is_open = False
        if self._broker_questions is not None:
            self._broker_questions.close()
        self.queue.close()

    def on_event(self, kind: str, type_: str | None, body: Mapping[str, Any]) -> None:
        """Take in an event of kopf's stream; the type is None if it is from a list of kopf."""
        self._enqueue(self.kinds[kind].watch.take(type_, body))

    async def _reconcile(self, key: ObjectKey) -> Reconciled:
        try:
            reconciled = await self.kinds[key.kind].reconciler.reconcile(key)
        except KubeError as error:
            if warning_of(error) is not None:
                self.refused.add(key)
            if isinstance(error, KubeApiError) and error.status == HTTPStatus.FORBIDDEN:
                self.kinds[key.kind].resync.request_refused()
            raise
        self.refused.discard(key)
        return reconciled

    def _compare_everything(self, kind: str) -> None:
        """After a resync: whatever a watch or a notification has lost shows now."""
        self.kinds[kind].all_changed()
        keys = self.kinds[kind].cache.keys()
        for index, key in enumerate(keys):
            self.queue.add_after(key, self._settings.resync_spread_s * index / len(keys))

    def _enqueue(self, keys: frozenset[ObjectKey]) -> None:
        for key in sorted(keys):
            self.queue.add(key)

    def on_view_changed(self, topics: frozenset[str] | None) -> None:
        """There is a new view. Called in the controller's thread."""
        if not self._is_open:
            return
        # The loop may end between the question and the call.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._on_view, topics)

    def _on_view(self, topics: frozenset[str] | None) -> None:
        view = self._controller.view
        self._absences.look()
        brokers, self._brokers = self._brokers, view.placement_terms
        has_other_kinds = brokers != self._brokers and self._has_other_kinds_of_brokers(view)
        epoch = view.controller_epoch
        if epoch != self._epoch:
            self._epoch = epoch
            for served in self.kinds.values():
                served.all_changed()
        for served in self.kinds.values():
            if topics is None:
                served.view_replaced()
                self._enqueue(frozenset(served.cache.keys()))
                continue
            if has_other_kinds:
                # What brokers could load so far, one that is set up otherwise may not.
                self._enqueue(frozenset(served.cache.keys()))
            elif brokers != self._brokers:
                # What cannot be done may have waited for a broker, for another version of one, or
                # for the end of a cordon.
                self._enqueue(served.cache.keys_not_ready())
            self._enqueue(served.topics_changed(topics))

    def _has_other_kinds_of_brokers(self, view: ClusterView) -> bool:
        """Whether some broker is set up otherwise than all that were known. The first that answer
        are no news: statuses are older than this process, or this term."""
        before, now = self._broker_kinds, kinds_of_brokers(view.broker_facts)
        if not now:
            return False
        self._broker_kinds = now
        return bool(before) and any(kind not in before for kind in now)


def _client(settings: KubeSettings) -> KubeClient:
    return KubeClient(
        max_connections=settings.max_connections, request_timeout_s=settings.request_timeout_s
    )


async def run_kube(
    controller: ControllerPort,
    settings: KubeSettings,
    *,
    stop_event: asyncio.Event,
    ready_flag: asyncio.Event | None = None,
    on_signal: Callable[[], None] | None = None,
    client: KubeClient | None = None,
    metrics: ResourceMetrics | None = None,
    health: KubeHealth | None = None,
    why_inactive: Callable[[], str | None] = lambda: None,
    on_operator: Callable[[KubeOperator], None] | None = None,
    planning: PlanningTools | None = None,
    broker_questions: BrokerQuestionsPort | None = None,
    knowledge: ClusterKnowledge | None = None,
) -> None:
    """Serve the custom resources until ``stop_event`` is set.

    Args:
        ready_flag: Set once all resources are known and watched.
        on_signal: Called for SIGTERM and SIGINT in the main thread; default: sets ``stop_event``.
        client: API client; default: one with the credentials of the environment. It is not closed
            if given.
        metrics: Counters of this process; default: some that are not exported.
        health: Where namespaces that cannot be read are named; default: nowhere.
        why_inactive: Returns why this process is not the controller, for people.
        on_operator: Called with the operator before it starts, for metrics and tests.
        planning: What plans for spec.rebalance are made with; None: there is no planner.
        broker_questions: Asks brokers what only they know; None: statuses do without it.
        knowledge: Since when nobody has known the cluster; default: one that begins now.

    Raises:
        Exception: A defect in one of the tasks that do the work. Whatever is wrong with the API
            server is logged and tried again.
    """
    async with contextlib.AsyncExitStack() as stack:
        if client is None:
            client = await stack.enter_async_context(_client(settings))
        operator = KubeOperator(
            controller,
            settings,
            client=client,
            metrics=metrics,
            health=health or KubeHealth(),
            why_inactive=why_inactive,
            planning=planning,
            broker_questions=broker_questions,
            knowledge=knowledge,
        )
        stack.callback(operator.close)
        if on_operator is not None:
            on_operator(operator)
        tasks = operator.start()
        stack.push_async_callback(cancel, tasks)
        stack.push_async_callback(operator.recorder.finish)
        over = asyncio.Event()
        watches = operator.watch(stop_event=over, on_signal=on_signal or stop_event.set)
        stack.push_async_callback(_end, watches, over)
        starting = asyncio.create_task(operator.flag_readiness(ready_flag), name="kube start")
        stopping = asyncio.create_task(stop_event.wait(), name="kube stop")
        stack.push_async_callback(cancel, (starting, stopping))
        await asyncio.wait((stopping, *tasks, *watches), return_when=asyncio.FIRST_COMPLETED)
        for task in (*tasks, *watches):
            if task.done():
                # None of them ends by itself: this raises what ended it.
                await task


async def _end(watches: list[asyncio.Task[None]], stop_event: asyncio.Event) -> None:
    """Let kopf end in its own way."""
    stop_event.set()
    try:
        await asyncio.wait(watches)
    finally:
        await cancel(watches)


def _weak_listener(operator: KubeOperator) -> Callable[[frozenset[str] | None], None]:
    """A listener that keeps nothing alive: it cannot be unsubscribed, and each run has an
    operator of its own.
    """
    reference = weakref.ref(operator)

    def listener(topics: frozenset[str] | None) -> None:
        alive = reference()
        if alive is not None:
            alive.on_view_changed(topics)

    return listener
