"""Moves to brokers that are short of room wait for what leaves these first."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from regent.controller.view import ClusterView
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.move_plan import Move, MovePlan, RoomOrder
from regent.reconcile.reassignments.room import with_room
from regent.reconcile.reassignments.stages import MoveState, statuses
from regent.reconcile.reassignments.status import stored_plan
from regent.resources.conditions import ConditionReason
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus, Phase
from tests.unit.reconcile.drains.draining import Cluster
from tests.unit.reconcile.reassignments.jobs import Job
from tests.unit.reconcile.reassignments.reassigning import moved, orders, tp
from tests.unit.reconcile.requests import view

BROKERS = range(1, 6)


class Disks(NamedTuple):
    """A plan whose batches have just room enough, and the disks of its cluster.

    Attributes:
        sizes: By partition.
        capacity: By broker.
    """

    plan: MovePlan
    sizes: list[int]
    capacity: dict[int, int]

    def are_full(self, cluster: Cluster) -> bool:
        """Whether a broker has more than it can hold, with what is on its way to it."""
        replicas = cluster.replicas("t")
        return any(
            sum(size for size, on in zip(self.sizes, replicas, strict=True) if broker in on)
            > self.capacity[broker]
            for broker in BROKERS
        )


def drawn(seed: int) -> Disks:
    """Random moves in random batches, on disks that are as small as these batches allow."""
    chance = random.Random(seed)
    count = 8
    sizes = [chance.randint(1, 9) for _ in range(count)]
    moves = [
        Move("t", i, 1, tuple(chance.sample(BROKERS, 2)), tuple(chance.sample(BROKERS, 2)))
        for i in range(count)
    ]
    batch = {move.tp: chance.randint(1, 4) for move in moves}
    capacity, short = {}, []
    for broker in BROKERS:
        used = sum(size for size, move in zip(sizes, moves, strict=True) if broker in move.replicas)
        most = used
        for number in range(1, 5):
            of_batch = [(sizes[m.partition], m) for m in moves if batch[m.tp] == number]
            used += sum(size for size, move in of_batch if broker in move.adding)
            most = max(most, used)
            used -= sum(size for size, move in of_batch if broker in move.leaving)
        capacity[broker] = most
        gone = sum(sizes[move.partition] for move in moves if broker in move.leaving)
        if used + gone > most:
            short.append(broker)
    return Disks(MovePlan.of("cluster-a", moves).in_batches(short, batch), sizes, capacity)


def executed(plan: MovePlan, **spec: Any) -> Job:
    """A rebalance whose plan has begun to be executed."""
    cluster = Cluster({"t": [move.replicas for move in plan.moves]}, brokers=5)
    job = Job(cluster, concurrency={"perBroker": 3}, **spec)
    del job.spec["assignments"]
    job.spec["rebalance"] = {}
    job.status = PartitionReassignmentStatus(
        plan=stored_plan(plan),
        started_at="2026-05-01T11:00:00Z",
        cluster_id="cluster-a",
        phase=Phase.EXECUTING,
    )
    return job


def run(job: Job, chance: random.Random, watch: Callable[[], None], rounds: int = 99) -> None:
    """Let what is on its way arrive, in whatever order, until nothing moves any more."""
    for _ in range(rounds):
        job.settle()
        watch()
        moving = sorted(job.cluster.moving())
        if not moving:
            break
        job.cluster.arrive(chance.choice(moving))


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_no_disk_overflows_and_everything_arrives(seed: int, *, one_by_one: bool) -> None:
    disks = drawn(seed)
    concurrency = {"perBroker": 3, "perPartitionOneByOne": one_by_one}
    job = executed(disks.plan)
    job.spec["concurrency"] = concurrency

    def watch() -> None:
        assert not disks.are_full(job.cluster)

    run(job, random.Random(seed), watch)
    assert job.is_in(Phase.COMPLETED)


@pytest.mark.parametrize("seed", range(8))
def test_nor_does_one_when_it_is_undone_wherever_it_is(seed: int) -> None:
    disks = drawn(seed)
    job = executed(disks.plan)
    before, chance = job.cluster.replicas("t"), random.Random(seed)

    def watch() -> None:
        assert not disks.are_full(job.cluster)

    run(job, chance, watch, rounds=seed + 1)
    job.change(desiredState="Undone")
    run(job, chance, watch)
    assert job.cluster.replicas("t") == before
    assert job.is_in(Phase.UNDONE)


# Broker 3 gives orders-1 to broker 4, and has room for orders-0 then.
def chained() -> MovePlan:
    plan = MovePlan.of(
        "c", [Move("orders", 0, 7, (1, 2), (3, 2)), Move("orders", 1, 7, (3, 2), (4, 2))]
    )
    return plan.in_batches([3], {tp(0): 2, tp(1): 1})


def waiting(seen: ClusterView, plan: MovePlan) -> Sequence[tuple[MoveState, bool]]:
    found = with_room(plan.room, statuses(plan, seen))
    return [(move.state, move.waits_for_room) for move in found]


def test_a_move_waits_until_what_was_to_leave_has_left() -> None:
    plan = chained()
    before = view(orders((1, 2), (3, 2)), brokers=4)
    pending, running, done = MoveState.PENDING, MoveState.RUNNING, MoveState.DONE
    assert waiting(before, plan) == [(pending, True), (pending, False)]
    on_its_way = view(orders((1, 2), moved(1, (3, 2), (4, 2))), brokers=4)
    assert waiting(on_its_way, plan) == [(pending, True), (running, False)]
    (first, _) = with_room(plan.room, statuses(plan, on_its_way))
    assert first.problem == "it waits for room on broker 3, which orders-1 leaves first"
    assert first.reason is None, "it is on its way"
    assert waiting(view(orders((1, 2), (4, 2)), brokers=4), plan) == [
        (pending, False),
        (done, False),
    ]
    without = dataclasses.replace(plan, room=None)
    assert waiting(before, without) == [(pending, False), (pending, False)]


def test_a_move_that_waits_for_one_that_is_held_up_is_held_up() -> None:
    plan = chained()
    seen = statuses(plan, view(orders((1, 2), (3, 2)), brokers=4))
    held = dataclasses.replace(
        seen[1], reason=ConditionReason.MOVES_REFUSED, problem="the controller is tired"
    )
    (first, _) = with_room(plan.room, (seen[0], held))
    assert first.reason is ConditionReason.MOVES_REFUSED
    assert first.problem == (
        "it waits for room on broker 3, which orders-1 leaves first (the controller is tired)"
    )
    own = dataclasses.replace(seen[0], reason=ConditionReason.BROKERS_CORDONED, problem="cordoned")
    (first, _) = with_room(plan.room, (own, held))
    assert (first.problem, first.waits_for_room) == ("cordoned", True)


def test_room_that_does_not_come_is_not_waited_for() -> None:
    """Somebody else has moved what was to leave, and it is still there: the move is left out."""
    plan = chained()
    stays = view(orders((1, 2), (3, 1)), brokers=4)
    assert waiting(stays, plan) == [(MoveState.DRIFTED, False), (MoveState.DRIFTED, False)]
    (first, _) = with_room(plan.room, statuses(plan, stays))
    assert first.problem == (
        "broker 3 has no room for it: orders-1 was to leave the broker first, and somebody else "
        "has moved it"
    )
    has_left = view(orders((1, 2), (1, 4)), brokers=4)
    assert waiting(has_left, plan) == [(MoveState.PENDING, False), (MoveState.DRIFTED, False)]
    deleted = view(orders((1, 2)), brokers=4)
    assert waiting(deleted, plan) == [(MoveState.PENDING, False), (MoveState.DRIFTED, False)]


def test_a_topic_that_cannot_be_read_has_not_left() -> None:
    plan = MovePlan.of(
        "c", [Move("orders", 0, 7, (1, 2), (3, 2)), Move("users", 0, 7, (3, 2), (4, 2))]
    ).in_batches([3], {tp(0): 2, TopicPartition("users", 0): 1})
    seen = msgspec.structs.replace(
        view(orders((1, 2)), brokers=4), unreadable_topics={"users": "malformed"}
    )
    assert waiting(seen, plan) == [(MoveState.PENDING, True), (MoveState.BLOCKED, False)]


def test_only_what_has_to_wait_is_kept() -> None:
    moves = [
        Move("a", 0, 1, (1,), (2,)),
        Move("b", 0, 1, (2,), (3,)),
        Move("c", 0, 1, (4,), (5,)),
    ]
    a, b, c = (move.tp for move in moves)
    plan = MovePlan.of("c", moves)
    assert plan.in_batches([2], {a: 2, b: 1, c: 3}).room == RoomOrder(frozenset({2}), (2, 1, 0))
    assert plan.in_batches([2, 3, 5, 9], {a: 2, b: 1, c: 3}).room == RoomOrder(
        frozenset({2}), (2, 1, 0)
    )
    for brokers, batches in (([], {a: 2, b: 1}), ([2], {a: 1, b: 1}), ([2], {a: 1, b: 2})):
        assert plan.in_batches(brokers, batches) == plan
