"""Where samples are, by their names alone."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent_rebalance.history_layout import (
    DAY_MS,
    SampleFile,
    day_of,
    days_of,
    expired_days,
    gaps_of,
    parse_duration,
    usual_step,
)

MINUTE = 60_000
NOON = 1_795_348_800_000
"""2026-11-22, 12:00 UTC."""


def test_a_name_says_when_and_how_many() -> None:
    assert SampleFile(NOON + 1, 433_604).name == "20261122T120000.001Z-433604.parquet"
    assert day_of(NOON) == "day=2026-11-22"


@given(st.integers(0, 4_000_000_000_000), st.integers(0, 10**9))
def test_names_are_read_back_and_sort_by_time(moment: int, rows: int) -> None:
    file = SampleFile(moment, rows)
    assert SampleFile.parse(file.name) == file
    assert file.name < SampleFile(moment + 1, rows).name


@pytest.mark.parametrize(
    "name",
    [
        ".20261122T120000.001Z-3.parquet",
        "20261122T120000.001Z-3.parquet.crc",
        "20261399T120000.001Z-3.parquet",
        "20261122T120000.001Z.parquet",
        "_SUCCESS",
    ],
)
def test_other_names_are_no_samples(name: str) -> None:
    assert SampleFile.parse(name) is None


def test_the_days_of_a_window_are_all_it_touches() -> None:
    assert days_of(NOON - DAY_MS, NOON) == ["day=2026-11-21", "day=2026-11-22"]
    assert days_of(NOON, NOON) == ["day=2026-11-22"]


def test_a_day_expires_when_its_last_moment_is_too_old() -> None:
    days = ["day=2026-11-20", "day=2026-11-21", "day=2026-11-22", "day=nonsense", "other"]
    midnight = NOON - 12 * 60 * MINUTE
    assert expired_days(days, newest=midnight, keep=DAY_MS) == ["day=2026-11-20"]
    assert expired_days(days, newest=midnight - 1, keep=DAY_MS) == []
    assert expired_days(days, newest=NOON, keep=0) == ["day=2026-11-20", "day=2026-11-21"]


def test_the_usual_step_is_the_median_and_gaps_are_longer_than_three() -> None:
    moments = [NOON + minute * MINUTE for minute in (0, 5, 10, 25, 41, 46)]
    assert usual_step(moments) == 5 * MINUTE
    assert gaps_of(moments) == [(NOON + 25 * MINUTE, NOON + 41 * MINUTE)]
    assert gaps_of(moments[:1]) == []
    with pytest.raises(ValueError, match="two moments"):
        usual_step(moments[:1])


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("7d", datetime.timedelta(days=7)),
        ("36h", datetime.timedelta(hours=36)),
        ("90m", datetime.timedelta(minutes=90)),
        ("45s", datetime.timedelta(seconds=45)),
    ],
)
def test_durations(text: str, span: datetime.timedelta) -> None:
    assert parse_duration(text) == span // datetime.timedelta(milliseconds=1)


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1.5h", "1w", "0d", "9999999d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        parse_duration(text)
