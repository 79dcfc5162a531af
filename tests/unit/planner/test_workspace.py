"""Samples are appended whole, in order, and for as long as they are kept."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.history_layout import DAY_MS, SampleFile
from regent_rebalance.sample_files import SCHEMAS, encode_sample
from regent_rebalance.samples import BrokerSample, LeftOut, PartitionSample, Sample, with_rates
from regent_rebalance.workspace import Workspace
from tests.unit.planner.small_files import files_of_at_most

NOON = 1_795_348_800_000
ORDERS = PartitionSample("orders", 0, "id", 1, [1, 2], [4096, None], 10, 90, False)
NEVER_LED = PartitionSample("orders", 1, None, None, [2], [None])
SAMPLE = Sample("c1", NOON, [BrokerSample(1, "a", True, None)], [ORDERS, NEVER_LED])


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_is_unknown_stays_unknown_in_the_file(tmp_path: Path) -> None:
    appended = Workspace(str(tmp_path)).append(SAMPLE)
    assert files(tmp_path) == [
        "cluster=c1/brokers/day=2026-11-22/20261122T120000.000Z-1.parquet",
        "cluster=c1/partitions/day=2026-11-22/20261122T120000.000Z-2.parquet",
    ]
    assert appended.files == tuple(str(tmp_path / name) for name in files(tmp_path))
    partitions = pq.ParquetFile(appended.files[1]).read()
    assert partitions.schema.equals(SCHEMAS["partitions"])
    time = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
    assert [tuple(row.values()) for row in partitions.to_pylist()] == [
        (time, *ORDERS, None),
        (time, *NEVER_LED, None),
    ]
    assert pq.ParquetFile(appended.files[0]).read().to_pylist() == [
        {"time": time, "broker": 1, "rack": "a", "alive": True, "disk_bytes": None}
    ]


def test_what_could_not_be_read_is_named_in_the_file(tmp_path: Path) -> None:
    left_out = [LeftOut("secret", None, "NOAUTH"), LeftOut("orders", 2, "[1, 1] repeats a broker")]
    sample = dataclasses.replace(SAMPLE, left_out=left_out)
    _, file = Workspace(str(tmp_path)).append(sample).files
    assert SampleFile.parse(Path(file).name) == SampleFile(NOON, 4)
    named = pq.ParquetFile(file).read(["topic", "partition", "unreadable"]).to_pylist()[2:]
    assert [tuple(row.values()) for row in named] == left_out
    rest = pq.ParquetFile(file).read().drop_columns(["time", "topic", "partition", "unreadable"])
    assert {value for row in rest.to_pylist()[2:] for value in row.values()} == {None}


def test_the_fields_are_the_columns() -> None:
    fields = dict.fromkeys((*PartitionSample._fields, *LeftOut._fields))
    assert ("time", *fields) == tuple(SCHEMAS["partitions"].names)
    assert ("time", *BrokerSample._fields) == tuple(SCHEMAS["brokers"].names)


def test_a_folder_and_its_url_are_the_same(tmp_path: Path) -> None:
    Workspace(str(tmp_path)).append(SAMPLE)
    assert Workspace(tmp_path.as_uri()).newest("c1") == NOON
    assert Workspace(f"{tmp_path}/").newest("c2") is None


def test_a_clock_that_goes_backwards_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    workspace.append(SAMPLE)
    before = files(tmp_path)
    for moment in (NOON, NOON - 1):
        with pytest.raises(InvalidInputError) as refused:
            workspace.append(dataclasses.replace(SAMPLE, moment=moment))
        assert "has a sample of 2026-11-22T12:00:00+00:00" in str(refused.value)
        assert "the clock is wrong" in str(refused.value)
    assert files(tmp_path) == before
    workspace.append(dataclasses.replace(SAMPLE, cluster="c2", moment=NOON - 1))


def test_days_that_are_too_old_are_removed_and_nothing_else(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    for days in range(4):
        workspace.append(dataclasses.replace(SAMPLE, moment=NOON + days * DAY_MS))
    stranger = tmp_path / "cluster=c1" / "partitions" / "notes.txt"
    stranger.write_text("mine")
    appended = workspace.append(
        dataclasses.replace(SAMPLE, moment=NOON + 4 * DAY_MS), keep=2 * DAY_MS
    )
    assert len(appended.removed) == 4
    kept = [Path(name).parent.name for name in files(tmp_path) if "partitions/day" in name]
    assert kept == ["day=2026-11-24", "day=2026-11-25", "day=2026-11-26"]
    assert stranger.read_text() == "mine"


def test_what_is_not_a_sample_stays_in_its_day(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    first = workspace.append(SAMPLE).files
    workspace.append(dataclasses.replace(SAMPLE, moment=NOON + 3 * DAY_MS))
    day = Path(first[1]).parent
    stranger = day / "notes.txt"
    stranger.write_text("mine")
    (day / f".{SampleFile(NOON + 1, 2).name}").write_bytes(b"PAR1 and no")
    later = dataclasses.replace(SAMPLE, moment=NOON + 4 * DAY_MS)
    removed = workspace.append(later, keep=2 * DAY_MS).removed
    assert list(day.iterdir()) == [stranger]
    assert set(removed) == {
        str(Path(first[0]).parent), first[1], str(day / f".{SampleFile(NOON + 1, 2).name}")
    }  # fmt: skip
    last = dataclasses.replace(SAMPLE, moment=NOON + 4 * DAY_MS + 1)
    assert workspace.append(last, keep=2 * DAY_MS).removed == ()


def test_a_clock_that_leaps_removes_nothing(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    workspace.append(SAMPLE)
    before = files(tmp_path)
    leap = dataclasses.replace(SAMPLE, moment=NOON + 900 * DAY_MS)
    with pytest.raises(InvalidInputError, match=r"would remove all samples .* set the clock"):
        workspace.append(leap, keep=30 * DAY_MS)
    assert files(tmp_path) == before
    assert workspace.append(leap).removed == ()
    assert workspace.append(dataclasses.replace(leap, moment=leap.moment + 1), keep=DAY_MS).removed


def test_the_newest_sample_counts_though_a_later_day_is_empty(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    workspace.append(SAMPLE)
    for file in workspace.append(dataclasses.replace(SAMPLE, moment=NOON + 900 * DAY_MS)).files:
        Path(file).unlink()
    assert workspace.newest("c1") == NOON
    with pytest.raises(InvalidInputError, match="either the clock is wrong"):
        workspace.append(dataclasses.replace(SAMPLE, moment=NOON - 1))


def test_a_sample_is_there_though_old_days_cannot_be_removed(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    workspace.append(SAMPLE)
    (tmp_path / "cluster=c1" / "partitions" / "day=2020-01-01").write_text("a file")
    later = dataclasses.replace(SAMPLE, moment=NOON + 1)
    with pytest.raises(InvalidInputError, match=r"has the sample, but days .* cannot be removed"):
        workspace.append(later, keep=DAY_MS)
    assert workspace.newest("c1") == NOON + 1


@pytest.mark.parametrize("kept", ["brokers", "neither"])
def test_what_there_is_no_room_for_leaves_nothing_and_old_days_make_room(
    tmp_path: Path, kept: str
) -> None:
    """Else a full volume stays full: each attempt left a file, and nothing was ever removed."""
    workspace = Workspace(str(tmp_path))
    for day in range(4):
        workspace.append(dataclasses.replace(SAMPLE, moment=NOON + day * DAY_MS))
    now = dataclasses.replace(SAMPLE, moment=NOON + 4 * DAY_MS)
    brokers, partitions = (len(encode_sample(now)[kind]) for kind in ("brokers", "partitions"))
    assert brokers < partitions
    with (
        files_of_at_most(brokers if kept == "brokers" else 1),
        pytest.raises(InvalidInputError, match="cannot be written"),
    ):
        workspace.append(now, keep=2 * DAY_MS)
    assert files(tmp_path) == [
        f"cluster=c1/{kind}/day=2026-11-{day}/202611{day}T120000.000Z-{rows}.parquet"
        for kind, rows in (("brokers", 1), ("partitions", 2))
        for day in (24, 25)
    ]


def test_a_file_that_was_not_finished_is_none(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    workspace.append(SAMPLE)
    name = SampleFile(NOON + 1, 2).name
    folder = tmp_path / "cluster=c1" / "partitions" / "day=2026-11-22"
    (folder / f".{name}").write_bytes(b"PAR1 and no")
    assert workspace.newest("c1") == NOON


def test_a_workspace_that_is_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InvalidInputError, match=f"workspace {file} cannot be written"):
        Workspace(str(file)).append(SAMPLE)


def test_a_cluster_id_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"'\.\./x' has other characters"):
        Workspace(str(tmp_path)).append(dataclasses.replace(SAMPLE, cluster="../x"))


def test_rates_of_ones_own_are_added() -> None:
    content = b'[{"topic": "orders", "partition": 0, "bytesIn": 1.5}]'
    first, second = with_rates(SAMPLE, content, source="rates.json").partitions
    assert (first, second) == (ORDERS._replace(bytes_in=1.5), NEVER_LED)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "rates.json has no rates: Expected `array`"),
        (b'[{"topic":"orders","partition":0,"bytesin":1}]', "unknown field `bytesin`"),
        (b'[{"topic":"orders","partition":0,"bytesIn":-1}]', "orders-0: bytesIn -1.0 is no rate"),
        (b'[{"topic":"gone","partition":3}]', "the cluster has no partition gone-3"),
        (
            b'[{"topic":"orders","partition":0},{"topic":"orders","partition":0}]',
            "orders-0 is listed twice",
        ),
    ],
)
def test_rates_that_are_none_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        with_rates(SAMPLE, content, source="rates.json")
    assert message in str(refused.value)
