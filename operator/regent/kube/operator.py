"""Runs the Kubernetes side: everything between the API server and the controller.

::

    watch (kopf) ─┐                                        ┌─► commands ─► controller
    list, resync ─┼─► object cache ─► work queue ─► workers ┼─► status, finalizers
    view changed ─┘                                        └─► Events

A list comes first: who owns a topic depends on all resources that declare it, so nothing may be
decided before all of them are known. kopf keeps watching from there, and a list every few minutes
finds what a watch has lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
import socket
import threading
import uuid
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import kopf
from prometheus_client import CollectorRegistry

from regent.kube.client import KubeClient
from regent.kube.command_batcher import CommandBatcher
from regent.kube.errors import KubeError
from regent.kube.event_recorder import EventRecorder
from regent.kube.handlers import HandlerContext, Probe, build_registry, build_settings
from regent.kube.listing import list_topics
from regent.kube.metrics import ResourceMetrics
from regent.kube.object_cache import ObjectCache, ObjectKey
from regent.kube.settings import KubeSettings
from regent.kube.status_writer import StatusWriter
from regent.kube.topic_configs import TopicConfigs
from regent.kube.topic_reconciler import ReconcilerParts, TopicReconciler
from regent.kube.work_queue import WorkQueue, backoff_s
from regent.kube.worker import work
from regent.runtime.ports import ControllerPort

logger = logging.getLogger(__name__)

_FLUSH_TIMEOUT_S: Final = 5.0

_SECOND_LIST_AFTER_S: Final = 15.0


class KubeOperator:
    """All parts of the Kubernetes side, wired. :func:`run_kube` runs one."""

    def __init__(
        self,
        controller: ControllerPort,
        settings: KubeSettings,
        *,
        client: KubeClient,
        metrics: ResourceMetrics | None,
    ) -> None:
        def now() -> datetime:
            return datetime.now(UTC)

        jitter = random.random  # no secret
        self._controller = controller
        self._settings = settings
        self._client = client
        self._jitter = jitter
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._epoch = controller.view.controller_epoch
        self.cache = ObjectCache()
        self.queue: WorkQueue[ObjectKey] = WorkQueue(jitter=jitter)
        self.configs = TopicConfigs()
        self.batcher = CommandBatcher(controller, timeout_s=settings.submit_timeout_s)
        self.writer = StatusWriter(client, self.cache, on_news=self._enqueue)
        self.recorder = EventRecorder(client, now=now, instance=socket.gethostname())
        self.reconciler = TopicReconciler(
            ReconcilerParts(
                cache=self.cache,
                configs=self.configs,
                batcher=self.batcher,
                writer=self.writer,
                recorder=self.recorder,
                metrics=metrics or ResourceMetrics(CollectorRegistry()),
                settings=settings,
                view=lambda: controller.view,
                now=now,
                jitter=jitter,
                new_topic_id=uuid.uuid4,
            )
        )

    async def load(self) -> None:
        """List all resources; waits for the API server and for the CRD as long as it takes."""
        failures = 0
        while True:
            try:
                bodies, version = await list_topics(self._client, self._settings)
            except KubeError as error:
                failures += 1
                delay_s = self.delay_after(failures)
                logger.warning("Listing KafkaTopics again in %.1f s: %s", delay_s, error)
                await asyncio.sleep(delay_s)
                continue
            self._enqueue(self.cache.replace_all(bodies, listed_version=version))
            logger.info("Serving %d KafkaTopics", len(self.cache))
            return

    def delay_after(self, failures: int) -> float:
        """Seconds to wait after failures in a row of something that everything depends on."""
        return backoff_s(min(failures, 5), jitter=self._jitter())

    def start(self) -> list[asyncio.Task[None]]:
        """Start the tasks that do the work and listen to the controller."""
        self._controller.subscribe(_weak_listener(self))
        names = [("command batcher", self.batcher.run()), ("event recorder", self.recorder.run())]
        names.append(("resync", self._resync()))
        names.extend(
            (f"worker {index}", work(self.queue, self.reconciler.reconcile))
            for index in range(self._settings.concurrency)
        )
        return [asyncio.create_task(coroutine, name=f"kube {name}") for name, coroutine in names]

    def close(self) -> None:
        """Take no more notice of anything."""
        self._is_open = False
        self.queue.close()

    def on_event(self, type_: str | None, body: Mapping[str, Any]) -> None:
        """Take in a watch event."""
        if type_ == "DELETED":
            metadata = body["metadata"]
            key = ObjectKey(metadata.get("namespace", ""), metadata["name"])
            self._enqueue(self.cache.remove(key, uid=metadata.get("uid", "")))
        else:
            self._enqueue(self.cache.put(body))

    def check_queue(self) -> dict[str, float]:
        """Liveness probe: work moves. May be called in any thread.

        Raises:
            RuntimeError: If there is work and none of it was finished for too long.
        """
        stalled_s = self.queue.stalled_s()
        if stalled_s > self._settings.stuck_after_s:
            raise RuntimeError(f"no resource has been dealt with for {stalled_s:.0f} s")
        return {"queued": float(len(self.queue)), "stalled_s": round(stalled_s, 1)}

    def _enqueue(self, keys: frozenset[ObjectKey]) -> None:
        for key in sorted(keys):
            self.queue.add(key)

    def hear(self, topics: frozenset[str] | None) -> None:
        """Take notice of a new view. Called in the controller's thread."""
        if not self._is_open:
            return
        # The loop may end between the question and the call: then nobody is left to be told.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._on_view, topics)

    def _on_view(self, topics: frozenset[str] | None) -> None:
        epoch = self._controller.view.controller_epoch
        if epoch != self._epoch:
            self._epoch = epoch
            self.configs.invalidate_all()
        if topics is None:
            self._enqueue(frozenset(self.cache.keys()))
            return
        for topic in sorted(topics):
            keys = self.cache.keys_of_topic(topic)
            if keys:
                self.configs.invalidate(topic)
                self._enqueue(frozenset(keys))

    async def _resync(self) -> None:
        """List and compare everything every few minutes."""
        # What was deleted between the first list and the beginning of the watch is in neither.
        await asyncio.sleep(_SECOND_LIST_AFTER_S)
        await self._list_again()
        while True:
            await asyncio.sleep(self._settings.resync_interval_s * (0.9 + 0.2 * self._jitter()))
            await self._list_again()
            self.configs.invalidate_all()
            keys = self.cache.keys()
            for index, key in enumerate(keys):
                self.queue.add_after(key, self._settings.resync_spread_s * index / len(keys))

    async def _list_again(self) -> None:
        try:
            bodies, version = await list_topics(self._client, self._settings)
        except KubeError as error:
            logger.warning("Listing KafkaTopics failed, the next resync will tell: %s", error)
            return
        missed = self.cache.replace_all(bodies, listed_version=version)
        if missed:
            logger.info("A list showed changes of %d KafkaTopics", len(missed))
        self._enqueue(missed)


