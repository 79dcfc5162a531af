"""Work on all partitions gives way to what brokers wait for."""

from __future__ import annotations

from regent.controller.giving_way import LookedAt, after_announcement_ms


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
