"""The Kubernetes side of the process: who serves, supervised for the life of the process."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from regent.kube.client import KubeClient
from regent.kube.cluster_knowledge import ClusterKnowledge
from regent.kube.health import KubeHealth
from regent.kube.leadership import Leadership
from regent.kube.lease import Lease
from regent.kube.metrics import ResourceMetrics, ServingState
from regent.kube.operator import KubeOperator, run_kube
from regent.kube.rebalance_planning import PlanningTools
from regent.kube.service_account import own_namespace
from regent.kube.settings import KubeSettings
from regent.kube.supervisor import supervise
from regent.kube.waiting import cancel, first_of, unless_set
from regent.reconcile.other_regent import describe_scope
from regent.runtime.ports import BrokerQuestionsPort, ControllerPort

_OF_DURATION: Final = 2 / 3
"""Of the Lease's duration: how long the answer to a request about it may take."""


class KubernetesSide:
    """Serves custom resources in a term, and looks after them outside any term.

    Args:
        why_inactive: Returns why there is no controller here; called in the main loop.
        on_signal: Called for SIGTERM and SIGINT.
        planning: What plans for spec.rebalance are made with; None: there is no planner.
        broker_questions: As for :func:`~regent.kube.operator.run_kube`.
        on_serving: Called in the main loop when serving begins, and when it ends.

    Attributes:
        operator: What serves now; None while another replica does.
    """

    def __init__(
        self,
        controller: ControllerPort,
        settings: KubeSettings,
        *,
        why_inactive: Callable[[], str | None],
        on_signal: Callable[[], None],
        health: KubeHealth,
        metrics: ResourceMetrics,
        planning: PlanningTools | None = None,
        broker_questions: BrokerQuestionsPort | None = None,
        on_serving: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self.operator: KubeOperator | None = None
        self._controller = controller
        self._settings = settings
        self._why_inactive = why_inactive
        self._on_signal = on_signal
        self._health = health
        self._metrics = metrics
        self._planning = planning
        self._broker_questions = broker_questions
        self._on_serving = on_serving
        self._knowledge = ClusterKnowledge(controller)
        self._leadership = Leadership(
            duration_s=settings.lease_duration_s,
            retry_s=settings.lease_retry_s,
            on_rival=self._notice_rival,
            on_other_cluster=self._notice_other_cluster,
            on_problem=self._health.keeps_lease,
        )

    def set_elected(self, is_elected: bool) -> None:
        """This process is, or is no longer, the elected replica. To be called in the main loop."""
        self._leadership.set_elected(is_elected)

    def state(self) -> ServingState:
        """What this replica does now. May be called in any thread."""
        operator, leadership = self.operator, self._leadership
        return ServingState(
            is_elected=leadership.term.is_on,
            is_serving=leadership.serving.is_on,
            queued=0 if operator is None else len(operator.queue),
            oldest_s=0.0 if operator is None else operator.queue.oldest_s(),
            stalled_s=0.0 if operator is None else operator.queue.stalled_s(),
            refused=0 if operator is None else len(operator.refused),
        )

    def stall(self) -> str | None:
        """Say since when the work on custom resources is stuck; None: it is not. May be called in
        any thread."""
        stalled_s = self.state().stalled_s
        if stalled_s <= self._settings.stuck_after_s:
            return None
        return (
            f"work on custom resources has been stuck for {stalled_s:.0f} s: keep the log, and "
            "restart this Regent if the work does not go on"
        )

    async def run(self, stop_event: asyncio.Event) -> None:
        """Serve whenever it is this replica's turn, until ``stop_event`` is set. A defect is logged
        and followed by another attempt."""
        self._controller.subscribe(self._cluster_listener())
        await supervise(
            lambda: self._live(stop_event),
            stop_event=stop_event,
            health=self._health,
            jitter=random.random,
        )

    def _cluster_listener(self) -> Callable[[frozenset[str] | None], None]:
        """Called in the controller's thread. The Lease depends on the cluster, and must not wait
        for its next renewal."""
        loop, cluster_id = asyncio.get_running_loop(), self._knowledge.cluster_id

        def listener(_: frozenset[str] | None) -> None:
            nonlocal cluster_id
            before, cluster_id = cluster_id, self._knowledge.cluster_id
            if cluster_id != before:
                # The loop may have ended.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._leadership.look_again)

        return listener

    async def _live(self, stop_event: asyncio.Event) -> None:
        async with contextlib.AsyncExitStack() as stack:
            settings = self._settings
            client = await stack.enter_async_context(
                self._client(settings.max_connections, settings.request_timeout_s)
            )
            # On a connection of its own: behind hundreds of writes the Lease would expire, and
            # another replica would say that there is no controller. Where one connection is dead
            # without a word, there is time for another one.
            patience_s = min(settings.request_timeout_s, _OF_DURATION * settings.lease_duration_s)
            apart = await stack.enter_async_context(self._client(1, patience_s))
            keeping = asyncio.create_task(self._leadership.run(self._lease(apart)), name="lease")
            stack.push_async_callback(cancel, (keeping,))
            serving = self._leadership.serving
            while not stop_event.is_set() and not keeping.done():
                if not await unless_set(_first_done(keeping, serving.begun), stop_event):
                    return
                if serving.is_on:
                    await self._serve(client, stop_event)
            if keeping.done():
                await keeping

    async def _serve(self, client: KubeClient, stop_event: asyncio.Event) -> None:
        over = asyncio.Event()
        ending = asyncio.create_task(_relay(self._leadership.serving.over, stop_event, to=over))
        self._on_serving(True)
        try:
            await run_kube(
                self._controller,
                self._settings,
                stop_event=over,
                on_signal=self._on_signal,
                client=client,
                metrics=self._metrics,
                health=self._health,
                why_inactive=self._why_inactive,
                on_operator=self._set_operator,
                planning=self._planning,
                broker_questions=self._broker_questions,
                knowledge=self._knowledge,
            )
        finally:
            self._on_serving(False)
            self.operator = None
            self._health.ended()
            await cancel((ending,))

    def _set_operator(self, operator: KubeOperator) -> None:
        self.operator = operator

    def _notice_rival(self, rival: str | None) -> None:
        self._health.shares_lease(
            rival
            and f"the Lease {self._settings.lease} is also that of another Regent, which serves "
            f"{rival}: in client mode only one of the two serves anything; give each a lease_name "
            "of its own"
        )

    def _notice_other_cluster(self, cluster_id: str | None) -> None:
        self._health.leaves_resources_to(
            cluster_id
            and f"the holder of the Lease {self._settings.lease} controls Kafka cluster "
            f"{cluster_id}, this replica {self._knowledge.cluster_id}: it serves no custom "
            "resources as long as that is so. Replicas of one Regent have one cluster: if the "
            "setting zookeeper leads elsewhere now, stop the replicas that were started before; a "
            "Regent for another cluster needs a lease_name and a cluster_name of its own"
        )

    def _client(self, max_connections: int, request_timeout_s: float) -> KubeClient:
        return KubeClient(
            max_connections=max_connections,
            request_timeout_s=request_timeout_s,
            on_request=self._metrics.requested,
            on_wait=self._metrics.waited,
        )

    def _lease(self, client: KubeClient) -> Lease:
        return Lease(
            client,
            namespace=self._settings.lease_namespace or own_namespace(),
            name=self._settings.lease_name,
            identity=f"{socket.gethostname()}_{uuid.uuid4()}",
            serves=describe_scope(self._settings.served_resources),
            duration_s=self._settings.lease_duration_s,
            knowledge=self._knowledge,
            now=lambda: datetime.now(UTC),
        )


async def _relay(*events: asyncio.Event, to: asyncio.Event) -> None:
    await first_of(*events)
    to.set()


async def _first_done(task: asyncio.Task[None], event: asyncio.Event) -> None:
    """Return when the task has ended, however it did, or the event is set."""
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel((waiting,))
