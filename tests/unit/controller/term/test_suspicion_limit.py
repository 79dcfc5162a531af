"""How often a replica may depose another one because it suspects that one."""

from __future__ import annotations

import pytest

from regent.controller.term.suspicion_limit import SuspicionLimit

NOW = 1_800_000_000_000
OTHER = "the other one"
DEAD = "the dead one"


@pytest.fixture
def limit() -> SuspicionLimit:
    return SuspicionLimit(first_ms=30, max_ms=100)


def allows(limit: SuspicionLimit, now_ms: int) -> bool:
    """While all are registered who were suspected."""
    return limit.allows(now_ms, registered={OTHER})


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


class TestDeadReplicas:
    def test_a_dead_replica_is_deposed_without_a_wait(self, limit: SuspicionLimit) -> None:
        limit.note_take_over(NOW, [OTHER])
        limit.note_deposed(NOW)
        assert not limit.allows(NOW + 1, registered={OTHER, DEAD})
        assert limit.allows(NOW + 1, registered={OTHER, DEAD}, dead=[DEAD])

    def test_no_wait_follows_while_the_dead_replica_is_registered(
        self, limit: SuspicionLimit
    ) -> None:
        limit.note_take_over(NOW, [DEAD], dead=[DEAD])
        assert limit.allows(NOW + 1, registered={DEAD, OTHER})
        assert limit.allows(NOW + 1, registered={DEAD, OTHER}, dead=[OTHER])

    def test_an_earlier_wait_goes_on(self, limit: SuspicionLimit) -> None:
        limit.note_take_over(NOW, [OTHER])
        limit.note_take_over(NOW + 10, [DEAD], dead=[DEAD])
        assert not limit.allows(NOW + 29, registered={OTHER})
        assert limit.allows(NOW + 30, registered={OTHER})

    def test_a_replica_that_leads_after_it_was_held_to_be_dead_is_deposed_after_a_wait(
        self, limit: SuspicionLimit
    ) -> None:
        """A network that ends connections and refuses new ones looks like a death to both."""
        for began, wait in ((0, 30), (30, 30), (60, 60)):
            limit.note_take_over(NOW + began, [DEAD], dead=[DEAD])
            limit.note_deposed(NOW + began)
            assert not limit.allows(NOW + began + wait - 1, registered={DEAD}, dead=[DEAD])
            assert limit.allows(NOW + began + wait, registered={DEAD}, dead=[DEAD])


def test_a_clock_that_is_set_back_does_not_prolong_a_wait(limit: SuspicionLimit) -> None:
    limit.note_take_over(NOW, [OTHER])
    limit.note_deposed(NOW)
    assert not allows(limit, NOW - 1_000)
    assert allows(limit, NOW - 1_000 + 30)
