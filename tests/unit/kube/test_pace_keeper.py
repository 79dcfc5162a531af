"""What is known of the cluster becomes signals, and these a pace."""

from __future__ import annotations

import asyncio
import math

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from regent.controller.view import TopicView
from regent.kube.lagging_partitions import LaggingPartitions
from regent.kube.latency_watch import LatencyWatch
from regent.kube.metrics import ResourceMetrics
from regent.kube.pace_keeper import PaceKeeper
from regent.kube.waiting import cancel
from regent.model.cluster import Broker
from regent.model.errors import BrokerQuestionError
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.move_plan import Move, MovePlan
from regent.reconcile.reassignments.pacing import Pace
from regent.resources.partition_reassignment import Throttle
from tests.support.present import present
from tests.support.waiting import until
from tests.unit.reconcile.requests import partition, view

BOUNDS = {"minimum": 1_000_000, "maximum": 64_000_000}
ADAPTIVE = Throttle.model_validate({"adaptive": BOUNDS})
MOVING = msgspec.structs.replace(
    partition(0, (3, 1, 2), (1, 2), adding=(3,), removing=(2,)), throttle=9_000_000
)
VIEW = view(TopicView("t", None, (MOVING,)), brokers=3)
T0 = {TopicPartition("t", 0): MOVING}


def keeper(
    latency: LatencyWatch | None = None, registry: CollectorRegistry | None = None
) -> PaceKeeper:
    return PaceKeeper(
        LaggingPartitions(),
        latency or LatencyWatch(None, view=lambda: VIEW),
        ResourceMetrics(registry or CollectorRegistry()),
    )


def plan_for(*topics: str) -> MovePlan:
    """What moves partition 0 of each from broker 2 to broker 3."""
    return MovePlan.of("cluster", (Move(name, 0, 7, (1, 2), (3, 1)) for name in topics))


def pace(
    paces: PaceKeeper, throttle: Throttle | None, before: Pace | None = None, *, at: float = 0.0
) -> Pace | None:
    return paces.pace(throttle, before, view=VIEW, plan=plan_for("t"), moving=T0, at=at)


@pytest.mark.parametrize("throttle", [None, Throttle(bytes_per_second=5000)])
def test_a_throttle_that_does_not_adapt_has_none(throttle: Throttle | None) -> None:
    assert pace(keeper(), throttle) is None


def test_another_process_goes_on_with_the_rate_that_is_there() -> None:
    found = present(pace(keeper(), ADAPTIVE))
    assert found.rate == 9_000_000
    for plan in (plan_for("u"), None):
        elsewhere = present(keeper().pace(ADAPTIVE, None, view=VIEW, plan=plan, moving=T0, at=0))
        assert elsewhere.rate == BOUNDS["minimum"]


@pytest.mark.parametrize("changes", [{"is_active": False}, {"is_complete": False}])
def test_it_is_not_said_before_the_cluster_is_known(changes: dict[str, bool]) -> None:
    """Else a process that takes over would find nothing under way, and begin at the minimum."""
    unknown, paces = msgspec.structs.replace(VIEW, **changes), keeper()
    before = paces.pace(ADAPTIVE, None, view=unknown, plan=plan_for("t"), moving={}, at=0)
    assert before is None
    found = present(pace(paces, ADAPTIVE, before))
    assert found.rate == 9_000_000


@pytest.mark.parametrize("changes", [{"is_active": False}, {"is_complete": False}])
def test_after_a_time_in_which_nothing_was_known_the_rate_that_is_found_counts(
    changes: dict[str, bool],
) -> None:
    """Another Regent may have lowered it, and that all was well meanwhile nobody knows."""
    unknown, paces = msgspec.structs.replace(VIEW, **changes), keeper()
    now = pace(paces, ADAPTIVE)
    now = present(pace(paces, ADAPTIVE, now, at=5))
    assert now.calm_since == 5
    now = paces.pace(ADAPTIVE, now, view=unknown, plan=plan_for("t"), moving={}, at=10)
    slower = {TopicPartition("t", 0): msgspec.structs.replace(MOVING, throttle=2_000_000)}
    for at in (600, 629):
        now = present(
            paces.pace(ADAPTIVE, now, view=VIEW, plan=plan_for("t"), moving=slower, at=at)
        )
        assert now.rate == 2_000_000


def test_while_nothing_is_copied_it_stays() -> None:
    """Else one that waits for its approval for long would begin with the maximum."""
    paces, now = keeper(), None
    for at in range(0, 600, 5):
        now = paces.pace(ADAPTIVE, now, view=VIEW, plan=plan_for("t"), moving={}, at=at)
    assert now is not None
    assert now.rate == BOUNDS["minimum"]
    copying = [pace(paces, ADAPTIVE, now, at=600)]
    copying.append(pace(paces, ADAPTIVE, copying[-1], at=629))
    copying.append(pace(paces, ADAPTIVE, copying[-1], at=630))
    assert [each.rate for each in copying if each] == [1_000_000, 1_000_000, 2_000_000]
    raised = present(
        paces.pace(
            Throttle.model_validate({"adaptive": {**BOUNDS, "minimum": 5_000_000}}),
            now,
            view=VIEW,
            plan=plan_for("t"),
            moving={},
            at=601,
        )
    )
    assert raised.rate == 5_000_000


def test_partitions_that_lag_slow_it_down() -> None:
    registry = CollectorRegistry()

    def counted(change: str) -> float | None:
        return registry.get_sample_value(
            "regent_adaptive_throttle_changes_total", {"change": change}
        )

    paces = keeper(registry=registry)
    before = pace(paces, ADAPTIVE)
    lagging = view(TopicView("u", None, (partition(0, (1, 2), (1,)),)), brokers=3)
    paces.lagging.see_all(lagging)
    after = present(
        paces.pace(ADAPTIVE, before, view=lagging, plan=plan_for("t"), moving=T0, at=30)
    )
    assert after.rate == 4_500_000
    assert after.why == (
        "lowered from 9,000,000, since u-0, which does not move, lacks a replica in sync"
    )
    assert (counted("lowered"), counted("raised")) == (1, 0)
    paces.lagging.see_all(VIEW)
    for at in (60, 90):
        after = present(pace(paces, ADAPTIVE, after, at=at))
    assert after.rate > 4_500_000
    assert (counted("lowered"), counted("raised")) == (1, 1)


class Broken:
    """Broker 3 does not answer."""

    async def round_trip_s(self, broker: Broker) -> float:
        if broker.broker_id == 3:
            raise BrokerQuestionError("connection refused")
        return 0.001


async def test_brokers_that_take_part_are_asked_if_there_is_a_bound() -> None:
    latency = LatencyWatch(Broken(), view=lambda: VIEW, interval_s=0.01)
    running = asyncio.create_task(latency.run())
    paces = keeper(latency)
    bounded = Throttle.model_validate({"adaptive": {**BOUNDS, "maximumLatencyMilliseconds": 50}})
    before = pace(paces, bounded)
    try:

        async def slowed() -> str:
            after = pace(paces, bounded, before, at=30)
            return "" if after is None else after.why

        why = await until(slowed, "a slower pace", until=lambda text: "lowered" in text)
        assert why == "lowered from 9,000,000, since broker 3 does not answer"
        assert latency.follow({1, 2, 3}) == {1: 0.001, 3: math.inf}, "2 takes no part"
    finally:
        await cancel((running,))
