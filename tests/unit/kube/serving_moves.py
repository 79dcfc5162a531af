"""One resource that moves partitions, served by one process after another.

The real controller over a simulated cluster, whose safety checker follows every step, and an API
server in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry

from regent.kube.command_batcher import CommandBatcher
from regent.kube.copy_watch import CopyWatch
from regent.kube.event_recorder import EventRecorder
from regent.kube.health import KubeHealth
from regent.kube.kind_wiring import KindSurroundings
from regent.kube.metrics import ResourceMetrics
from regent.kube.object_cache import ObjectKey
from regent.kube.served_kind import ServedKind
from regent.kube.settings import KubeSettings
from regent.kube.work_queue import WorkQueue
from regent.kube.worker import work
from regent.model.entry_budget import EntryBudget
from regent.reconcile.request import Absence
from regent.runtime.ports import ReplicaSizesPort
from sandbox import wait_until_async
from tests.support.live_controller import LiveController
from tests.unit.kube.stored_objects import Store

Serve = Callable[[KindSurroundings], ServedKind]


class ServedResource:
    """One resource of a kind.

    Args:
        serve: Makes what serves the kind.
        name: Of the kind.

    Attributes:
        replica_sizes: Answers how far copies are; None: brokers are not asked.
    """

    def __init__(self, serve: Serve, name: str, **spec: Any) -> None:
        self.serve = serve
        self.replica_sizes: ReplicaSizesPort | None = None
        self.key = ObjectKey(name, "shop", "move")
        self.store = Store(
            {
                "metadata": {
                    "name": "move",
                    "namespace": "shop",
                    "uid": "u1",
                    "generation": 1,
                    "resourceVersion": "1",
                },
                "spec": spec,
                "status": {},
            }
        )

    @property
    def body(self) -> dict[str, Any]:
        assert self.store.stored is not None
        return self.store.stored

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.body["status"]
        return status

    @contextlib.asynccontextmanager
    async def served(self, controller: LiveController) -> AsyncIterator[Serving]:
        """By a process that has just started."""
        serving = Serving(self, controller)
        tasks = serving.start()
        try:
            yield serving
        finally:
            serving.is_open = False
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            serving.queue.close()

    async def wait_for(self, phase: str) -> None:
        await wait_until_async(
            # The first plan compiles the planner: that takes a busy machine more than a minute.
            lambda: self.status.get("phase"),
            until=lambda now: now == phase,
            describe=f"phase {phase}",
        )


class Serving:
    """What serves it in one process."""

    def __init__(self, resource: ServedResource, controller: LiveController) -> None:
        def now() -> datetime:
            return datetime.now(UTC)

        self.is_open = True
        self.queue: WorkQueue[ObjectKey] = WorkQueue(jitter=lambda: 1.0)
        self._loop = asyncio.get_running_loop()
        self._controller = controller
        self._resource = resource
        self._metrics = ResourceMetrics(CollectorRegistry())
        self._batcher = CommandBatcher(controller, timeout_s=30)
        self._recorder = EventRecorder(resource.store, now=now, instance="pod")
        self.copies = CopyWatch(
            resource.replica_sizes,
            view=lambda: controller.view,
            now=now,
            on_news=self._enqueue,
            interval_s=0.05,
        )
        self.around = KindSurroundings(
            client=resource.store,
            settings=KubeSettings(status_detail_interval_s=0.1),
            view=lambda: controller.view,
            absence=lambda _: Absence(),
            batcher=self._batcher,
            recorder=self._recorder,
            metrics=self._metrics,
            health=KubeHealth(),
            now=now,
            jitter=lambda: 1.0,
            enqueue=self._enqueue,
            compare_everything=lambda _: None,
            copies=self.copies,
        )
        self._kind = resource.serve(self.around)

    def start(self) -> list[asyncio.Task[None]]:
        self._controller.subscribe(self._on_view_changed)
        self._kind.view_replaced()
        self.take()
        reconcile = self._kind.reconciler.reconcile
        return [
            asyncio.create_task(self.copies.run()),
            asyncio.create_task(self._batcher.run()),
            asyncio.create_task(self._recorder.run()),
            asyncio.create_task(
                work(self.queue, reconcile, metrics=self._metrics, entries=EntryBudget())
            ),
            *self._start_duty(),
        ]

    def _start_duty(self) -> list[asyncio.Task[None]]:
        if self._kind.duty is None:
            return []
        known = asyncio.Event()
        known.set()
        return [asyncio.create_task(self._kind.duty(known))]

    def delete(self) -> None:
        """Somebody deletes the resource."""
        self._kind.cache.delete(self._resource.key, uid="u1")
        self._resource.store.stored = None

    def take(self) -> None:
        """The watch shows the newest version."""
        self._kind.cache.put(copy.deepcopy(self._resource.body))
        self.queue.add(self._resource.key)

    def change(self, **spec: Any) -> None:
        """Somebody changes the spec."""
        body = self._resource.body
        body["spec"] |= spec
        self._resource.store.change(generation=body["metadata"]["generation"] + 1)
        self.take()

    def _on_view_changed(self, topics: frozenset[str] | None) -> None:
        if self.is_open:
            self._loop.call_soon_threadsafe(self._on_view, topics)

    def _on_view(self, topics: frozenset[str] | None) -> None:
        if topics is None:
            self._kind.view_replaced()
            self._enqueue(frozenset(self._kind.cache.keys()))
        else:
            self._enqueue(self._kind.topics_changed(topics))

    def _enqueue(self, keys: frozenset[ObjectKey]) -> None:
        for key in keys:
            self.queue.add(key)
