"""From what happens to a connection, and when, to a suspicion and its reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.replicas.suspicion import Reason, Suspicion, SuspicionSettings

SETTINGS = SuspicionSettings()


@pytest.fixture
def suspicion() -> Suspicion:
    return Suspicion(SETTINGS)


def test_who_was_never_heard_is_not_suspected(suspicion: Suspicion) -> None:
    suspicion.lost(0.0)
    for now in (0.0, 1.0, 2.0, 30.0):
        suspicion.refused(now)
        suspicion.unreached(now)
        suspicion.looked(now)
    suspicion.replaced()
    assert suspicion.reason is None
    assert not suspicion.is_in_doubt


def test_an_end_that_refusals_follow_is_a_death(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    suspicion.lost(5.1)
    seen = [(suspicion.reason, suspicion.is_in_doubt)]
    for now in (5.1005, 5.111):
        suspicion.refused(now)
        seen.append((suspicion.reason, suspicion.is_in_doubt))
    assert seen == [(None, True), (None, True), (Reason.DEAD, False)]


def test_a_connection_between_two_refusals_starts_anew(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    suspicion.lost(5.1)
    suspicion.refused(5.101)
    suspicion.accepted()
    suspicion.refused(5.2)
    assert suspicion.reason is None


def test_refusals_without_an_end_say_nothing(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    suspicion.refused(5.1)
    suspicion.refused(5.2)
    assert suspicion.reason is None


def test_an_end_after_which_nobody_answers_is_a_pod_that_is_gone(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    suspicion.lost(5.1)
    suspicion.unreached(5.15)
    assert suspicion.reason is None
    suspicion.unreached(5.2)
    assert suspicion.reason is Reason.GONE


def test_another_process_at_its_port_has_replaced_it(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    suspicion.lost(5.1)
    suspicion.replaced()
    assert suspicion.reason is Reason.REPLACED


def test_an_end_alone_is_nothing_if_it_answers_again(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    suspicion.lost(5.1)
    suspicion.accepted()
    suspicion.answered(5.11)
    suspicion.looked(5.2)
    assert suspicion.reason is None
    assert not suspicion.is_in_doubt


def test_one_that_has_said_that_it_ends_is_not_suspected(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    suspicion.left()
    suspicion.lost(5.1)
    for now in (5.2, 5.3, 9.0):
        suspicion.refused(now)
        suspicion.unreached(now)
        suspicion.looked(now)
    assert suspicion.reason is None


def test_silence_is_a_process_that_is_frozen(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    for look in range(9):
        suspicion.looked(5.2 + 0.2 * look)
        assert suspicion.reason is None
    suspicion.looked(7.01)
    assert suspicion.reason is Reason.FROZEN


def test_a_connection_that_is_accepted_but_not_answered_does_not_end_the_silence(
    suspicion: Suspicion,
) -> None:
    suspicion.answered(5.0)
    for now in (5.5, 6.0):
        suspicion.looked(now)
    suspicion.lost(6.0)
    suspicion.accepted()
    for now in (6.4, 6.8, 7.1):
        suspicion.looked(now)
    assert suspicion.reason is Reason.FROZEN


def test_an_answer_ends_a_suspicion(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    suspicion.lost(5.0)
    suspicion.replaced()
    suspicion.answered(6.0)
    assert suspicion.reason is None


def test_another_that_lives_at_its_address_neither_raises_nor_ends_a_suspicion(
    suspicion: Suspicion,
) -> None:
    suspicion.answered(5.0)
    suspicion.lost(5.1)
    suspicion.unknown()
    suspicion.refused(5.2)
    suspicion.refused(5.3)
    assert suspicion.reason is None
    suspicion.answered(6.0)
    suspicion.lost(6.1)
    suspicion.refused(6.2)
    suspicion.refused(6.3)
    suspicion.unknown()
    assert suspicion.reason is Reason.DEAD


def test_the_first_reason_stays(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    suspicion.lost(5.0)
    suspicion.replaced()
    suspicion.unreached(5.1)
    suspicion.unreached(5.2)
    assert suspicion.reason is Reason.REPLACED


def test_a_frozen_replica_is_dead_when_its_connection_ends_and_its_port_refuses(
    suspicion: Suspicion,
) -> None:
    suspicion.answered(5.0)
    for now in (5.6, 6.2, 6.8, 7.1):
        suspicion.looked(now)
    suspicion.refused(7.2)
    suspicion.refused(7.3)
    seen = [suspicion.reason]
    suspicion.lost(7.4)
    suspicion.refused(7.5)
    suspicion.refused(7.6)
    seen.append(suspicion.reason)
    assert seen == [Reason.FROZEN, Reason.DEAD]


def test_a_pause_of_ones_own_is_no_silence_of_others(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    suspicion.looked(5.2)
    suspicion.looked(65.2)
    assert suspicion.reason is None
    for look in range(1, 9):
        suspicion.looked(65.2 + 0.2 * look)
        assert suspicion.reason is None, look
    suspicion.looked(67.1)
    assert suspicion.reason is Reason.FROZEN


def test_a_pause_right_after_the_first_answer_is_no_silence_either(suspicion: Suspicion) -> None:
    suspicion.answered(5.0)
    suspicion.looked(82.5)
    assert suspicion.reason is None
    suspicion.answered(82.6)
    suspicion.looked(84.0)
    suspicion.looked(84.4)
    assert suspicion.reason is None


def test_an_attempt_that_a_pause_of_ones_own_has_outlasted_decides_nothing(
    suspicion: Suspicion,
) -> None:
    suspicion.answered(5.0)
    suspicion.looked(5.1)
    suspicion.lost(5.1)
    suspicion.looked(35.1)
    suspicion.unreached(35.15)
    assert suspicion.reason is None


class TestUnheard:
    """Nothing is held of it, and it does not answer: it keeps nobody waiting."""

    def test_two_refusals_of_one_that_was_never_heard(self, suspicion: Suspicion) -> None:
        suspicion.asked(5.0)
        suspicion.refused(5.0)
        assert (suspicion.is_unheard, suspicion.is_in_doubt) == (False, True)
        suspicion.refused(5.011)
        assert (suspicion.is_unheard, suspicion.is_in_doubt) == (True, False)
        assert suspicion.reason is None

    def test_a_connection_between_two_refusals_starts_anew(self, suspicion: Suspicion) -> None:
        suspicion.asked(5.0)
        suspicion.refused(5.0)
        suspicion.accepted()
        suspicion.refused(5.5)
        assert not suspicion.is_unheard

    @pytest.mark.parametrize("becomes", ["unreached", "accepted", "lost", "replaced", "unknown"])
    def test_whatever_becomes_of_attempts_without_an_answer_it_is_asked_for_a_while(
        self, suspicion: Suspicion, becomes: str
    ) -> None:
        suspicion.asked(5.0)
        for look in range(1, 10):
            suspicion.asked(5.0 + 0.2 * look)
            in_time = becomes in ("unreached", "lost")
            getattr(suspicion, becomes)(*([5.0 + 0.2 * look] if in_time else []))
            suspicion.looked(5.0 + 0.2 * look)
            assert not suspicion.is_unheard, look
        suspicion.looked(7.01)
        assert suspicion.is_unheard
        assert suspicion.reason is None

    def test_an_answer_ends_it_and_silence_after_that_is_a_suspicion(
        self, suspicion: Suspicion
    ) -> None:
        suspicion.asked(5.0)
        suspicion.refused(5.0)
        suspicion.refused(5.1)
        suspicion.answered(6.0)
        assert not suspicion.is_unheard
        suspicion.lost(6.1)
        for now in (6.11, 6.13):
            suspicion.asked(now)
            suspicion.refused(now)
        assert (suspicion.is_unheard, suspicion.reason) == (False, Reason.DEAD)

    def test_one_that_is_heard_is_not_unheard_while_its_connection_is_opened_again(
        self, suspicion: Suspicion
    ) -> None:
        suspicion.answered(5.0)
        suspicion.lost(5.1)
        suspicion.asked(5.1)
        suspicion.refused(5.1)
        assert not suspicion.is_unheard

    def test_one_that_has_said_that_it_ends_is_asked_anew(self, suspicion: Suspicion) -> None:
        suspicion.asked(4.0)
        suspicion.answered(5.0)
        suspicion.left()
        suspicion.looked(9.0)
        seen = [suspicion.is_unheard]
        suspicion.asked(9.0)
        for look in range(1, 11):
            suspicion.looked(9.0 + 0.21 * look)
            seen.append(suspicion.is_unheard)
        assert seen == [*(False,) * 10, True]
        assert suspicion.reason is None

    def test_a_pause_of_ones_own_is_no_silence_of_others(self, suspicion: Suspicion) -> None:
        suspicion.asked(5.0)
        suspicion.looked(82.5)
        assert not suspicion.is_unheard
        suspicion.looked(84.0)
        assert not suspicion.is_unheard

    def test_a_refusal_before_a_pause_and_one_after_it_are_one(self, suspicion: Suspicion) -> None:
        suspicion.asked(5.0)
        suspicion.looked(5.0)
        suspicion.refused(5.0)
        suspicion.looked(35.0)
        suspicion.refused(35.0)
        assert not suspicion.is_unheard


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("asked", "lost", "refused", "unreached", "looked", "accepted")),
            st.floats(0.0, 0.5),
        ),
        max_size=40,
    )
)
def test_whoever_has_just_answered_is_not_suspected(history: list[tuple[str, float]]) -> None:
    suspicion, now = Suspicion(SETTINGS), 0.0
    for name, after in history:
        now += after
        getattr(suspicion, name)(*(() if name == "accepted" else (now,)))
    suspicion.answered(now)
    suspicion.looked(now + SETTINGS.silence_s / 2)
    assert suspicion.reason is None
    assert not suspicion.is_unheard
