"""What moves in the cluster, and what was sent and does not show yet."""

from __future__ import annotations

from regent.admin.commands import AlterPartitionReassignments
from regent.kube.moving_partitions import MoveNews, MovingPartitions
from regent.reconcile.reassignments.request import SentMove
from tests.unit.reconcile.reassignments.reassigning import moved, orders, tp
from tests.unit.reconcile.requests import view

STILL = view(orders((1, 2), (1, 2)))
MOVING = view(orders(moved(0, (1, 2), (1, 3)), (1, 2)))
SENT = SentMove((1, 3), (3,), 1, until=10.0)
ORDERS = frozenset({"orders"})


def test_a_move_that_begins_or_ends_is_news_and_one_that_goes_on_is_none() -> None:
    moving = MovingPartitions()
    moving.see_all(STILL)
    assert not moving.see_topics(STILL, ORDERS)
    assert moving.see_topics(MOVING, ORDERS)
    assert moving.partitions.keys() == {tp(0)}
    assert not moving.see_topics(MOVING, ORDERS)
    assert moving.see_topics(STILL, ORDERS)
    assert not moving.partitions


def test_what_was_sent_counts_until_it_shows_or_should_have() -> None:
    moving = MovingPartitions()
    moving.send({tp(0): SENT, tp(1): SENT})
    assert moving.sent(at=9.9).keys() == {tp(0), tp(1)}
    moving.see_topics(STILL, ORDERS)  # of another partition, say
    assert moving.sent(at=9.9).keys() == {tp(0), tp(1)}
    assert moving.see_topics(MOVING, ORDERS)
    assert moving.sent(at=9.9).keys() == {tp(1)}
    assert not moving.sent(at=10.0)


def test_what_waits_to_be_answered_counts_however_long_that_takes() -> None:
    moving = MovingPartitions()
    move = AlterPartitionReassignments({tp(0): (1, 3)})
    now = 0.0
    with moving.sending([move], STILL, settle_s=10.0, now=lambda: now):
        now = 50.0
        (sent,) = moving.sent(at=now).values()
        assert sent.until > now
        assert moving.sent(at=70.0)
    assert moving.sent(at=59.9), "from the answer on it has the time to show"
    assert not moving.sent(at=60.0)


def test_what_shows_before_it_is_answered_does_not_count_twice() -> None:
    moving = MovingPartitions()
    move = AlterPartitionReassignments({tp(0): (1, 3)})
    with moving.sending([move], STILL, settle_s=10.0, now=lambda: 0.0):
        moving.see_topics(MOVING, ORDERS)
        assert not moving.sent(at=0.0)
    assert not moving.sent(at=0.0)


def test_what_was_refused_does_not_count() -> None:
    moving = MovingPartitions()
    moving.send({tp(0): SENT, tp(1): SENT})
    room: list[str] = []
    moving.on_room.append(lambda: room.append("there is room"))
    moving.take_back([tp(0)])
    assert moving.sent(at=0.0).keys() == {tp(1)}
    assert len(room) == 1
    moving.take_back([tp(0)])
    assert len(room) == 1, "it took up none"


def test_going_back_counts_until_the_partition_is_on_its_way_back() -> None:
    moving = MovingPartitions()
    moving.see_all(MOVING)
    moving.send({tp(0): SentMove((1, 2), (), 1, until=10.0)})
    moving.see_topics(MOVING, ORDERS)
    assert moving.sent(at=0.0).keys() == {tp(0)}
    moving.see_topics(STILL, ORDERS)
    assert not moving.sent(at=0.0)


def test_each_reader_learns_once_that_something_moves() -> None:
    moving = MovingPartitions()
    first, second = MoveNews(moving), MoveNews(moving)
    moving.see_topics(MOVING, ORDERS)
    moving.see_topics(MOVING, ORDERS)
    assert [first.take(), first.take(), second.take(), second.take()] == [True, False, True, False]
