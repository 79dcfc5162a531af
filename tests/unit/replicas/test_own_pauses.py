"""When a process has slept, and what proves that this does not matter."""

from __future__ import annotations

from regent.replicas.own_pauses import OwnPauses


def test_looks_that_follow_each_other_are_no_pause() -> None:
    pauses = OwnPauses(0.5, 100.0)
    assert [pauses.looked(now) for now in (100.25, 100.75, 101.25)] == [None, None, None]
    assert (pauses.count, pauses.is_in_doubt) == (0, False)


def test_doubt_of_a_pause_lasts_until_a_later_proof() -> None:
    pauses = OwnPauses(0.5, 100.0)
    assert pauses.looked(102.0) == 2.0
    assert (pauses.count, pauses.is_in_doubt) == (1, True)
    assert pauses.looked(102.1) is None
    assert pauses.is_in_doubt
    pauses.proven(pauses.count)
    assert not pauses.is_in_doubt


def test_one_that_was_asked_for_before_another_pause_does_not() -> None:
    pauses = OwnPauses(0.5, 100.0)
    pauses.looked(102.0)
    asked = pauses.count
    pauses.looked(110.0)
    in_doubt = []
    for proof in (asked, pauses.count, asked):  # the first one comes once more, last
        pauses.proven(proof)
        in_doubt.append(pauses.is_in_doubt)
    assert in_doubt == [True, False, False]
