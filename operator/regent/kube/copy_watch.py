"""Asks brokers how far the copies are that resources wait for.

At most every ten seconds, only while one of their partitions gets a copy, and with one request to
each broker for all resources. What is known is a :class:`CopyLedger`, of which every resource takes
what concerns it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Final

from regent.controller.view import ClusterView
from regent.kube.object_cache import ObjectKey
from regent.model.errors import BrokerQuestionError
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.copies import CopyLedger, observe, questions
from regent.reconcile.reassignments.move_plan import MovePlan
from regent.runtime.ports import ReplicaSizesPort

logger = logging.getLogger(__name__)

INTERVAL_S: Final = 10.0
"""Between two questions to the same broker."""


class CopyWatch:
    """Knows how far copies are.

    Args:
        broker_questions: Asks a broker; None: nobody is asked, and nothing is known.
        view: Returns the newest view of the cluster.
        now: Returns the present, aware.
        on_news: Called with the resources for which answers are news.
        interval_s: Seconds between two rounds of questions.

    Attributes:
        ledger: What is known.
    """

    def __init__(
        self,
        broker_questions: ReplicaSizesPort | None,
        *,
        view: Callable[[], ClusterView],
        now: Callable[[], datetime],
        on_news: Callable[[frozenset[ObjectKey]], None],
        interval_s: float = INTERVAL_S,
    ) -> None:
        self.ledger = CopyLedger()
        self._questions = broker_questions
        self._view = view
        self._now = now
        self._on_news = on_news
        self._interval_s = interval_s
        self._followed: dict[ObjectKey, MovePlan] = {}
        self._something_moves = asyncio.Event()

    def follow(
        self, key: ObjectKey, plan: MovePlan | None, moving: Collection[TopicPartition]
    ) -> CopyLedger:
        """A resource looks at its plan, and waits for answers if a partition of it moves; what is
        known. It is forgotten with the answers, whose news make it look again. None: it has no
        plan yet."""
        if plan is None or self._questions is None:
            return self.ledger
        if any(move.tp in moving for move in plan.moves):
            self._followed[key] = plan
            self._something_moves.set()
        return self.ledger

    async def run(self) -> None:
        """Ask whenever something moves, until cancelled."""
        while True:
            await self._something_moves.wait()
            self._something_moves.clear()
            followed, self._followed = self._followed, {}
            if self._questions is not None:
                await self._ask(self._questions, tuple(followed.values()))
            self._on_news(frozenset(followed))
            await asyncio.sleep(self._interval_s)  # the bound on the rate

    async def _ask(self, asked: ReplicaSizesPort, plans: Collection[MovePlan]) -> None:
        view = self._view()
        if not view.may_act:
            return  # what has moved since is not known here
        at, time = asyncio.get_running_loop().time(), self._now()
        answers: dict[int, Mapping[TopicPartition, int]] = {}
        silent: dict[int, str] = {}

        async def ask(broker_id: int, partitions: Collection[TopicPartition]) -> None:
            broker = view.brokers.get(broker_id)
            if broker is None:
                silent[broker_id] = "it is not alive"
                return
            try:
                said = await asked.replica_sizes(broker, partitions)
            except BrokerQuestionError as error:
                silent[broker_id] = str(error)
                return
            if said.failed_directories:
                # A replica that it does not name may be in one of them.
                silent[broker_id] = f"log directories have failed: {list(said.failed_directories)}"
            else:
                answers[broker_id] = said.sizes

        async with asyncio.TaskGroup() as group:
            for broker_id, partitions in questions(plans, view).items():
                group.create_task(ask(broker_id, partitions))
        for broker_id, why in silent.items():
            if why != self.ledger.silent.get(broker_id):
                logger.warning(
                    "A broker does not say how far copies are",
                    extra={"broker_id": broker_id, "problem": why},
                )
        self.ledger = observe(
            self.ledger, plans, view, answers=answers, silent=silent, at=at, time=time
        )
