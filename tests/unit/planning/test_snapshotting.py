"""What a snapshot has, what it says is missing, and that the planner reads it."""

from __future__ import annotations

import msgspec
import pytest

from regent.controller.view import ClusterView
from regent.model.cluster import Broker
from regent.model.log_dirs import LogDirectory, LogDirs
from regent.planning import snapshot_reading
from regent.planning.snapshot import Snapshot, SnapshotTopic
from regent.planning.snapshotting import Answers, snapshot_of
from regent_rebalance.json_files import decode_snapshot, encode_snapshot
from tests.unit.reconcile.requests import partition, topic, view


def sizes(**topics: dict[int, int]) -> LogDirs:
    return LogDirs(topics, capacity=10**12)


ANSWERS: Answers = {
    1: sizes(orders={0: 100, 1: 210}),
    2: sizes(orders={0: 110, 1: 200}),
    3: sizes(),
}


def racked(seen: ClusterView, *racks: str | None) -> ClusterView:
    brokers = {i: Broker(i, i, (), rack=rack) for i, rack in enumerate(racks, start=1)}
    return msgspec.structs.replace(seen, brokers=brokers)


def rows(snapshot: Snapshot) -> list[tuple[str, int, tuple[int, ...], int, tuple[int, ...]]]:
    return [(p.topic, p.partition, p.replicas, p.leader, p.sizes) for p in snapshot.partitions]


def test_a_snapshot_has_brokers_racks_replicas_leaders_and_sizes() -> None:
    snapshot = snapshot_of(racked(view(topic()), "a", "b", None), ANSWERS)
    assert [(b.id, b.rack, b.alive, b.disk_bytes) for b in snapshot.brokers] == [
        (1, "a", True, 10**12),
        (2, "b", True, 10**12),
        (3, None, True, 10**12),
    ]
    assert rows(snapshot) == [
        ("orders", 0, (1, 2), 1, (100, 110)),
        ("orders", 1, (2, 1), 2, (200, 210)),
    ]
    assert snapshot.remarks == ()
    assert snapshot.has_all_sizes


def test_the_planner_reads_it_and_would_write_the_same_bytes_without_isrs() -> None:
    seen = racked(view(topic(), topic((3,), name="alone")), "a", "b", None)
    taken = snapshot_of(seen, {**ANSWERS, 3: "TimeoutError"}, {"orders": 2})
    read = decode_snapshot(taken.encode(), source="snapshot")
    without = [msgspec.structs.replace(p, isr=None) for p in taken.partitions]
    assert encode_snapshot(read) == Snapshot(taken.brokers, tuple(without)).encode()
    assert read.topics == ("alone", "orders")


def test_isrs_and_min_isrs_are_told_as_far_as_they_are_known() -> None:
    never_led = msgspec.structs.replace(partition(0, (1, 2)), isr=(), leader=-1)
    moving = msgspec.structs.replace(partition(1, (2, 1)), isr=(2, 9))
    seen = msgspec.structs.replace(topic(name="moving"), partitions=(never_led, moving))
    snapshot = snapshot_of(view(topic(), seen), ANSWERS, {"orders": 2, "gone": 3})
    assert [p.isr for p in snapshot.partitions] == [None, (2,), (1, 2), (2, 1)]
    assert snapshot.topics == {"orders": SnapshotTopic(2)}
    assert b'"topics":{"orders":{"minIsr":2}}' in snapshot.encode()
    assert b'"topic":"moving","partition":0,"replicas":[1,2],"leader":-1,"sizes":[-1,-1]}' in (
        snapshot.encode()
    )


def test_the_order_in_which_things_are_known_does_not_matter() -> None:
    one, other = topic(), topic((1, 2), name="alone")
    assert (
        snapshot_of(view(one, other), ANSWERS).encode()
        == snapshot_of(view(other, one), dict(reversed(list(ANSWERS.items())))).encode()
    )


def test_a_broker_that_does_not_answer_is_named_and_its_sizes_are_unknown_not_zero() -> None:
    snapshot = snapshot_of(view(topic()), {**ANSWERS, 2: "connection refused"})
    assert [p.sizes for p in snapshot.partitions] == [(100, -1), (-1, 210)]
    assert snapshot.remarks == (
        "broker 2 does not say what is in its log directories (connection refused): the sizes of "
        "its 2 replicas and the capacity of its disks are not known",
    )
    assert not snapshot.has_all_sizes


