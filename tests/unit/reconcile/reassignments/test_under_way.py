"""Which other PartitionReassignments a plan for the whole cluster waits for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from regent.controller.view import ClusterView
from regent.kube.claim_index import ClaimIndex
from regent.kube.object_cache import ObjectKey
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.kind import PARTITION_REASSIGNMENT
from regent.reconcile.reassignments.move_plan import Move, MovePlan
from regent.reconcile.reassignments.request import HeldUp, UnderWay
from regent.reconcile.reassignments.under_way import under_way
from regent.resources.partition_reassignment import (
    PartitionReassignment,
    parse_partition_reassignment,
)
from tests.unit.reconcile.reassignments.reassigning import moved, orders, tp
from tests.unit.reconcile.requests import view


def plan(*moves: tuple[int, tuple[int, ...], tuple[int, ...]]) -> dict[str, str]:
    """``status.plan`` with moves of partitions of orders."""
    made = MovePlan.of("c", [Move("orders", index, 7, was, to) for index, was, to in moves])
    return {"hash": made.hash, "document": made.document}


DEAD = 9
"""A broker that is not alive; 1, 2 and 3 are."""
SEEN = view(orders((1, 2), (1, 2)))
STARTED = {
    "clusterId": "c",
    "plan": plan((0, (1, 2), (3, 2))),
    "startedAt": "2026-01-02T03:04:05Z",
}
LATER = {"startedAt": "2026-01-02T03:04:06Z"}


def body(name: str, phase: str = "Executing", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "generation": 1},
        "spec": {"rebalance": {}},
        "status": {**STARTED, "phase": phase, **status},
    }


def stuck(name: str = "stuck", **status: Any) -> dict[str, Any]:
    """One whose only move waits for a broker that is not alive."""
    return body(name, plan=plan((0, (1, 2), (DEAD, 2))), **status)


def found(*bodies: dict[str, Any], seen: ClusterView = SEEN) -> UnderWay:
    """What the resource ``own`` of the cluster ``c`` sees."""
    index = ClaimIndex(PARTITION_REASSIGNMENT)
    for each in bodies:
        index.put(ObjectKey("PartitionReassignment", "shop", each["metadata"]["name"]), each)
    own = parse_partition_reassignment({**body("own"), "status": {}})
    assert isinstance(own, PartitionReassignment)
    cluster = msgspec.structs.replace(seen, cluster_id="c")
    return under_way(own, index.all_claims(), cluster)


def held(name: str, waits_for: str, *partitions: TopicPartition) -> UnderWay:
    return UnderWay(held_up=(HeldUp(f"shop/{name}", waits_for, partitions),))


def test_those_that_are_executed_go_on_whatever_their_topics_and_not_oneself() -> None:
    expected = UnderWay(("shop/a", "shop/b"))
    assert found(body("b"), body("a", "Cancelling"), body("own")) == expected


@pytest.mark.parametrize(
    "over",
    [
        body("a", "Completed", finishedAt="2026-01-02T03:04:06Z"),
        body("a", "Stopped"),
        body("a", clusterId="other"),
        body("a", plan={**plan((0, (1, 2), (3, 2))), "document": "{}"}),
        {**body("a"), "status": {"phase": "AwaitingApproval"}},
    ],
    ids=["completed", "stopped", "of another cluster", "unreadable", "not begun"],
)
def test_what_moves_nothing_does_not_count(over: dict[str, Any]) -> None:
    assert found(over) == UnderWay()


def test_one_that_waits_for_a_broker_that_is_not_alive_does_not_go_on() -> None:
    waits = f"orders-0: brokers [{DEAD}] are not alive"
    assert found(stuck()) == held("stuck", waits, tp(0))
    begun = view(orders(moved(0, (1, 2), (DEAD, 2)), (1, 2)))
    assert found(stuck(), seen=begun) == held("stuck", waits, tp(0))
    alive = view(orders(moved(0, (1, 2), (3, 2)), (1, 2)))
    assert found(body("moving"), seen=alive) == UnderWay(("shop/moving",))


def test_one_goes_on_as_long_as_a_single_move_of_it_does() -> None:
    both = plan((0, (1, 2), (DEAD, 2)), (1, (1, 2), (3, 2)))
    assert found(body("a", plan=both)) == UnderWay(("shop/a",))
    arrived = view(orders((1, 2), (3, 2)))
    assert [each.partitions for each in found(body("a", plan=both), seen=arrived).held_up] == [
        (tp(0),)
    ]


def test_one_that_waits_for_room_goes_on_unless_what_leaves_does_not() -> None:
    def waits(leaves_for: int) -> dict[str, Any]:
        moves = [
            Move("orders", 0, 7, (1, 2), (3, 2)),
            Move("orders", 1, 7, (3, 2), (leaves_for, 2)),
        ]
        made = MovePlan.of("c", moves).in_batches([3], {tp(0): 2, tp(1): 1})
        return body("a", plan={"hash": made.hash, "document": made.document})

    seen = view(orders((1, 2), (3, 2)))
    assert found(waits(1), seen=seen) == UnderWay(("shop/a",))
    (stays,) = found(waits(DEAD), seen=seen).held_up
    assert stays.partitions == (tp(0), tp(1))
    assert "orders-0: it waits for room on broker 3, which orders-1 leaves first (" in (
        stays.waits_for
    )


def test_one_whose_partitions_have_arrived_elects_leaders() -> None:
    assert found(body("a"), seen=view(orders((3, 2)))) == UnderWay(("shop/a",))


def test_one_that_is_paused_begins_nothing_and_what_is_on_its_way_arrives() -> None:
    paused = {**body("a", plan=plan((0, (1, 2), (3, 2)), (1, (1, 2), (3, 2))))}
    paused["spec"] = {**paused["spec"], "desiredState": "Paused"}
    assert found(paused) == held("a", "it is paused", tp(0), tp(1))
    assert found(body("a", "Paused")) == held("a", "it is paused", tp(0))
    arriving = view(orders(moved(0, (1, 2), (3, 2)), (1, 2)))
    assert found(paused, seen=arriving) == UnderWay(("shop/a",))


def test_one_that_is_undone_goes_on_unless_the_way_back_is_closed() -> None:
    closed = {**STARTED, "plan": plan((0, (DEAD, 2), (3, 2))), "undoStartedAt": "2026-02-01"}
    waits = f"orders-0: brokers [{DEAD}] are not alive"
    arrived = view(orders((3, 2)))
    assert found(body("a", "Undoing", **closed), seen=arrived) == held("a", waits, tp(0))
    open_ = {**STARTED, "undoStartedAt": "2026-02-01"}
    assert found(body("a", "Undoing", **open_), seen=arrived) == UnderWay(("shop/a",))


def test_one_that_waits_for_another_goes_on_if_that_does() -> None:
    second = body("second", **LATER)
    waits = "orders-0: PartitionReassignment shop/stuck moves it"
    assert found(second, stuck()).held_up[0] == HeldUp("shop/second", waits, (tp(0),))
    begun = view(orders(moved(0, (1, 2), (DEAD, 2)), (1, 2)))
    assert [each.name for each in found(second, stuck(), seen=begun).held_up] == [
        "shop/second",
        "shop/stuck",
    ]
    assert found(second, body("first")) == UnderWay(("shop/first", "shop/second"))