async def run_kube(
    controller: ControllerPort,
    settings: KubeSettings,
    *,
    stop_event: asyncio.Event,
    ready_flag: asyncio.Event | None = None,
    probes: Mapping[str, Probe] | None = None,
    on_signal: Callable[[], None] | None = None,
    client: KubeClient | None = None,
    metrics: ResourceMetrics | None = None,
    on_operator: Callable[[KubeOperator], None] | None = None,
) -> None:
    """Serve the custom resources until ``stop_event`` is set.

    Args:
        ready_flag: Set once all resources are known and watched.
        probes: Further liveness probes by name, for ``settings.liveness_endpoint``.
        on_signal: Called for SIGTERM and SIGINT, if this runs in the main thread; default: sets
            ``stop_event``. (kopf would stop at once, before the controller has handed over.)
        client: API client; default: one with the credentials of the environment. It is not closed
            if given.
        metrics: Counters of this process; default: some that nobody reads.
        on_operator: Told of the operator before it starts, for metrics and tests.

    Raises:
        Exception: A defect in one of the tasks that do the work. Whatever is wrong with the API
            server is logged and tried again.
    """
    async with contextlib.AsyncExitStack() as stack:
        if client is None:
            client = await stack.enter_async_context(
                KubeClient(
                    max_connections=settings.max_connections,
                    request_timeout_s=settings.request_timeout_s,
                )
            )
        operator = KubeOperator(controller, settings, client=client, metrics=metrics)
        stack.callback(operator.close)
        if on_operator is not None:
            on_operator(operator)
        if not await _unless_stopped(operator.load(), stop_event):
            return
        tasks = operator.start()
        stack.push_async_callback(_cancel, tasks)
        stack.push_async_callback(_flush, operator.recorder)
        failures = 0
        while not stop_event.is_set():
            try:
                await _run_kopf(
                    operator,
                    settings,
                    tasks=tasks,
                    stop_event=stop_event,
                    ready_flag=ready_flag,
                    probes=dict(probes or {}),
                    on_signal=on_signal or stop_event.set,
                )
            except Exception:
                # The API server took a right away, the CRD went: no reason for the Kafka cluster to
                # lose its controller, which lives in this process, too.
                failures += 1
                delay_s = operator.delay_after(failures)
                logger.exception("Watching failed, beginning anew in %.1f s", delay_s)
                await _unless_stopped(asyncio.sleep(delay_s), stop_event)
                await _unless_stopped(operator.load(), stop_event)
            for task in tasks:
                if task.done():
                    # None of them ends by itself: this raises what ended it.
                    await task


