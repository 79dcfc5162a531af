"""No event costs more than what it changes, however large the cluster is."""

from __future__ import annotations

import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.giving_way import LookedAt, after_announcement_ms
from regent.controller.state.states import PartitionState
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from tests.unit.controller.world import World

MANY = 60


def cluster_without_broker_3() -> tuple[World, ActiveController]:
    """Many partitions that have no leader because broker 3 is down, and one on broker 2."""
    world = World()
    world.start_broker(1, 2)
    world.create_led_topic("gone", dict.fromkeys(range(MANY), (3,)))
    world.create_led_topic("here", {0: (2,)})
    active = world.fail_over()
    world.log.records.clear()
    world.driver.performed.clear()
    return world, active


def test_many_failed_elections_are_one_line_with_a_few_examples() -> None:
    world, active = cluster_without_broker_3()
    world.run(active.partitions.trigger_online())
    (line,) = world.log.errors("No leader elected")
    assert line["partitions"] == MANY
    assert "gone-0: " in str(line["examples"])
    assert "gone-59" not in str(line["examples"])


@pytest.mark.parametrize("event", ["bounce", "stop"])
def test_an_election_that_failed_for_an_unreadable_state_is_repeated_at_any_broker_change(
    event: str,
) -> None:
    """No watch reports that a znode was corrected."""
    world, active = cluster_without_broker_3()
    tp = TopicPartition("here", 0)
    good = world.node(paths.partition_state(tp))
    world.put(paths.partition_state(tp), b"{")
    world.bounce_broker(2, seen_by=active)
    assert active.context.partition_state(tp) is PartitionState.OFFLINE
    world.put(paths.partition_state(tp), good.data)
    if event == "bounce":
        world.bounce_broker(1, seen_by=active)
    else:
        world.stop_broker(1, seen_by=active)
    assert active.context.partition_state(tp) is PartitionState.ONLINE
    assert not active.context.elections_to_repeat


# Work on all partitions gives way to what brokers wait for.


def test_the_larger_the_cluster_the_later_other_work_on_all_of_it_begins() -> None:
    assert after_announcement_ms(0) == after_announcement_ms(100_000) == 500
    assert after_announcement_ms(1_000_000) == 5_000


def test_a_walk_that_goes_topic_by_topic_gives_way_after_each_part() -> None:
    looked_at = LookedAt(10)
    sizes = [4, 5, 1, 9, 1, 30, 0, 10]
    assert [looked_at.is_a_part_with(size) for size in sizes] == [
        *(False, False, True),
        *(False, True),
        *(True, False, True),
    ]
