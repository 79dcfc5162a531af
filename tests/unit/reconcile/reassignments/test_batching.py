"""Which moves begin next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regent.controller.view import PartitionView
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.batching import Traffic, next_batch, present_traffic
from regent.reconcile.reassignments.move_plan import Move
from regent.reconcile.reassignments.request import SentMove
from regent.reconcile.reassignments.stages import MoveStatus, status_of
from regent.resources.partition_reassignment import Concurrency
from tests.unit.reconcile.reassignments.reassigning import moved, orders, tp


def pending(*moves: tuple[tuple[int, ...], tuple[int, ...]]) -> list[MoveStatus]:
    topic = orders(*(origin for origin, _ in moves))
    return [
        status_of(Move("orders", index, 7, origin, target), topic)
        for index, (origin, target) in enumerate(moves)
    ]


def begun(moves: list[MoveStatus], traffic: Traffic | None = None, **limits: object) -> list[int]:
    concurrency = Concurrency.model_validate(limits)
    return [tp.partition for tp in next_batch(moves, traffic or Traffic(), concurrency)]


def test_a_move_that_copies_nothing_needs_no_room_at_a_broker() -> None:
    traffic = Traffic()
    traffic.add((2, 3), leader=1)
    assert begun(pending(((1, 2, 3), (2, 1)), ((1, 2), (2, 1))), traffic, perBroker=1) == [0, 1]


def test_a_partition_with_more_copies_than_its_leader_may_send_moves_alone() -> None:
    moves = pending(((1,), (1, 2, 3)), ((1,), (1, 4)))
    assert begun(moves, perBroker=1) == [0]
    traffic = Traffic()
    traffic.add((5,), leader=1)
    assert begun(moves, traffic, perBroker=1) == []


def test_one_by_one_only_one_replica_counts() -> None:
    moves = pending(((1, 2, 3), (4, 5, 6)))
    batch = next_batch(moves, Traffic(), Concurrency(per_broker=1, per_partition_one_by_one=True))
    assert batch == {tp(0): (1, 2, 4)}


def test_what_others_move_and_what_was_sent_a_moment_ago_counts_once() -> None:
    moving = {tp(0, "x"): moved(0, (1, 2), (1, 3))}
    sent = {
        tp(0, "x"): SentMove((1, 3), (3,), 1, until=9.0),
        tp(1): SentMove((4, 2), (4,), 2, until=9.0),
    }
    traffic = present_traffic(moving, sent)
    assert (traffic.partitions, dict(traffic.copies)) == (2, {3: 1, 1: 1, 4: 1, 2: 1})


replica_lists = st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True).map(tuple)


@given(
    st.lists(st.tuples(replica_lists, replica_lists), max_size=20),
    st.integers(1, 4),
    st.integers(1, 6),
)
def test_whatever_begins_keeps_the_limits_and_no_move_that_fits_is_left_out(
    wanted: list[tuple[tuple[int, ...], tuple[int, ...]]], per_broker: int, total: int
) -> None:
    limits = Concurrency(per_broker=per_broker, total=total)
    moves = pending(*wanted)
    batch = next_batch(moves, Traffic(), limits)
    moving: dict[TopicPartition, PartitionView] = {
        tp: moved(tp.partition, wanted[tp.partition][0], target) for tp, target in batch.items()
    }
    traffic = present_traffic(moving, {})
    assert traffic.partitions <= total
    for move in moves:
        leader, copies = move.move.replicas[0], move.move.adding
        if move.move.tp in batch:
            alone = len(copies) > per_broker
            assert alone or all(traffic.copies[b] <= max(per_broker, 3) for b in (leader, *copies))
        elif traffic.partitions < total:
            assert not traffic.has_room(copies, leader=leader, limits=limits)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(5, 8)), max_size=20), st.integers(1, 3))
def test_single_copies_never_exceed_the_limit_of_a_broker(
    wanted: list[tuple[int, int]], per_broker: int
) -> None:
    moves = pending(*(((leader,), (leader, new)) for leader, new in wanted))
    batch = next_batch(moves, Traffic(), Concurrency(per_broker=per_broker))
    moving = {tp: moved(tp.partition, (t[0],), t) for tp, t in batch.items()}
    assert all(n <= per_broker for n in present_traffic(moving, {}).copies.values())