async def _run_kopf(
    operator: KubeOperator,
    settings: KubeSettings,
    *,
    tasks: list[asyncio.Task[None]],
    stop_event: asyncio.Event,
    ready_flag: asyncio.Event | None,
    probes: dict[str, Probe],
    on_signal: Callable[[], None],
) -> None:
    """Run kopf until ``stop_event`` is set or one of the tasks fails."""
    kopf_stop = asyncio.Event()
    stopping = asyncio.create_task(stop_event.wait(), name="kube stop")
    watched = {stopping, *tasks}
    for task in watched:
        task.add_done_callback(lambda _: kopf_stop.set())
    kopf_tasks = await kopf.spawn_tasks(
        registry=build_registry({"queue": operator.check_queue, **probes}),
        settings=build_settings(),
        standalone=True,
        clusterwide=not settings.namespaces,
        namespaces=settings.namespaces,
        liveness_endpoint=settings.liveness_endpoint,
        stop_flag=kopf_stop,
        ready_flag=ready_flag,
        memo=HandlerContext(on_event=operator.on_event),
    )
    if threading.current_thread() is threading.main_thread():
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal)
    try:
        await kopf.run_tasks(kopf_tasks, ignored=_AnyTask())
    finally:
        kopf_stop.set()
        await _cancel([stopping])


def _weak_listener(operator: KubeOperator) -> Callable[[frozenset[str] | None], None]:
    """A listener that keeps nothing alive: nobody can unsubscribe, and each term has an operator
    of its own.
    """
    reference = weakref.ref(operator)

    def listener(topics: frozenset[str] | None) -> None:
        alive = reference()
        if alive is not None:
            alive.hear(topics)

    return listener


class _AnyTask(Collection["asyncio.Task[Any]"]):
    """Holds every task there is. What kopf is told to ignore at its end.

    kopf cancels all tasks of the loop that did not exist when it began, whoever made them. It ends
    its own ones through its root tasks, so nothing of its own is left over by ignoring all others.
    """

    def __contains__(self, task: object) -> bool:
        return True

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return iter(asyncio.all_tasks())

    def __len__(self) -> int:
        return len(asyncio.all_tasks())


async def _unless_stopped(coroutine: Any, stop_event: asyncio.Event) -> bool:
    """Await a coroutine; False if ``stop_event`` came first and it was cancelled."""
    running = asyncio.ensure_future(coroutine)
    stopping = asyncio.ensure_future(stop_event.wait())
    try:
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            return False
        await running
        return True
    finally:
        await _cancel([running, stopping])


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _flush(recorder: EventRecorder) -> None:
    try:
        await asyncio.wait_for(recorder.flush(), timeout=_FLUSH_TIMEOUT_S)
    except TimeoutError:
        logger.warning("Some Events were not sent before the end")
