"""Has the plans made that resources want: a snapshot is taken, the planner is started, the outcome
is kept until the resource has no use for it any more.

Child processes plan one at a time, jobs on Spark side by side (``planning_turns.py``). A resource
that does not want its plan any more, because it was deleted for instance, has its planner ended. At
the end of this process a child process ends, too, and so it does once this one is not the
controller any more; a job on Spark goes on, and whoever is next finds it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from regent.controller.view import ClusterView
from regent.kube.errors import KubeError
from regent.kube.object_cache import ObjectKey
from regent.kube.plan_exchange_port import PlanExchangePort
from regent.kube.plan_runner import JobRunner, PlanRunner, PlanTask
from regent.kube.planning_turns import Lane, Turn, next_turn
from regent.model.cluster import Broker
from regent.model.topic_name_rules import TopicNameRules
from regent.planning.histories import PlannerHistory
from regent.planning.orders import PlanningOrder, PlanningOutcome, live_brokers
from regent.planning.results import HistoryUnusable, PlannerFailed, PlannerMissing, PlanResult
from regent.planning.snapshot import Snapshot
from regent.planning.snapshotting import Answers, snapshot_of
from regent.planning.spark_jobs import PlanOwner, SparkPolicy, SparkTask, task_digest
from regent.planning.verification import verified

logger = logging.getLogger(__name__)

_CALLS: Final = 4
"""For so many objects the API server is asked about jobs at the same time, to find and to delete
them."""

_LOOK_AGAIN_S: Final = 1.0
"""How soon a cluster is looked at again that is not the one that a plan was ordered for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTools:
    """What jobs on Spark need.

    Attributes:
        exchange: Where their drivers fetch tasks and hand in answers.
        policy: What resources may ask for.
        concurrent_jobs: How many plans are waited for at the same time.
    """

    exchange: PlanExchangePort
    policy: SparkPolicy
    concurrent_jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningTools:
    """What plans are made with.

    Attributes:
        ask_log_dirs: Asks brokers what is in their log directories.
        runner: Makes a plan of a snapshot.
        spark: For plans that are made on Spark; None: there are none.
        history: Folder or URL of the history of the cluster; None: there is none.
    """

    ask_log_dirs: Callable[[Collection[Broker]], Awaitable[Answers]]
    runner: PlanRunner
    spark: SparkTools | None = None
    history: str | None = None


@dataclass(slots=True)
class _Wanted:
    """The plan that an object wants.

    Attributes:
        uid: Of the object.
        order: What is wanted.
        outcome: Of this order, or of one before it that was like it; None: there is none yet.
        has_job: Whether a job on Spark is there, for this order or for one before it of which
            nothing has come; None: that has not been looked at.
        making: The present step, or the last one.
    """

    uid: str
    order: PlanningOrder
    outcome: PlanningOutcome | None = None
    has_job: bool | None = None
    making: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self.outcome is None or self.outcome.order != self.order

    @property
    def may_have_job(self) -> bool:
        """Whether a job on Spark may be left that does not end by itself: one that has failed may
        have no Secret yet, and one whose end was not seen may go on."""
        failed = self.outcome is not None and isinstance(self.outcome.result, PlannerFailed)
        return self.order.spark is not None and (self.is_open or failed)


