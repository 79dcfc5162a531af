"""What the files of a window say, and how loads are shown."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from regent.cli import main
from regent_rebalance.errors import InvalidInputError
from regent_rebalance.history_text import render_loads
from regent_rebalance.sampled_window import SampledWindow, window_of

NOON = 1_795_348_800_000
MINUTE = 60_000


def window(
    partitions: list[int], brokers: list[int] | None = None, unreadable: tuple[str, ...] = ()
) -> SampledWindow:
    """Of moments in minutes after noon."""
    return window_of(
        [NOON + minute * MINUTE for minute in partitions],
        [NOON + minute * MINUTE for minute in (partitions if brokers is None else brokers)],
        unreadable,
        since=NOON,
        until=NOON + 60 * MINUTE,
        workspace="w",
    )


def test_a_whole_window_has_no_problems() -> None:
    found = window([3, 1, 2])
    assert found.moments == tuple(NOON + minute * MINUTE for minute in (1, 2, 3))
    assert (found.problems(), found.missing, found.longest_interval) == ([], 0, 3 * MINUTE)


def test_each_problem_is_a_sentence() -> None:
    found = window([0, 1, 2, 10], [0, 1, 2, 11], ("b", "a"))
    assert found.problems() == [
        "2 unreadable files do not count: a, b",
        "2 samples have only one of their two files: 2026-11-22T12:10:00+00:00, "
        "2026-11-22T12:11:00+00:00",
        "some 7 moments are missing: 2026-11-22T12:02:00+00:00 to 2026-11-22T12:10:00+00:00",
    ]


@pytest.mark.parametrize("moments", [[], [5]])
def test_one_moment_has_no_loads(moments: list[int]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        window(moments, unreadable=("a",))
    assert str(refused.value) == (
        f"w has {len(moments)} samples from 2026-11-22T12:00:00+00:00 to "
        "2026-11-22T13:00:00+00:00, and 1 files are unreadable: loads need two at least: "
        "sample more, or choose a longer window"
    )


def test_what_is_unknown_is_shown_so() -> None:
    loads = {
        f"{name}_{what}": None if name == "out" else 2_000_000.0
        for name in ("disk", "leader_in", "follower_in", "out")
        for what in ("percentile", "peak")
    }
    unknown = {"disk_unknown": 0, "in_unknown": 4, "out_unknown": None}
    lines = render_loads(
        {
            "cluster": "c1",
            "since": "then",
            "until": "now",
            "percentile": 99.5,
            "moments": 2016,
            "missingMoments": 7,
            "halfMoments": 0,
            "unreadableFiles": ["torn.parquet"],
            "leftOut": ["secret"],
            "bad": {"offset_fell": 3, "gap": 0},
            "intervals": {"idle": 1, "unknown": 2},
            "brokers": [{"broker": 5, **loads, **unknown}],
        }
    ).splitlines()
    assert (
        "bad        offset fell 3, missing moments 7, unreadable files 1, topics or "
        "partitions left out 1"
    ) in lines
    assert "           torn.parquet" in lines
    assert "           secret" in lines
    assert "disk, p99.5 (peak)" in lines[-2]
    assert lines[-1].split() == [
        *("5", "2", "MB", "(2", "MB)", "2", "MB/s", "(2", "MB/s)", "2", "MB/s", "(2", "MB/s)"),
        *("unknown", "0,", "4,", "?"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sample", "w", "--retention", "long"], "'long' is no duration, such as 7d"),
        (["plan", "x.json", "--history", "w", "--window", "1w"], "'1w' is no duration"),
        (["plan", "loads", "w", "--percentile", "101"], "101.0 is not in the range 0<=x<=100"),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert message in result.output
