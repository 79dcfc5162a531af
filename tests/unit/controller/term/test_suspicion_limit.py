"""How often a replica may depose another one because it suspects that one."""

from __future__ import annotations

import pytest

from regent.controller.term.suspicion_limit import SuspicionLimit

NOW = 1_800_000_000_000
OTHER = "the other one"


@pytest.fixture
def limit() -> SuspicionLimit:
    return SuspicionLimit(first_ms=30, max_ms=100)


def allows(limit: SuspicionLimit, now_ms: int) -> bool:
    """While all are registered who were suspected."""
    return limit.allows(now_ms, registered={OTHER})


def test_the_first_suspicion_is_acted_upon(limit: SuspicionLimit) -> None:
    assert allows(limit, NOW)


def test_the_wait_doubles_up_to_its_bound(limit: SuspicionLimit) -> None:
    now = NOW
    for wait in (30, 60, 100, 100):
        limit.note_take_over(now, [OTHER])
        assert not allows(limit, now + wait - 1), wait
        now += wait
        assert allows(limit, now), wait


def test_a_long_time_without_one_is_forgiven(limit: SuspicionLimit) -> None:
    limit.note_take_over(NOW, [OTHER])
    limit.note_take_over(NOW + 31, [OTHER])
    limit.note_take_over(NOW + 31 + 100, [OTHER])
    assert not allows(limit, NOW + 131 + 30)
    limit.note_take_over(NOW + 131 + 200, [OTHER])
    assert allows(limit, NOW + 331 + 30)


def test_it_begins_anew_once_all_who_were_suspected_are_gone(limit: SuspicionLimit) -> None:
    limit.note_take_over(NOW, ["one", "two"])
    limit.note_take_over(NOW, ["one", "two"])
    assert not limit.allows(NOW + 1, registered={"two", "three"})
    assert limit.allows(NOW + 1, registered={"three"})
    limit.note_take_over(NOW + 1, [OTHER])
    assert not allows(limit, NOW + 30)
    assert allows(limit, NOW + 31)


def test_who_was_deposed_waits_as_well(limit: SuspicionLimit) -> None:
    limit.note_deposed(NOW)
    assert not allows(limit, NOW + 29)
    assert allows(limit, NOW + 30)


def test_who_was_deposed_waits_though_those_whom_it_had_suspected_are_gone(
    limit: SuspicionLimit,
) -> None:
    limit.note_take_over(NOW, [OTHER])
    limit.note_deposed(NOW + 10)
    assert not limit.allows(NOW + 39, registered=())
    assert limit.allows(NOW + 40, registered=())


def test_who_deposed_others_often_waits_as_long_when_it_is_deposed(limit: SuspicionLimit) -> None:
    limit.note_take_over(NOW, [OTHER])
    limit.note_take_over(NOW + 30, [OTHER])
    limit.note_deposed(NOW + 90)
    assert not allows(limit, NOW + 149)
    assert allows(limit, NOW + 150)


def test_a_clock_that_is_set_back_does_not_prolong_a_wait(limit: SuspicionLimit) -> None:
    limit.note_take_over(NOW, [OTHER])
    limit.note_deposed(NOW)
    assert not allows(limit, NOW - 1_000)
    assert allows(limit, NOW - 1_000 + 30)
