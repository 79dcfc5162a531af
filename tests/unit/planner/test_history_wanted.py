"""How old a history may be, and what a plan says of the loads that it was made from."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from click.testing import CliRunner

from regent_rebalance.cli import plan
from regent_rebalance.errors import HistoryError
from regent_rebalance.files import load_plan, save_snapshot
from regent_rebalance.history_wanted import Wanted, check_age
from regent_rebalance.json_files import decode_plan, decode_snapshot, encode_snapshot
from tests.unit.planner.clusters import cluster

NOON = 1_795_348_800_000
HOUR = 3_600_000
NOTES = ("loads are of 6 moments", "the history has no size of 1 of 2 partitions")


def wanted(max_age: int | None) -> Wanted:
    return Wanted("/history", 7 * 24 * HOUR, 95, None, max_age)


@pytest.mark.parametrize(("max_age", "age"), [(HOUR, HOUR), (None, 10_000 * HOUR)])
def test_a_history_that_goes_on_is_used_and_any_if_no_age_is_wanted(
    max_age: int | None, age: int
) -> None:
    check_age(wanted(max_age), newest=NOON, now=NOON + age)


@pytest.mark.parametrize(
    ("age", "said"), [(HOUR + 1, "60 min ago"), (3 * HOUR, "3 h ago"), (72 * HOUR, "3 d ago")]
)
def test_one_that_has_ended_is_not_and_its_end_is_said(age: int, said: str) -> None:
    with pytest.raises(HistoryError) as caught:
        check_age(wanted(HOUR), newest=NOON, now=NOON + age)
    assert str(caught.value) == (
        f"the newest sample in /history is of 2026-11-22T12:00:00+00:00, {said}, and may be 60 min "
        "old: see why no samples are taken, or allow older ones"
    )


def test_one_that_is_still_to_come_is_not_used_but_clocks_may_differ_somewhat() -> None:
    check_age(wanted(HOUR), newest=NOON + HOUR, now=NOON)
    with pytest.raises(HistoryError) as caught:
        check_age(wanted(HOUR), newest=NOON + HOUR + 1, now=NOON)
    assert "is of 2026-11-22T13:00:00+00:00, which is still to come" in str(caught.value)


def test_what_is_to_be_said_of_loads_is_in_the_plan_and_changes_nothing_else(
    tmp_path: Path,
) -> None:
    """A snapshot with loads goes from the driver of a job to its executor."""
    own = cluster(["a", "b", "c"], [[1, 2]] * 6)
    noted = decode_snapshot(encode_snapshot(dataclasses.replace(own, notes=NOTES)), source="-")
    assert noted.notes == NOTES
    file, made = tmp_path / "snapshot.json", tmp_path / "plan.json"
    hashes = set()
    for snapshot in (own, noted):
        save_snapshot(snapshot, file)
        run = CliRunner().invoke(plan, ["make", str(file), "--json", "-o", str(made)])
        document = decode_plan(run.stdout_bytes, source="-")
        assert document.details is not None
        assert document.details.notes == snapshot.notes
        kept = load_plan(made)
        assert kept.details is not None
        assert (kept.hash, kept.details.notes) == (document.hash, snapshot.notes)
        hashes.add(document.hash)
    assert len(hashes) == 1
