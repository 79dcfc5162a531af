"""How many bytes of a plan are copied, how fast, and what does not grow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from regent.controller.view import ClusterView, PartitionView
from regent.reconcile.reassignments.copies import (
    STALLED_AFTER_S,
    Copy,
    CopyFigures,
    CopyLedger,
    UnknownFigures,
    figures,
    observe,
    questions,
    stalled_for_s,
)
from regent.reconcile.reassignments.move_plan import Move, MovePlan
from regent.reconcile.reassignments.planning import plan_reassignment
from tests.support.present import present
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
from tests.unit.reconcile.requests import MONOTONIC_S, NOW, partition, state, status_of, view

Sizes = Mapping[int, Mapping[int, int]]


def plan(*moves: tuple[tuple[int, ...], tuple[int, ...]]) -> MovePlan:
    """The plan that moves partitions 0, 1, ... from one list of brokers to another."""
    return MovePlan.of("cluster-a", (Move("orders", i, 7, *each) for i, each in enumerate(moves)))


PLAN = plan(((1, 2), (1, 3)), ((1, 2), (1, 3)))
STILL = view(orders((1, 2), (1, 2)), brokers=5)
ONE_MOVES = view(orders(moved(0, (1, 2), (1, 3)), (1, 2)), brokers=5)
ONE_THERE = view(orders((1, 3), moved(1, (1, 2), (1, 3))), brokers=5)
ALL_THERE = view(orders((1, 3), (1, 3)), brokers=5)


def seen(
    ledger: CopyLedger,
    shown: ClusterView,
    sizes: Sizes,
    *,
    after_s: float,
    silent: Mapping[int, str] | None = None,
    plans: tuple[MovePlan, ...] = (PLAN,),
) -> CopyLedger:
    """The ledger with answers: bytes by broker and index of the partition of ``orders``."""
    return observe(
        ledger,
        plans,
        shown,
        answers={
            broker_id: {tp(index): size for index, size in each.items()}
            for broker_id, each in sizes.items()
        },
        silent=silent or {},
        at=MONOTONIC_S + after_s,
        time=NOW + timedelta(seconds=after_s),
    )


def test_leaders_and_those_that_get_a_copy_are_asked_once_for_all_plans() -> None:
    other = plan(((1, 2), (2, 4)))
    assert questions((PLAN, other), ONE_MOVES) == {
        1: frozenset({tp(0), tp(1)}),
        3: frozenset({tp(0)}),
    }
    assert questions((PLAN,), ALL_THERE) == {1: frozenset({tp(0), tp(1)})}


def test_nobody_is_asked_about_what_is_not_copied() -> None:
    leaders_only = plan(((1, 2), (2, 1)))
    assert questions((leaders_only,), STILL) == {}
    assert figures(leaders_only, STILL, CopyLedger()) == CopyFigures(0, 0)
    assert questions((PLAN,), view(orders((1, 2), (1, 2), czxid=8))) == {}, "another topic"
    leaderless = view(orders(partition(0, (1, 2), leader=-1), (1, 2)))
    assert questions((PLAN,), leaderless) == {1: frozenset({tp(1)})}


def test_the_rate_and_the_end_follow_from_what_copies_have_got() -> None:
    first = seen(CopyLedger(), ONE_MOVES, {1: {0: 1000, 1: 600}, 3: {0: 200}}, after_s=0)
    second = seen(first, ONE_MOVES, {1: {0: 1000, 1: 600}, 3: {0: 500}}, after_s=10)
    assert figures(PLAN, ONE_MOVES, second) == CopyFigures(
        1600, 500, 30, NOW + timedelta(seconds=10 + 1100 / 30)
    )


def test_what_began_and_arrived_between_two_answers_counts() -> None:
    first = seen(CopyLedger(), STILL, {1: {0: 1000, 1: 600}}, after_s=0)
    second = seen(first, ONE_THERE, {1: {0: 1000, 1: 600}, 3: {1: 0}}, after_s=10)
    found = figures(PLAN, ONE_THERE, second)
    assert isinstance(found, CopyFigures)
    assert (found.bytes_copied, found.bytes_per_second) == (1000, 100)


def test_only_the_last_minute_counts() -> None:
    ledger = seen(CopyLedger(), ONE_MOVES, {1: {0: 9000, 1: 0}, 3: {0: 0}}, after_s=0)
    for index in range(1, 20):
        size = min(index, 10) * 100  # 10 bytes a second for 100 seconds, and then nothing
        ledger = seen(ledger, ONE_MOVES, {1: {0: 9000, 1: 0}, 3: {0: size}}, after_s=index * 10)
    assert len(ledger.received) <= 8
    found = figures(PLAN, ONE_MOVES, ledger)
    assert isinstance(found, CopyFigures)
    assert (found.bytes_per_second, found.estimated_end) == (0, None)


def test_the_time_in_which_nothing_was_copied_does_not_count() -> None:
    first = seen(CopyLedger(), ONE_MOVES, {1: {0: 1000, 1: 600}, 3: {0: 200}}, after_s=0)
    hours = 10_000
    resumed = seen(first, ONE_THERE, {1: {0: 1000, 1: 600}, 3: {1: 100}}, after_s=hours)
    assert figures(PLAN, ONE_THERE, resumed) == CopyFigures(1600, 1100)
    later = seen(resumed, ONE_THERE, {1: {0: 1000, 1: 600}, 3: {1: 200}}, after_s=hours + 10)
    found = figures(PLAN, ONE_THERE, later)
    assert isinstance(found, CopyFigures)
    assert found.bytes_per_second == 10


def test_a_broker_that_does_not_answer_leaves_the_figures_out_with_the_reason() -> None:
    first = seen(
        CopyLedger(), ONE_MOVES, {1: {0: 1000, 1: 600}}, silent={3: "timed out"}, after_s=0
    )
    assert figures(PLAN, ONE_MOVES, first) == UnknownFigures("broker 3 does not say: timed out")
    other = seen(CopyLedger(), ONE_MOVES, {3: {0: 5}}, silent={1: "refused"}, after_s=0)
    assert figures(PLAN, ONE_MOVES, other) == UnknownFigures("broker 1 does not say: refused")
    assert figures(PLAN, ONE_MOVES, CopyLedger()) == UnknownFigures(), "nobody was asked"
    again = seen(first, ONE_MOVES, {1: {0: 1000, 1: 600}, 3: {0: 500}}, after_s=10)
    found = figures(PLAN, ONE_MOVES, again)
    assert found == CopyFigures(1600, 500, 0, None), "what came meanwhile has no known beginning"


def test_a_copy_that_does_not_grow_is_named_after_some_minutes() -> None:
    copy = Copy(tp(0), 3)
    ledger, at = CopyLedger(), 0.0
    for size in (0, 100, 100, 100):
        ledger = seen(ledger, ONE_MOVES, {1: {0: 1000, 1: 0}, 3: {0: size}}, after_s=at)
        assert stalled_for_s(copy, ledger) is None
        at += STALLED_AFTER_S / 4
    for _ in range(3):
        ledger = seen(ledger, ONE_MOVES, {1: {0: 1000, 1: 0}, 3: {0: 100}}, after_s=at)
        at += STALLED_AFTER_S / 4
    assert stalled_for_s(copy, ledger) == STALLED_AFTER_S * 5 / 4
    unanswered = seen(ledger, ONE_MOVES, {1: {0: 1000, 1: 0}}, silent={3: "?"}, after_s=at)
    assert stalled_for_s(copy, unanswered) is None, "nobody knows"
    grown = seen(ledger, ONE_MOVES, {1: {0: 1000, 1: 0}, 3: {0: 101}}, after_s=at)
    assert stalled_for_s(copy, grown) is None


def stalled_ledger(shown: ClusterView) -> CopyLedger:
    ledger = seen(CopyLedger(), shown, {1: {0: 64_000, 1: 0}, 3: {0: 1024}}, after_s=-420)
    return seen(ledger, shown, {1: {0: 64_000, 1: 0}, 3: {0: 1024}}, after_s=0)


def throttled(each: PartitionView, rate: int) -> PartitionView:
    return msgspec.structs.replace(each, throttle=rate)


def test_the_resource_says_which_copy_stalls_and_what_may_be_the_cause() -> None:
    targets = assign((1, 3), (1, 3))
    subject = begun(resource(assignments=targets, throttle={"bytesPerSecond": 2048}), STILL)
    shown = view(orders(throttled(moved(0, (1, 2), (1, 3)), 2048), (1, 2)), brokers=5)
    asked = dataclasses.replace(request(subject, shown), copies=stalled_ledger(shown))
    found = plan_reassignment(asked)
    assert state(found)["Reconciling"] == "True/CopiesStalled"
    assert (
        "orders-0: broker 3 has got nothing of it from broker 1 for 7 minutes; it has 1,024 of "
        "64,000 bytes, and its copies are throttled to 2,048 bytes a second"
    ) in message(found)
    assert "nothing of it from broker 1" in status_of(found).partitions[0].message


def test_the_status_has_the_figures_or_why_there_are_none() -> None:
    subject = begun(resource(assignments=assign((1, 3), (1, 3))), STILL)
    first = seen(CopyLedger(), ONE_MOVES, {1: {0: 1000, 1: 600}, 3: {0: 200}}, after_s=-10)
    second = seen(first, ONE_MOVES, {1: {0: 1000, 1: 600}, 3: {0: 500}}, after_s=0)
    silent = seen(CopyLedger(), ONE_MOVES, {1: {0: 1, 1: 1}}, silent={3: "timed out"}, after_s=0)

    def shown(ledger: CopyLedger) -> dict[str, object]:
        found = plan_reassignment(dataclasses.replace(request(subject, ONE_MOVES), copies=ledger))
        fields = present(status_of(found).progress).to_api()
        return {name: fields[name] for name in fields if name.startswith(("bytes", "estimated"))}

    assert shown(CopyLedger()) == {}
    assert shown(second) == {
        "bytesTotal": 1600,
        "bytesCopied": 500,
        "bytesPerSecond": 30,
        "estimatedEnd": "2026-05-01T12:00:36Z",
    }
    assert shown(silent) == {"bytesUnknown": "broker 3 does not say: timed out"}
