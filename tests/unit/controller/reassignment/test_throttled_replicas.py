"""Lists of throttled replicas and rates that several tools change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.controller.reassignment.throttled_replicas import (
    MergedList,
    MergedRate,
    merge_list,
    merge_rate,
)

ENTRIES = st.sampled_from(["0:1", "0:2", "1:1", "1:3", "7:12"])
FOREIGN = st.one_of(ENTRIES, st.sampled_from(["nonsense", "0", "5:5"]))
LISTS = st.one_of(
    st.none(), st.just("*"), st.lists(FOREIGN, unique=True).map(",".join), st.just(" ")
)
WANTED = st.lists(ENTRIES, unique=True)


def entries(value: str | None) -> list[str]:
    return [] if value is None or not value.strip() else value.split(",")


@given(LISTS, WANTED)
def test_what_was_there_before_is_there_afterwards(before: str | None, wanted: list[str]) -> None:
    during = merge_list(before, ours=(), wanted=wanted)
    after = merge_list(during.value, ours=during.ours, wanted=())
    assert entries(after.value) == entries(before)
    assert after.ours == ()


@given(LISTS, WANTED, WANTED)
def test_what_is_wanted_last_counts(before: str | None, first: list[str], then: list[str]) -> None:
    one = merge_list(before, ours=(), wanted=first)
    two = merge_list(one.value, ours=one.ours, wanted=then)
    if before == "*":
        assert two == MergedList("*", ())
        return
    assert set(entries(two.value)) == {*entries(before), *then}
    assert set(two.ours) == set(then) - set(entries(before))


@given(LISTS, WANTED, LISTS)
def test_a_list_that_somebody_has_replaced_loses_ours_alone(
    before: str | None, wanted: list[str], replaced: str | None
) -> None:
    ours = merge_list(before, ours=(), wanted=wanted).ours
    after = merge_list(replaced, ours=ours, wanted=())
    kept = [e for e in entries(replaced) if e not in ours]
    assert entries(after.value) == kept


@given(LISTS, WANTED)
def test_repeating_it_changes_nothing(before: str | None, wanted: list[str]) -> None:
    once = merge_list(before, ours=(), wanted=wanted)
    assert merge_list(once.value, ours=once.ours, wanted=wanted) == once


def test_an_entry_that_somebody_has_removed_is_set_again() -> None:
    assert merge_list("5:5", ours=("0:1",), wanted=["0:1"]) == MergedList("5:5,0:1", ("0:1",))


def test_a_list_that_stays_as_it_is_keeps_its_form() -> None:
    assert merge_list("1:3, 0:1", ours=(), wanted=["0:1"]) == MergedList("1:3, 0:1", ())


@pytest.mark.parametrize(
    ("value", "ours", "wanted", "merged"),
    [
        pytest.param(None, None, 10, MergedRate("10", 10), id="there was none"),
        pytest.param("10", 10, 20, MergedRate("20", 20), id="ours changes"),
        pytest.param("10", 10, None, MergedRate(None, None), id="ours goes"),
        pytest.param("5", None, 10, MergedRate("5", None), id="a foreign one stays"),
        pytest.param("5", 10, 10, MergedRate("5", None), id="somebody has replaced ours"),
        pytest.param("5", 10, None, MergedRate("5", None), id="and it stays when ours goes"),
        pytest.param(None, 10, 10, MergedRate("10", 10), id="somebody has removed ours"),
        pytest.param(None, 10, None, MergedRate(None, None), id="it is gone already"),
        pytest.param("fast", None, None, MergedRate("fast", None), id="nonsense is not ours"),
    ],
)
def test_a_rate(value: str | None, ours: int | None, wanted: int | None, merged: object) -> None:
    assert merge_rate(value, ours=ours, wanted=wanted) == merged
