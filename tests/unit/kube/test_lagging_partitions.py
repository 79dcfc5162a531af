"""Which partitions lack replicas in sync, apart from those that move."""

from __future__ import annotations

import msgspec

from regent.controller.view import PartitionView, TopicView
from regent.kube.lagging_partitions import Lagging, LaggingPartitions
from regent.model.partition import TopicPartition
from tests.unit.reconcile.requests import partition, view


def topic(*partitions: PartitionView, name: str = "t") -> TopicView:
    return TopicView(name, None, partitions)


WHOLE = partition(0, (1, 2, 3))
WITHOUT_9 = partition(0, (1, 9), (1,))
WITHOUT_3 = partition(0, (1, 2, 3), (1, 2))
MOVING = partition(1, (3, 1, 2), (1,), adding=(3,), removing=(2,))


def test_what_lacks_a_replica_is_counted_until_it_is_back() -> None:
    lagging = LaggingPartitions()
    before, short = view(topic(WHOLE)), view(topic(WITHOUT_3))
    lagging.see_all(before)
    assert (lagging.look(before).total, lagging.shrinks) == (0, 0)
    lagging.see_topics(short, {"t"})
    assert (lagging.look(short).total, lagging.shrinks) == (1, 1)
    lagging.see_topics(short, {"t"})
    assert lagging.shrinks == 1
    lagging.see_topics(before, {"t"})
    assert (lagging.look(before).total, lagging.shrinks) == (0, 1)


def test_what_moves_does_not_count() -> None:
    lagging = LaggingPartitions()
    moving = view(topic(WHOLE, MOVING))
    lagging.see_topics(moving, {"t"})
    assert (lagging.look(moving).total, lagging.shrinks) == (0, 0)


def test_a_replica_counts_if_its_broker_is_alive() -> None:
    lagging = LaggingPartitions()
    alive = view(topic(WITHOUT_3))
    down = msgspec.structs.replace(
        alive, brokers={b: each for b, each in alive.brokers.items() if b != 3}
    )
    lagging.see_topics(down, {"t"})
    assert (lagging.look(down).total, lagging.shrinks) == (0, 0)
    assert lagging.look(alive).total == 1, "it is back, and has to catch up"


def test_an_example_is_one_that_could_be_in_sync() -> None:
    lagging = LaggingPartitions()
    seen = view(topic(WITHOUT_9), topic(WITHOUT_3, name="u"))
    lagging.see_all(seen)
    assert lagging.look(seen) == Lagging(1, TopicPartition("u", 0))
    assert lagging.look(view(topic(WHOLE))).total == 1, "what was seen counts"
    lagging.see_all(view(topic(WHOLE)))
    assert lagging.look(seen) == Lagging(0, None)


def test_a_broker_that_shuts_down_is_not_expected_back() -> None:
    lagging = LaggingPartitions()
    going = msgspec.structs.replace(view(topic(WITHOUT_3)), shutting_down=(3,))
    lagging.see_topics(going, {"t"})
    assert (lagging.look(going).total, lagging.shrinks) == (0, 0)


def test_without_a_leader_nothing_can_get_in_sync() -> None:
    """One that was just created, too."""
    lagging = LaggingPartitions()
    for isr in ((), (1,)):
        leaderless = partition(0, (1, 2), isr, leader=-1)
        seen = view(topic(leaderless))
        lagging.see_topics(seen, {"t"})
        assert (lagging.look(seen).total, lagging.shrinks) == (0, 0)
