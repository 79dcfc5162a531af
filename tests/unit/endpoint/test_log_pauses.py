"""What may happen any number of times is logged once in a while."""

from __future__ import annotations

from regent.endpoint.log_pauses import SILENT_S, LogPauses
from tests.support.clock import Clock


def test_each_thing_is_logged_once_until_its_pause_is_over() -> None:
    clock = Clock()
    pauses = LogPauses(clock)
    assert pauses.is_over("a")
    clock.now_s += SILENT_S / 2
    assert not pauses.is_over("a")
    assert pauses.is_over("b")
    clock.now_s += SILENT_S / 2
    assert pauses.is_over("a")
    assert not pauses.is_over("b")


def test_what_was_logged_long_ago_is_forgotten() -> None:
    clock = Clock()
    pauses = LogPauses(clock)
    for number in range(1_000):
        assert pauses.is_over(str(number))
    clock.now_s += SILENT_S
    assert pauses.is_over("another")
    assert len(pauses) == 1
