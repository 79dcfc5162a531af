"""Has the plans made that resources want: a snapshot is taken, the planner is started, the outcome
is kept until the resource has no use for it any more.

One plan is made at a time. A resource that does not want its plan any more, because it was deleted
for instance, has its planner ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace

from regent.controller.view import ClusterView
from regent.kube.object_cache import ObjectKey
from regent.kube.plan_runner import PlanRunner, PlanTask
from regent.kube.waiting import cancel
from regent.model.cluster import Broker
from regent.model.topic_name_rules import TopicNameRules
from regent.planning.orders import PlanningOrder, PlanningOutcome
from regent.planning.results import PlannerFailed, PlannerMissing, PlanResult
from regent.planning.snapshotting import Answers, snapshot_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningTools:
    """What plans are made with.

    Attributes:
        ask_log_dirs: Asks brokers what is in their log directories.
        runner: Makes a plan of a snapshot.
    """

    ask_log_dirs: Callable[[Collection[Broker]], Awaitable[Answers]]
    runner: PlanRunner


@dataclass(slots=True)
class _Wanted:
    """The plan that an object wants.

    Attributes:
        uid: Of the object.
        order: What is wanted.
        outcome: Of this order, or of one before it that was like it; None: there is none yet.
        making: While it is being made.
    """

    uid: str
    order: PlanningOrder
    outcome: PlanningOutcome | None = None
    making: asyncio.Task[PlanningOutcome] | None = None

    @property
    def is_open(self) -> bool:
        return self.outcome is None or self.outcome.order != self.order


class RebalancePlanning:
    """Keeps what is wanted and what has come of it, by object.

    Args:
        tools: None: nothing can be planned here.
        view: Returns the newest view of the cluster.
        rules: Which namespaces may move which topics.
        on_news: Called with the key of an object whose plan was made, or could not be.
    """

    def __init__(
        self,
        tools: PlanningTools | None,
        *,
        view: Callable[[], ClusterView],
        rules: TopicNameRules,
        on_news: Callable[[frozenset[ObjectKey]], None],
    ) -> None:
        self._tools = tools
        self._view = view
        self._rules = rules
        self._on_news = on_news
        self._wanted: dict[ObjectKey, _Wanted] = {}
        self._changed = asyncio.Event()

    def keep(self, key: ObjectKey, uid: str, order: PlanningOrder | None) -> None:
        """Have this plan made for an object, unless it is under way or made; None: it wants none.
        Whatever else was wanted for the object is given up."""
        known = self._wanted.get(key)
        if known is not None and known.uid == uid and known.order == order:
            return
        if known is not None:
            del self._wanted[key]
            if known.making is not None:
                known.making.cancel()
        if order is None:
            return
        before = None
        if known is not None and known.uid == uid and known.order.is_like(order):
            before = known.outcome  # of an earlier attempt: it is told until there is another one
        self._wanted[key] = _Wanted(uid, order, before)
        self._changed.set()

    def outcome_for(self, key: ObjectKey, uid: str) -> PlanningOutcome | None:
        """What has come of what an object wants; None: nothing yet."""
        known = self._wanted.get(key)
        return None if known is None or known.uid != uid else known.outcome

    async def run(self, _: asyncio.Event) -> None:
        """Make plans, one after the other, until cancelled."""
        while True:
            found = next(((k, w) for k, w in self._wanted.items() if w.is_open), None)
            if found is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            key, wanted = found
            wanted.making = asyncio.create_task(self._make(key, wanted.order), name=f"plan {key}")
            try:
                await asyncio.wait((wanted.making,))
            finally:
                await cancel((wanted.making,))
            if wanted.making.cancelled():
                continue  # it is not wanted any more
            wanted.outcome, wanted.making = wanted.making.result(), None
            if self._wanted.get(key) is wanted:
                self._on_news(frozenset({key}))

    async def _make(self, key: ObjectKey, order: PlanningOrder) -> PlanningOutcome:
        remarks: tuple[str, ...] = ()
        try:
            result, remarks = await self._plan(key, order)
        except Exception as error:
            # A defect. The resource says so, and it is tried again; others are served on.
            logger.exception("A plan could not be made", extra={"resource": str(key)})
            result = PlannerFailed(f"{type(error).__name__}: {error}")
        at = asyncio.get_running_loop().time()
        return PlanningOutcome(order=order, result=result, remarks=remarks, at=at)

    async def _plan(
        self, key: ObjectKey, order: PlanningOrder
    ) -> tuple[PlanResult, tuple[str, ...]]:
        if self._tools is None:
            return PlannerMissing("this Regent was started without a planner"), ()
        answers = await self._tools.ask_log_dirs(tuple(self._view().brokers.values()))
        view = self._view()
        snapshot = await asyncio.to_thread(snapshot_of, view, answers)
        topics = dict.fromkeys(partition.topic for partition in snapshot.partitions)
        forbidden = [name for name in topics if not self._rules.allow(key.namespace, name)]
        goals = replace(order.goals, pinned=tuple(sorted({*order.goals.pinned, *forbidden})))
        content = await asyncio.to_thread(snapshot.encode)
        logger.info(
            "A plan is being made",
            extra={"resource": str(key), "partitions": len(snapshot.partitions)},
        )
        result = await self._tools.runner.run(PlanTask(content, goals))
        return result, snapshot.remarks
