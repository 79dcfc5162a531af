"""Rounds of confirmation: what kopf's stream has not shown is looked up, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.kube.confirmation import ConfirmationRounds

SETTLED_S, SILENT_S, PAUSE_MAX_S = 2.0, 5.0, 100.0


class Rounds(ConfirmationRounds):
    """Rounds of one scope, ``shop`` or all, that began at 0, with a clock."""

    def __init__(self, *known: str, scope: str = "shop") -> None:
        super().__init__(
            settled_after_s=SETTLED_S, silent_after_s=SILENT_S, pause_max_s=PAUSE_MAX_S
        )
        self.known, self.scope, self.now = set(known), scope, 0.0
        self.begin([scope], at=0.0)

    def show(self, type_: str | None, *uids: str, after_s: float = 0.0) -> None:
        self.now += after_s
        for uid in uids:
            self.take(type_, namespace="shop", uid=uid, at=self.now)

    def next(self) -> set[str] | None:
        """Let the time pass until something is due; what is looked up then. None: never."""
        if self.due_at is None:
            return None
        self.now = max(self.now, self.due_at)
        found = self.check_out([("shop", uid) for uid in self.known], at=self.now)
        assert found.keys() <= {self.scope}
        return set(found.get(self.scope, ()))


def test_nothing_is_looked_up_before_it_is_due() -> None:
    rounds = Rounds("a")
    assert rounds.check_out([("shop", "a")], at=SILENT_S - 0.1) == {}
    assert rounds.next() == {"a"}


def test_changes_do_not_put_off_the_look_up() -> None:
    rounds = Rounds("a", "deleted")
    rounds.show(None, "a", after_s=1)
    rounds.show("MODIFIED", "a", after_s=0.9 * SETTLED_S)
    assert rounds.due_at == 1 + SETTLED_S


def test_while_nothing_arrives_objects_are_looked_up_with_growing_pauses() -> None:
    """kopf's list may be later than the look-up, and show nothing."""
    rounds = Rounds("a")
    times: list[float] = []
    while len(times) < 7:
        assert rounds.next() == {"a"}
        times.append(rounds.now)
    assert times == [5, 15, 35, 75, 155, 255, 355]
    rounds.show(None, "b")
    assert rounds.next() == {"a"}
    assert rounds.next() is None


@pytest.mark.parametrize("shown", ["a", "new"])
def test_a_list_after_the_round_is_over_begins_a_new_one(shown: str) -> None:
    rounds = Rounds("a", "deleted")
    rounds.show(None, "a", "deleted")
    assert rounds.next() == set()
    rounds.show(None, shown, after_s=3600)
    assert rounds.next() == {"a", "deleted"} - {shown}
    assert rounds.next() is None


def test_a_look_up_that_failed_is_due_again() -> None:
    rounds = Rounds("a", "deleted")
    rounds.show(None, "a")
    assert rounds.next() == {"deleted"}
    rounds.not_looked_up("shop", at=rounds.now)
    assert rounds.due_at == rounds.now + SILENT_S
    assert "deleted" in (rounds.next() or ())
    assert rounds.next() is None


def test_nothing_is_over_before_it_has_begun() -> None:
    rounds = ConfirmationRounds(settled_after_s=1, silent_after_s=1, pause_max_s=1)
    assert not rounds.is_over
    rounds.begin(["shop"], at=0)
    assert not rounds.is_over
    rounds.take(None, namespace="shop", uid="a", at=0)
    assert rounds.check_out([], at=1) == {}
    assert rounds.is_over


def test_each_scope_has_rounds_of_its_own() -> None:
    rounds = Rounds()
    rounds.begin(["shop", "blog"], at=0)
    rounds.take(None, namespace="shop", uid="a", at=1)
    known = [("shop", "a"), ("blog", "b"), ("elsewhere", "c")]
    assert rounds.check_out(known, at=1 + SETTLED_S) == {}
    assert rounds.check_out(known, at=SILENT_S) == {"blog": {"b"}}
    rounds.take(None, namespace="elsewhere", uid="c", at=6)
    rounds.not_looked_up("elsewhere", at=6)
    rounds.begin(["blog"], at=100)
    assert rounds.due_at == 100 + SILENT_S


@given(known=st.sets(st.text()), new=st.sets(st.text()), delays=st.data())
def test_a_list_that_shows_everything_costs_no_look_up(
    known: set[str], new: set[str], delays: st.DataObject
) -> None:
    rounds = Rounds(*known)
    for uid in delays.draw(st.permutations(sorted(known | new))):
        rounds.show(None, uid, after_s=delays.draw(st.floats(0, SETTLED_S, exclude_max=True)))
        rounds.known.add(uid)
    assert rounds.next() == set()
