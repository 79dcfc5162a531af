"""How long brokers take for the smallest request, while somebody wants to know."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Mapping
from typing import Final

from regent.controller.view import ClusterView
from regent.model.errors import BrokerQuestionError
from regent.runtime.round_trips import RoundTripPort

INTERVAL_S: Final = 10.0
"""Between two questions to the same broker."""

VALID_S: Final = 30.0
"""What a broker has answered is not known any more after this time: nobody has asked meanwhile, or
the answers of others take so long."""


class LatencyWatch:
    """Knows how long brokers take to answer.

    Args:
        questions: Asks a broker; None: nobody is asked, and nothing is known.
        view: Returns the newest view of the cluster.
        interval_s: Seconds between two rounds of questions.
    """

    def __init__(
        self,
        questions: RoundTripPort | None,
        *,
        view: Callable[[], ClusterView],
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._questions = questions
        self._view = view
        self._interval_s = interval_s
        self._latencies: Mapping[int, float] = {}
        self._answered_at = -math.inf
        self._followed: set[int] = set()
        self._somebody_asks = asyncio.Event()

    def follow(self, brokers: Collection[int]) -> Mapping[int, float]:
        """Somebody wants to know about brokers, until the next round; what is known, in seconds. A
        broker that does not answer has infinity, one that is not alive nothing."""
        self._followed.update(brokers)
        if self._followed:
            self._somebody_asks.set()
        if asyncio.get_running_loop().time() - self._answered_at > VALID_S:
            return {}
        return {broker: s for broker, s in self._latencies.items() if broker in brokers}

    async def run(self) -> None:
        """Ask whenever somebody wants to know, until cancelled."""
        while True:
            await self._somebody_asks.wait()
            self._somebody_asks.clear()
            followed, self._followed = sorted(self._followed), set()
            if self._questions is not None:
                self._latencies = await self._ask(self._questions, followed)
                self._answered_at = asyncio.get_running_loop().time()
            await asyncio.sleep(self._interval_s)  # the bound on the rate

    async def _ask(self, asked: RoundTripPort, brokers: Collection[int]) -> dict[int, float]:
        alive = self._view().brokers
        latencies: dict[int, float] = {}

        async def ask(broker_id: int) -> None:
            try:
                latencies[broker_id] = await asked.round_trip_s(alive[broker_id])
            except BrokerQuestionError:
                latencies[broker_id] = math.inf  # CopyWatch logs why brokers do not answer

        async with asyncio.TaskGroup() as group:
            for broker_id in brokers:
                if broker_id in alive:
                    group.create_task(ask(broker_id))
        return latencies
