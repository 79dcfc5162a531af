"""Work on all partitions gives way to what brokers wait for."""

from __future__ import annotations

from regent.controller.giving_way import after_announcement_ms


def test_the_larger_the_cluster_the_later_other_work_on_all_of_it_begins() -> None:
    assert after_announcement_ms(0) == after_announcement_ms(100_000) == 500
    assert after_announcement_ms(1_000_000) == 5_000
