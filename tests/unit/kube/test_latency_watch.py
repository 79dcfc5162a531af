"""How long brokers take to answer is asked while somebody wants to know."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping

from regent.kube.latency_watch import INTERVAL_S, VALID_S, LatencyWatch
from regent.kube.waiting import cancel
from regent.model.cluster import Broker
from regent.model.errors import BrokerQuestionError
from tests.support.waiting import until
from tests.unit.kube.jumping_clock import elapse, jumping
from tests.unit.reconcile.requests import view

VIEW = view(brokers=3)


class Answers:
    """Brokers that take some time, or do not answer; notes whom it has asked."""

    def __init__(self, latencies: Mapping[int, float | None]) -> None:
        self.latencies = latencies
        self.asked: list[int] = []

    async def round_trip_s(self, broker: Broker) -> float:
        self.asked.append(broker.broker_id)
        latency = self.latencies[broker.broker_id]
        if latency is None:
            raise BrokerQuestionError("connection refused")
        return latency


async def test_who_wants_to_know_is_told_after_the_next_round() -> None:
    answers = Answers({1: 0.01, 2: None, 3: 0.5})
    watch = LatencyWatch(answers, view=lambda: VIEW, interval_s=0.01)
    running = asyncio.create_task(watch.run())
    try:
        assert watch.follow({1, 2, 9}) == {}

        found = await until(lambda: watch.follow({1, 2, 9}), "answers")
        assert found == {1: 0.01, 2: math.inf}
        assert set(answers.asked) == {1, 2}
    finally:
        await cancel((running,))


@jumping
async def test_nobody_is_asked_unless_somebody_wants_to_know() -> None:
    answers = Answers({1: 0.01})
    watch = LatencyWatch(answers, view=lambda: VIEW)
    running = asyncio.create_task(watch.run())
    watch.follow(())
    await elapse(10 * INTERVAL_S)
    assert answers.asked == []
    await cancel((running,))


@jumping
async def test_what_was_answered_long_ago_is_not_known_any_more() -> None:
    """A resource that was paused does not go on with how the brokers were doing then."""
    watch = LatencyWatch(Answers({1: 0.01}), view=lambda: VIEW)
    running = asyncio.create_task(watch.run())
    watch.follow({1})
    await elapse(1)
    assert watch.follow({1}) == {1: 0.01}
    await elapse(INTERVAL_S + VALID_S + 1)
    assert watch.follow({1}) == {}
    await elapse(1)
    assert watch.follow({1}) == {1: 0.01}
    await cancel((running,))
