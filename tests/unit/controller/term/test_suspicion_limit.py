"""How often a replica may depose another one because it suspects that one."""

from __future__ import annotations

import pytest

from regent.controller.term.suspicion_limit import SuspicionLimit

NOW = 1_800_000_000_000


@pytest.fixture
def limit() -> SuspicionLimit:
    return SuspicionLimit(first_ms=30, max_ms=100)


def test_the_first_suspicion_is_acted_upon(limit: SuspicionLimit) -> None:
    assert limit.allows(NOW)


def test_the_wait_doubles_up_to_its_bound(limit: SuspicionLimit) -> None:
    now = NOW
    for wait in (30, 60, 100, 100):
        limit.note_take_over(now)
        assert not limit.allows(now + wait - 1), wait
        now += wait
        assert limit.allows(now), wait


def test_a_long_time_without_one_is_forgiven(limit: SuspicionLimit) -> None:
    limit.note_take_over(NOW)
    limit.note_take_over(NOW + 31)
    limit.note_take_over(NOW + 31 + 100)
    assert not limit.allows(NOW + 131 + 30)
    limit.note_take_over(NOW + 131 + 200)
    assert limit.allows(NOW + 331 + 30)


def test_who_was_deposed_waits_from_its_next_suspicion_on(limit: SuspicionLimit) -> None:
    limit.note_deposed()
    assert not limit.allows(NOW)
    assert not limit.allows(NOW + 29)
    assert limit.allows(NOW + 30)


def test_a_clock_that_is_set_back_does_not_prolong_a_wait(limit: SuspicionLimit) -> None:
    limit.note_take_over(NOW)
    assert not limit.allows(NOW - 1_000)
    assert limit.allows(NOW - 1_000 + 30)
