"""The plan as a document: its hash says exactly which moves it has."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.reconcile.reassignments.move_plan import (
    Move,
    MovePlan,
    PlanDocumentError,
    RoomOrder,
    read_plan,
)

MOVE = Move("orders", 0, 7, (1, 2), (2, 3))
OTHER = Move("payments", 1, 9, (1,), (2,))

replica_lists = st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(tuple)
moves = st.lists(
    st.builds(
        Move, st.sampled_from("abc"), st.integers(0, 5), st.just(1), replica_lists, replica_lists
    ),
    unique_by=lambda move: move.tp,
)


@given(moves)
def test_a_stored_plan_is_read_as_it_was(several: list[Move]) -> None:
    plan = MovePlan.of("cluster", several)
    assert read_plan(plan.document, expected_hash=plan.hash) == plan


@given(moves, st.randoms(use_true_random=False))
def test_the_hash_does_not_depend_on_the_order(several: list[Move], random: object) -> None:
    shuffled = sorted(several, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert MovePlan.of("c", several).hash == MovePlan.of("c", shuffled).hash


@pytest.mark.parametrize(
    "other",
    [
        MovePlan.of("another", [MOVE]),
        MovePlan.of("c", []),
        MovePlan.of("c", [MOVE, OTHER]),
        MovePlan.of("c", [MOVE._replace(partition=1)]),
        MovePlan.of("c", [MOVE._replace(topic="order")]),
        MovePlan.of("c", [MOVE._replace(czxid=8)]),
        MovePlan.of("c", [MOVE._replace(replicas=(2, 1))]),
        MovePlan.of("c", [MOVE._replace(target=(3, 2))]),
    ],
)
def test_another_plan_has_another_hash(other: MovePlan) -> None:
    assert other.hash != MovePlan.of("c", [MOVE]).hash


def test_the_hash_is_the_same_in_every_version_of_regent() -> None:
    assert MovePlan.of("c", [MOVE]).hash == (
        "sha256:4bd5e3443b22add7e863231712a858128ab18e04abe75e57b089e6ad71b5698e"
    )


def test_a_plan_counts_what_it_costs() -> None:
    plan = MovePlan.of("c", [MOVE, OTHER, Move("x", 0, 0, (1, 2), (1, 3))])
    assert (plan.replica_moves, plan.leader_changes) == (3, 2)
    assert plan.topics == ("orders", "payments", "x")


@pytest.mark.parametrize(
    "document",
    [
        "",
        "no base64!",
        base64.b64encode(b"not compressed").decode(),
        base64.b64encode(zlib.compress(b"no JSON")).decode(),
        base64.b64encode(zlib.compress(b"[]")).decode(),
        base64.b64encode(zlib.compress(b'{"version":2,"clusterId":"c","moves":[]}')).decode(),
        base64.b64encode(zlib.compress(b'{"version":1,"clusterId":"c","moves":[[1]]}')).decode(),
        base64.b64encode(zlib.compress(b" " * 20 * 1024 * 1024)).decode(),
    ],
)
def test_what_is_no_plan_is_not_read(document: str) -> None:
    with pytest.raises(PlanDocumentError, match="the plan document cannot be read"):
        read_plan(document, expected_hash=MovePlan.of("c", []).hash)


def test_a_plan_that_was_changed_is_not_read() -> None:
    plan, changed = MovePlan.of("c", [MOVE]), MovePlan.of("c", [OTHER])
    with pytest.raises(PlanDocumentError, match=f"has the hash {changed.hash}, not {plan.hash}"):
        read_plan(changed.document, expected_hash=plan.hash)


ODD_MOVES: list[dict[str, Any]] = [
    {"topic": ["orders"]},
    {"topic": None},
    {"topic": "a/b"},
    {"partition": "0"},
    {"partition": -1},
    {"partition": 2**31},
    {"czxid": "7"},
    {"replicas": ([1], 2)},
    {"replicas": (1, 1)},
    {"target": ()},
    {"target": ("2",)},
    {"target": (10**12,)},
]
ODD_ORDERS = [
    RoomOrder(frozenset({2}), ()),
    RoomOrder(frozenset({2}), (1, 2)),
    RoomOrder(frozenset({2}), (-1,)),
    RoomOrder(frozenset({-2}), (1,)),
    RoomOrder(frozenset({2}), ("1",)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(
    "plan",
    [
        *(MovePlan("c", (MOVE._replace(**changed),)) for changed in ODD_MOVES),
        *(MovePlan("c", (MOVE,), room) for room in ODD_ORDERS),
        MovePlan(["c"], (MOVE,)),  # type: ignore[arg-type]
        MovePlan.of("c", [MOVE, MOVE._replace(target=(3,))]),
    ],
    ids=str,
)
def test_a_document_with_what_no_plan_has_is_refused_whatever_its_hash(plan: MovePlan) -> None:
    """An editor of a status can write such a document; plans of others are compared with it."""
    with pytest.raises(PlanDocumentError, match="cannot be read"):
        read_plan(plan.document, expected_hash=plan.hash)


def test_plans_that_are_read_in_turn_are_decoded_once() -> None:
    plans = [MovePlan.of("in turn", [MOVE._replace(partition=each)]) for each in range(500)]
    stored = [(plan.document, plan.hash) for plan in plans]
    first = [read_plan(document, expected_hash=hash_) for document, hash_ in stored]
    again = [read_plan(document, expected_hash=hash_) for document, hash_ in stored]
    assert all(before is now for before, now in zip(first, again, strict=True))


def test_large_plans_that_were_read_long_ago_are_not_kept() -> None:
    def large(number: int) -> MovePlan:
        moves = (MOVE._replace(topic=f"t{number}", partition=each) for each in range(20_000))
        return MovePlan.of("large", moves)

    plan = large(0)
    first = read_plan(plan.document, expected_hash=plan.hash)
    for number in range(1, 16):
        other = large(number)
        read_plan(other.document, expected_hash=other.hash)
    assert read_plan(plan.document, expected_hash=plan.hash) is not first