class RebalancePlanning:
    """Keeps what is wanted and what has come of it, by object.

    Args:
        tools: None: nothing can be planned here.
        jobs: Makes plans on Spark; None: there are none.
        concurrent_jobs: How many of those are made at the same time.
        view: Returns the newest view of the cluster.
        rules: Which namespaces may move which topics.
        on_news: Called with the key of an object whose plan was made, or could not be.
        look_again_s: How soon a cluster is looked at again that is not the one of an order.
    """

    def __init__(
        self,
        tools: PlanningTools | None,
        *,
        jobs: JobRunner | None = None,
        concurrent_jobs: int = 1,
        view: Callable[[], ClusterView],
        rules: TopicNameRules,
        on_news: Callable[[frozenset[ObjectKey]], None],
        look_again_s: float = _LOOK_AGAIN_S,
    ) -> None:
        self._tools = tools
        self._jobs = jobs
        self._limits = {
            Lane.LOOK: _CALLS,
            Lane.PROCESS: 1,
            Lane.JOB: concurrent_jobs,
            Lane.GIVE_UP: _CALLS,
        }
        self._view = view
        self._rules = rules
        self._on_news = on_news
        self._look_again_s = look_again_s
        self._wanted: dict[ObjectKey, _Wanted] = {}
        self._given_up: dict[ObjectKey, list[PlanOwner]] = {}
        self._under_way: dict[ObjectKey, Turn] = {}
        self._one_snapshot = asyncio.Lock()
        self._changed = asyncio.Event()

    def keep(self, key: ObjectKey, uid: str, order: PlanningOrder | None) -> None:
        """Have this plan made for an object, unless it is under way or made; None: it wants none.
        Whatever else was wanted for the object is given up."""
        known = self._wanted.get(key)
        if known is not None and known.uid == uid and known.order == order:
            return
        if known is not None:
            self._give_up(key, known, order)
        if order is None:
            return
        wanted = _Wanted(uid, order)
        if known is not None and known.uid == uid:
            if known.order.is_like(order):
                # of an earlier attempt: shown until there is another
                wanted.outcome = known.outcome
            if known.order.spark is not None:
                wanted.has_job = known.is_open and known.has_job
        self._wanted[key] = wanted
        self._changed.set()

    def _give_up(self, key: ObjectKey, known: _Wanted, order: PlanningOrder | None) -> None:
        """What was wanted is not wanted any more, but this order instead."""
        if order is None or not known.is_open:
            del self._wanted[key]  # what comes next for the object waits behind all others
        if known.making is not None:
            known.making.cancel()
        if known.may_have_job and self._is_unwanted(order):
            owner = PlanOwner(key.namespace, key.name, known.uid)
            self._given_up.setdefault(key, []).append(owner)
            self._changed.set()

    def _is_unwanted(self, order: PlanningOrder | None) -> bool:
        """Whether a job on Spark that may be left is of no use, given the present order.

        With another order on Spark, what is left of the former one makes room for that. Who is not
        the controller, or does not know the cluster yet, cannot tell: whoever is goes on with it.
        """
        if order is not None:
            return order.spark is None
        view = self._view()
        return view.may_act and view.is_complete

    def outcome_for(self, key: ObjectKey, uid: str) -> PlanningOutcome | None:
        """What has come of what an object wants; None: nothing yet."""
        known = self._wanted.get(key)
        return None if known is None or known.uid != uid else known.outcome

    async def run(self, _: asyncio.Event) -> None:
        """Make plans until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                while (turn := self._next()) is not None:
                    self._begin(group, turn)
                await self._changed.wait()

    def _next(self) -> Turn | None:
        waiting = [Turn(key, Lane.GIVE_UP) for key in self._given_up]
        waiting += [
            self._turn(key, wanted)
            for key, wanted in self._wanted.items()
            if wanted.is_open and key not in self._given_up
        ]
        return next_turn(waiting, self._under_way.values(), self._limits)

    def _turn(self, key: ObjectKey, wanted: _Wanted) -> Turn:
        if wanted.order.spark is None:
            return Turn(key, Lane.PROCESS)
        if self._jobs is not None and wanted.has_job is None:
            return Turn(key, Lane.LOOK)
        return Turn(key, Lane.JOB, goes_on=wanted.has_job is True)

    def _begin(self, group: asyncio.TaskGroup, turn: Turn) -> None:
        key = turn.key
        if turn.lane is Lane.GIVE_UP:
            task = group.create_task(self._delete_jobs(self._given_up.pop(key)), name=f"jobs {key}")
        else:
            wanted = self._wanted[key]
            step = self._look if turn.lane is Lane.LOOK else self._serve
            task = group.create_task(step(key, wanted), name=f"plan {key}")
            wanted.making = task
            if turn.lane is Lane.JOB:
                wanted.has_job = True
        self._under_way[key] = turn
        task.add_done_callback(lambda _: self._ended(key))

    def _ended(self, key: ObjectKey) -> None:
        del self._under_way[key]
        self._changed.set()

    async def _delete_jobs(self, owners: Collection[PlanOwner]) -> None:
        if self._jobs is None:
            return
        for owner in owners:
            try:
                await self._jobs.give_up(owner)
            except KubeError as error:
                logger.warning(
                    "A planner's job that nobody needs was not deleted; it ends by itself",
                    extra={"resource": f"{owner.namespace}/{owner.name}", "error": str(error)},
                )

    async def _look(self, key: ObjectKey, wanted: _Wanted) -> None:
        """Find out whether a Regent before this one has left a job."""
        assert self._jobs is not None, "else nobody looks"
        owner = PlanOwner(key.namespace, key.name, wanted.uid)
        try:
            wanted.has_job = await self._jobs.has_job(owner)
        except KubeError as error:
            wanted.has_job = False  # if there is one, it is found when it is this object's turn
            logger.warning(
                "Jobs of planners cannot be listed",
                extra={"resource": str(key), "error": str(error)},
            )

    async def _serve(self, key: ObjectKey, wanted: _Wanted) -> None:
        wanted.outcome = await self._make(key, wanted)
        if self._wanted.get(key) is wanted:
            self._on_news(frozenset({key}))

    async def _make(self, key: ObjectKey, wanted: _Wanted) -> PlanningOutcome:
        order = wanted.order
        remarks: tuple[str, ...] = ()
        try:
            result, remarks = await self._plan(key, wanted.uid, order)
        except Exception as error:
            # A defect. The resource says so, and it is tried again; others are served on.
            logger.exception("A plan could not be made", extra={"resource": str(key)})
            result = PlannerFailed(f"{type(error).__name__}: {error}")
        at = asyncio.get_running_loop().time()
        return PlanningOutcome(order=order, result=result, remarks=remarks, at=at)

    async def _plan(
        self, key: ObjectKey, uid: str, order: PlanningOrder
    ) -> tuple[PlanResult, tuple[str, ...]]:
        if self._tools is None:
            return PlannerMissing("this Regent was started without a planner"), ()
        runner = self._tools.runner if order.spark is None else self._jobs
        if runner is None:
            return PlannerMissing(
                "this Regent starts no jobs on Spark: its settings planner_exchange_port and "
                "planner_exchange_url say where their drivers reach it (docs/spark.md)"
            ), ()
        history = _history(self._tools.history, order, self._view().cluster_id)
        if isinstance(history, HistoryUnusable):
            return history, ()
        snapshot = await self._snapshot(self._tools, order)
        topics = dict.fromkeys(partition.topic for partition in snapshot.partitions)
        may_move = partial(self._rules.allow, key.namespace)
        forbidden = [name for name in topics if not may_move(name)]
        goals = replace(order.goals, pinned=tuple(sorted({*order.goals.pinned, *forbidden})))
        content = await asyncio.to_thread(snapshot.encode)
        job = None
        if order.spark is not None:
            owner = PlanOwner(key.namespace, key.name, uid)
            digest = await asyncio.to_thread(
                task_digest, owner, snapshot, goals, order.spark, history
            )
            job = SparkTask(owner, order.spark, digest, history)
        logger.info(
            "A plan is being made",
            extra={"resource": str(key), "partitions": len(snapshot.partitions)},
        )
        result = await runner.run(PlanTask(content, goals, job, history))
        return await asyncio.to_thread(verified, result, goals, may_move), snapshot.remarks

    async def _snapshot(self, tools: PlanningTools, order: PlanningOrder) -> Snapshot:
        """The cluster as it is, once it has the brokers of the order. One is taken at a time: it
        takes what all brokers answer.

        An order may have waited, and the object may not have been looked at since: a broker that
        is being restarted at this moment would be taken for one that does not come back.
        """
        while True:
            async with self._one_snapshot:
                if (view := self._view_for(order)) is not None:
                    answers = await tools.ask_log_dirs(tuple(view.brokers.values()))
                    if (view := self._view_for(order)) is not None:
                        return await asyncio.to_thread(snapshot_of, view, answers)
            await asyncio.sleep(self._look_again_s)

    def _view_for(self, order: PlanningOrder) -> ClusterView | None:
        """The present view, if it is one of the cluster that a plan was ordered for."""
        view = self._view()
        is_known = view.may_act and view.is_complete
        return view if is_known and live_brokers(view) == order.brokers else None


def _history(
    place: str | None, order: PlanningOrder, cluster_id: str | None
) -> PlannerHistory | HistoryUnusable | None:
    """The history that an order is planned from, or why there is none; None: it wants none."""
    if order.history is None:
        return None
    if place is None:
        return HistoryUnusable(
            "spec.rebalance.history asks for a history, and this Regent knows of none: its setting "
            "planner_history says where samples are (docs/history.md)"
        )
    history = PlannerHistory(
        place=place,
        window_s=order.history.window_seconds,
        percentile=order.history.percentile,
        max_age_s=order.history.max_age_seconds,
        cluster=cluster_id,
    )
    if order.spark is not None and not history.is_url:
        return HistoryUnusable(
            f"planner_history is {place}, a folder that pods of Spark do not have: keep the "
            "history where they reach it, and name its URL, or leave spec.rebalance.spark out"
        )
    return history