def test_a_broker_that_is_not_registered_is_not_alive() -> None:
    snapshot = snapshot_of(view(topic((1, 9))), {**ANSWERS, 1: sizes(orders={0: 5})})
    assert [(b.id, b.alive) for b in snapshot.brokers] == [
        (1, True),
        (2, True),
        (3, True),
        (9, False),
    ]
    assert "broker 9 is not alive: the sizes of its 1 replicas" in snapshot.remarks[0]


def test_a_partition_whose_size_nobody_tells_is_named() -> None:
    snapshot = snapshot_of(view(topic((3, 1))), {1: "x", 2: "y", 3: sizes()})
    assert snapshot.remarks[-2:] == (
        "1 replicas are not in the log directories of their brokers: orders-0 at 3; a copy counts "
        "as large as the leader's",
        "no broker tells the size of 1 partitions, which count as empty: orders-0",
    )


def test_offline_directories_and_unknown_capacities_are_named() -> None:
    answers: Answers = {
        1: LogDirs({"orders": {0: 1, 1: 1}}),
        2: LogDirs({"orders": {0: 1, 1: 1}}, offline=("/b", "/c"), capacity=5),
        3: LogDirs({}),
    }
    remarks = snapshot_of(view(topic()), answers).remarks
    assert [remark.split(" is ")[0] for remark in remarks] == [
        "broker 2: log directory /b",
        "broker 2: log directory /c",
        "the capacity of the disks of brokers [1, 3]",
    ]


def test_several_log_directories_are_in_the_snapshot() -> None:
    directories = (LogDirectory("/a", 3, 1, 1), LogDirectory("/b", 2, 1, 1))
    answers: Answers = {
        **ANSWERS,
        1: LogDirs({"orders": {0: 1, 1: 1}}, capacity=5, directories=directories),
    }
    snapshot = snapshot_of(view(topic()), answers)
    assert [broker.log_dirs for broker in snapshot.brokers][:2] == [directories, msgspec.UNSET]
    content = snapshot.encode()
    assert snapshot_reading.decode_snapshot(content, source="s").brokers == snapshot.brokers
    planners = decode_snapshot(content, source="s").brokers.log_dirs
    assert [each.path for each in planners[0]] == ["/a", "/b"]
    assert planners[1:] == ((), ())


def test_topics_that_are_being_deleted_are_left_out_and_named() -> None:
    snapshot = snapshot_of(view(topic(), topic((1, 2), name="gone", deleting=True)), ANSWERS)
    assert {p.topic for p in snapshot.partitions} == {"orders"}
    assert snapshot.remarks == ("topics that are being deleted are left out: gone",)


def test_topics_that_cannot_be_read_are_named() -> None:
    snapshot = snapshot_of(view(topic(), unreadable={"broken": "not JSON"}), ANSWERS)
    assert snapshot.remarks == (
        "topics whose nodes cannot be read are left out, wholly or in part: broken",
    )


@pytest.mark.parametrize(("leader", "expected"), [(1, -1), (2, 2)])
def test_of_a_partition_that_moves_it_has_what_will_be(leader: int, expected: int) -> None:
    moving = partition(0, (2, 3, 1), (1, 2), leader=leader, adding=(3,), removing=(1,))
    seen = view(msgspec.structs.replace(topic(), partitions=(moving,)))
    snapshot = snapshot_of(seen, ANSWERS)
    assert rows(snapshot) == [("orders", 0, (2, 3), expected, (110, -1))]
    assert snapshot.remarks[0] == (
        "1 partitions are being reassigned and have the replicas here that they will have: orders-0"
    )


def test_of_a_partition_that_cannot_arrive_it_has_what_is_there() -> None:
    moving = partition(0, (2, 9, 1), (1, 2), leader=1, adding=(9,), removing=(1,))
    seen = view(msgspec.structs.replace(topic(), partitions=(moving,)))
    snapshot = snapshot_of(seen, ANSWERS)
    assert rows(snapshot) == [("orders", 0, (2, 1), 1, (110, 100))]
    assert [broker.id for broker in snapshot.brokers] == [1, 2, 3]
    assert snapshot.remarks == (
        "1 partitions are being reassigned to brokers that are not alive and have the replicas "
        "here that they had before: orders-0",
    )
