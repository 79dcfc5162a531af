"""Copies are throttled as the resource has it, and nothing is over that is still throttled."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from regent.admin.commands import AlterPartitionReassignments
from regent.controller.view import ClusterView, PartitionView
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.execution import ReassignmentPlan
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.reassignments.request import RefusedMove, SentMove
from regent.resources.partition_reassignment import PartitionReassignment
from regent.resources.partition_reassignment_status import Phase
from tests.unit.reconcile.reassignments.reassigning import (
    assign,
    begun,
    message,
    moved,
    orders,
    request,
    resource,
    tp,
)
from tests.unit.reconcile.requests import MONOTONIC_S, partition, state, status_of, view

RATE = 10_000_000
THROTTLE = {"bytesPerSecond": RATE}
ORIGIN = view(orders((1, 2), (2, 1)), brokers=4)
TARGETS = assign((1, 3), (4, 1))


def running(**spec: Any) -> PartitionReassignment:
    return begun(resource(assignments=TARGETS), ORIGIN, **spec)


def throttled(shown: PartitionView, rate: int | None = RATE) -> PartitionView:
    return msgspec.structs.replace(shown, throttle=rate)


def on_its_way(rate: int | None, *, second: PartitionView | None = None) -> ClusterView:
    """The first partition moves, throttled to a rate."""
    first = throttled(moved(0, (1, 2), (1, 3)), rate)
    return view(orders(first, partition(1, (2, 1)) if second is None else second), brokers=4)


def commands(plan: ReassignmentPlan) -> list[tuple[int | None, set[TopicPartition]]]:
    """Rates, and the partitions that they are for."""
    found = []
    for command in plan.commands:
        assert isinstance(command, AlterPartitionReassignments)
        found.append((command.throttle, set(command.targets)))
    return found


def phase(plan: ReassignmentPlan) -> Phase | None:
    return status_of(plan).phase


@pytest.mark.parametrize(("spec", "rate"), [({"throttle": THROTTLE}, RATE), ({}, None)])
def test_what_begins_is_throttled(spec: dict[str, Any], rate: int | None) -> None:
    plan = plan_reassignment(request(running(**spec), ORIGIN))
    assert commands(plan) == [(rate, {tp(0), tp(1)})]
    assert ("may copy 10,000,000 bytes a second" in message(plan)) is (rate is not None)


@pytest.mark.parametrize(
    ("spec", "present", "asked"),
    [
        ({"throttle": THROTTLE}, RATE, []),
        ({"throttle": THROTTLE}, 5, [(RATE, {tp(0)})]),
        ({"throttle": THROTTLE}, None, [(RATE, {tp(0)})]),
        ({}, RATE, [(0, {tp(0)})]),
        ({}, None, []),
    ],
)
@pytest.mark.parametrize("desired", ["Running", "Paused"])
def test_what_is_under_way_gets_the_rate_of_the_resource(
    spec: dict[str, Any], present: int | None, asked: object, desired: str
) -> None:
    subject = running(**spec, desiredState=desired, concurrency={"total": 1})
    plan = plan_reassignment(request(subject, on_its_way(present)))
    assert commands(plan) == asked


def test_a_rate_that_was_asked_for_a_moment_ago_is_not_asked_for_again() -> None:
    subject = running(throttle=THROTTLE, concurrency={"total": 1})
    sent = {tp(0): SentMove((1, 3), (), 1, MONOTONIC_S + 5)}
    assert commands(plan_reassignment(request(subject, on_its_way(None), sent=sent))) == []


def test_a_rate_that_was_refused_is_named_and_asked_for_later() -> None:
    subject = running(throttle=THROTTLE, concurrency={"total": 1})
    refused = {tp(0): RefusedMove((1, 3), "the throttle cannot be set", MONOTONIC_S + 5)}
    plan = plan_reassignment(request(subject, on_its_way(None), refused=refused))
    assert commands(plan) == []
    assert "orders-0: the throttle cannot be set" in message(plan)
    assert plan.requeue_after_s == 5
    later = {tp(0): RefusedMove((1, 3), "the throttle cannot be set", MONOTONIC_S)}
    plan = plan_reassignment(request(subject, on_its_way(None), refused=later))
    assert commands(plan) == [(RATE, {tp(0)})]
    plan = plan_reassignment(request(subject, on_its_way(RATE), refused=refused))
    assert "cannot be set" not in message(plan), "it has the rate by now"


def test_of_two_resources_that_move_the_same_partition_the_first_says_its_rate() -> None:
    """Else each would change it back for ever."""
    first, seen = {tp(0): "shop/first"}, on_its_way(5)
    for spec in ({"throttle": THROTTLE}, {}):
        subject = running(**spec, concurrency={"total": 1})
        assert commands(plan_reassignment(request(subject, seen, others=first))) == []
        (asked,) = commands(plan_reassignment(request(subject, seen)))
        assert asked == (RATE if spec else 0, {tp(0)})


def test_what_only_loses_replicas_is_not_throttled() -> None:
    subject = begun(resource(assignments=assign((1, 3), None)), ORIGIN, throttle=THROTTLE)
    leaving = view(orders(moved(0, (1, 2, 3), (1, 3)), (2, 1)), brokers=4)
    assert commands(plan_reassignment(request(subject, leaving))) == []


@pytest.mark.parametrize(
    ("desired", "there", "before", "after"),
    [
        ("Running", [(1, 3), (4, 1)], Phase.EXECUTING, Phase.COMPLETED),
        ("Cancelled", [(1, 2), (2, 1)], Phase.CANCELLING, Phase.CANCELLED),
    ],
)
def test_it_is_not_over_before_its_throttles_are_removed(
    desired: str, there: list[tuple[int, ...]], before: Phase, after: Phase
) -> None:
    subject = running(throttle=THROTTLE, desiredState=desired)
    first, second = (partition(index, each) for index, each in enumerate(there))
    plan = plan_reassignment(request(subject, view(orders(throttled(first), second), brokers=4)))
    assert phase(plan) is before
    assert state(plan)["Ready"] == "False/RemovingThrottles"
    assert "orders-0" in message(plan)
    removed = view(orders(first, second), brokers=4)
    assert phase(plan_reassignment(request(subject, removed))) is after


def test_the_throttle_of_a_move_that_somebody_else_has_begun_is_not_waited_for() -> None:
    subject = running(throttle=THROTTLE, desiredState="Cancelled")
    moves_on = throttled(moved(0, (1, 2), (1, 4)))
    plan = plan_reassignment(request(subject, view(orders(moves_on, (2, 1)), brokers=4)))
    assert phase(plan) is Phase.CANCELLED


class TestStalledCopies:
    @pytest.mark.parametrize(
        ("trouble", "named"),
        [
            ({"leader": -1}, "orders-0: it has no leader"),
            ({"refusals": ((3, "NO"),)}, "refused by broker 3 (NO)"),
            ({"refusals": ((1, "NO"),)}, "refused by broker 1 (NO)"),
            ({"refusals": ((2, "NO"),)}, None),
            ({"on_failed_dirs": (3,)}, "has failed on brokers [3]"),
            ({"on_failed_dirs": (2,)}, None),
            ({"uninformed": (3,)}, "does not reach brokers [3]"),
            ({"uninformed": (1,)}, "does not reach brokers [1]"),
            ({"uninformed": (2,)}, None),
        ],
        ids=str,
    )
    def test_what_keeps_target_or_leader_from_copying_is_named(
        self, trouble: dict[str, Any], named: str | None
    ) -> None:
        """Of a follower that stays it is no matter."""
        stuck = msgspec.structs.replace(moved(0, (1, 2), (1, 3)), **trouble)
        plan = plan_reassignment(request(running(), view(orders(stuck, (4, 1)), brokers=4)))
        assert (state(plan)["Reconciling"] == "True/CopiesStalled") == (named is not None)
        assert named is None or named in message(plan)

    def test_a_broker_that_is_down_comes_first(self) -> None:
        dead = moved(0, (1, 2), (1, 9))
        subject = begun(
            resource(assignments=assign((1, 9), None)),
            view(orders((1, 2), (2, 1)), brokers=9),
        )
        stuck = msgspec.structs.replace(dead, leader=-1)
        plan = plan_reassignment(request(subject, view(orders(stuck, (2, 1)), brokers=4)))
        assert state(plan)["Reconciling"] == "True/BrokersUnavailable"
