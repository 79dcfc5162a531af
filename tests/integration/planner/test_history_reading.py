"""A workspace as Spark finds it: intact, torn, damaged, half written."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.history_reading import History, read_history, spark_problems
from regent_rebalance.load_model import intervals, partition_loads
from regent_rebalance.samples import LeftOut
from regent_rebalance.workspace import Workspace
from tests.integration.planner.sampled import MINUTE, NOON, at, partition

pytestmark = [pytest.mark.integration, pytest.mark.slow]

HOUR = 60 * MINUTE


@pytest.fixture
def sampled(tmp_path: Path) -> Path:
    """Six samples, a minute apart; the path has a blank."""
    folder = tmp_path / "a workspace"
    for minute in range(6):
        rows = [partition(100 * minute, minute, number=number) for number in range(50)]
        Workspace(str(folder)).append(at(minute, *rows))
    return folder


def file_of(folder: Path, minute: int, kind: str = "partitions") -> Path:
    (found,) = folder.glob(f"cluster=c1/{kind}/*/20261122T12{minute:02}00.000Z-*.parquet")
    return found


def read(spark: Any, folder: Path, *, length: int = HOUR, cluster: str | None = None) -> History:
    return read_history(spark, str(folder), length=length, cluster=cluster)


def test_a_window_ends_with_the_newest_sample(spark: Any, sampled: Path) -> None:
    history = read(spark, sampled, length=2 * MINUTE)
    assert history.cluster == "c1"
    assert history.window.moments == tuple(NOON + minute * MINUTE for minute in (3, 4, 5))
    assert history.window.problems() == []
    assert (history.partitions.count(), history.brokers.count()) == (150, 6)
    assert history.window.longest_interval == 3 * MINUTE


def test_torn_files_do_not_count_and_are_named(spark: Any, sampled: Path) -> None:
    torn, empty, lost = (file_of(sampled, minute) for minute in (1, 2, 4))
    torn.write_bytes(torn.read_bytes()[:-100])
    empty.write_bytes(b"")
    lost.write_text("no Parquet at all, but long enough to be looked at")
    history = read(spark, sampled)
    assert history.partitions.count() == 150
    unreadable, half = history.window.problems()
    assert unreadable.startswith("3 unreadable files do not count: file:")
    assert all(file.name in unreadable for file in (torn, empty, lost))
    assert half.startswith("3 samples have only one of their two files: 2026-11-22T12:01:00+00:00")


def test_moments_that_are_missing_are_counted(spark: Any, sampled: Path) -> None:
    for minute in (10, 11):
        Workspace(str(sampled)).append(at(minute, partition(1_000, 10)))
    window = read(spark, sampled).window
    assert window.missing == 4
    assert window.problems() == [
        "some 4 moments are missing: 2026-11-22T12:05:00+00:00 to 2026-11-22T12:10:00+00:00"
    ]


def test_what_could_not_be_read_is_named_and_has_no_loads(spark: Any, sampled: Path) -> None:
    sample = at(6, partition(1_000, 10))
    left_out = [LeftOut("secret", None, "NOAUTH"), LeftOut("t", 3, "broken")]
    Workspace(str(sampled)).append(dataclasses.replace(sample, left_out=left_out))
    history = read(spark, sampled)
    assert history.left_out == ("secret", "t-3")
    assert history.partitions.count() == 301
    assert history.partitions.where("topic = 'secret'").count() == 0
    assert history.window.problems() == []


def test_samples_of_earlier_versions_are_read(spark: Any, sampled: Path) -> None:
    """They have neither the topics' creation nor what could not be read."""
    for file in sampled.glob("cluster=c1/partitions/*/*.parquet"):
        table = pq.ParquetFile(file).read().drop_columns(["created", "unreadable"])
        pq.write_table(table, file, write_page_checksum=True)
    history = read(spark, sampled)
    assert (history.partitions.count(), history.left_out) == (300, ())
    known = intervals(history.partitions, longest_interval=HOUR)
    assert partition_loads(known, percentile=95).where("moments = 6").count() == 50


def test_messages_about_a_workspace_name_no_credentials(spark: Any) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read_history(spark, "gopher://KEY:s3cret@bucket/x", length=HOUR, cluster=None)
    assert "s3cret" not in str(refused.value)
    assert "gopher" in str(refused.value)


def test_a_damaged_page_ends_the_job_and_its_file_is_named(spark: Any, sampled: Path) -> None:
    damaged = file_of(sampled, 2)
    content = bytearray(damaged.read_bytes())
    content[len(content) // 4] ^= 0xFF
    damaged.write_bytes(content)
    history = read(spark, sampled)
    known = intervals(history.partitions, longest_interval=HOUR)
    loads = partition_loads(known, percentile=95)
    with pytest.raises(InvalidInputError) as refused, spark_problems():
        loads.collect()
    assert "Spark cannot read the samples" in str(refused.value)
    assert damaged.name in str(refused.value)


def test_a_workspace_without_two_moments_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="has no samples: take some with regent sample"):
        read(spark, tmp_path)
    Workspace(str(tmp_path)).append(at(0, partition()))
    with pytest.raises(InvalidInputError, match=r"has 1 samples from .* need two at least"):
        read(spark, tmp_path)
    Workspace(str(tmp_path)).append(at(1, partition()))
    file_of(tmp_path, 0).write_bytes(b"")
    with pytest.raises(InvalidInputError, match="and 1 files are unreadable"):
        read(spark, tmp_path)


def test_of_several_clusters_one_is_to_be_named(spark: Any, sampled: Path) -> None:
    Workspace(str(sampled)).append(dataclasses.replace(at(0, partition()), cluster="c2"))
    with pytest.raises(InvalidInputError, match=r"2 clusters \(c1, c2\): name one \(--cluster\)"):
        read(spark, sampled)
    assert read(spark, sampled, cluster="c1").cluster == "c1"
    with pytest.raises(InvalidInputError, match="has no cluster c3, but c1, c2"):
        read(spark, sampled, cluster="c3")
