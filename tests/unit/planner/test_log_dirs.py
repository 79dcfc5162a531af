"""Brokers with several log directories: which of them new replicas fill is said beforehand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from regent_rebalance.describe import described
from regent_rebalance.errors import InvalidInputError
from regent_rebalance.files import load_snapshot, save_snapshot
from regent_rebalance.goals import DISK_CAPACITY, RACK, Goals
from regent_rebalance.planner import make_plan
from regent_rebalance.schedule import Limits
from regent_rebalance.snapshot import LogDir, Snapshot
from regent_rebalance.what_if import WhatIf, assume
from tests.unit.planner.clusters import cluster


def drained(*directories: LogDir, sizes: tuple[int, ...]) -> Snapshot:
    """Broker 1 has all partitions, and broker 2, with these directories, nothing of them."""
    snapshot = cluster(["a", "a"], [[1] for _ in sizes], sizes=list(sizes))
    brokers = dataclasses.replace(snapshot.brokers, log_dirs=((), directories))
    return dataclasses.replace(snapshot, brokers=brokers)


def notes(snapshot: Snapshot, goals: Goals, *, copies: int = 5) -> tuple[str, ...]:
    details = described(snapshot, goals, make_plan(snapshot, goals), Limits(copies=copies)).details
    assert details is not None
    return details.schedule.notes


DRAIN = Goals(names=(RACK,), drained=(1,))


def test_a_new_replica_goes_where_the_fewest_are_even_if_it_does_not_fit() -> None:
    small, large = LogDir("/small", 100, 90, 1), LogDir("/large", 1000, 0, 2)
    (note,) = notes(drained(small, large, sizes=(50,)), DRAIN)
    assert (
        "/small of broker 2 gets about 1 replicas and then has 140 bytes, 40 above its limit of 100"
        in note
    )


def test_directories_take_turns() -> None:
    """The largest comes first, where equally few are in the roomiest; so each gets two of four."""
    room = LogDir("/b", 1000, 0, 0)
    assert notes(drained(LogDir("/a", 40, 0, 0), room, sizes=(30, 20, 10, 40)), DRAIN) == ()
    (note,) = notes(drained(LogDir("/a", 39, 0, 0), room, sizes=(30, 20, 10, 40)), DRAIN)
    assert "/a of broker 2 gets about 2 replicas and then has 40 bytes, 1 above" in note


def test_the_limit_is_that_of_disk_capacities() -> None:
    snapshot = drained(LogDir("/a", 100, 50, 0), LogDir("/b", 900, 0, 5), sizes=(40,))
    brokers = snapshot.brokers
    brokers.disk_bytes[:] = [1000, 1000]
    assert notes(snapshot, DRAIN) == ()
    goals = dataclasses.replace(DRAIN, names=(RACK, DISK_CAPACITY))
    (note,) = notes(snapshot, goals)
    assert "10 above its limit of 80" in note


def test_a_full_directory_that_gets_nothing_is_no_matter_of_the_plan() -> None:
    full = LogDir("/full", 100, 100, 9)
    assert notes(drained(full, LogDir("/b", 100, 0, 0), sizes=(40,)), DRAIN) == ()


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_directories_survive_files_and_added_brokers(tmp_path: Path, suffix: str) -> None:
    snapshot = drained(LogDir("/a", 100, 50, 0), LogDir("/b", 900, 0, 5), sizes=(40,))
    save_snapshot(snapshot, tmp_path / f"snapshot.{suffix}")
    loaded = load_snapshot(tmp_path / f"snapshot.{suffix}")
    assert loaded.brokers.log_dirs == snapshot.brokers.log_dirs
    larger, _ = assume(loaded, WhatIf(added={0: "a"}))
    assert larger.brokers.log_dirs == ((), *snapshot.brokers.log_dirs)


def test_a_directory_has_no_less_than_nothing() -> None:
    with pytest.raises(InvalidInputError, match="log directory /a: usedBytes -1 is negative"):
        LogDir("/a", 1, -1, 0)
