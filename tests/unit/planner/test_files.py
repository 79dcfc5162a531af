"""Snapshots and plans in files, and what is refused there."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from regent_rebalance import files
from regent_rebalance.describe import described
from regent_rebalance.errors import InvalidInputError
from regent_rebalance.files import load_plan, load_snapshot, save_plan, save_snapshot, write_file
from regent_rebalance.goals import Goals
from regent_rebalance.json_files import decode_snapshot, encode_plan, encode_snapshot
from regent_rebalance.planner import make_plan
from regent_rebalance.schedule import Limits
from regent_rebalance.snapshot import UNKNOWN, Brokers, Rows, Snapshot, snapshot_of
from tests.unit.planner.clusters import cluster, clusters
from tests.unit.planner.small_files import files_of_at_most

SUFFIXES = ("json", "parquet")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(clusters())
def test_a_snapshot_survives_files(tmp_path: Path, snapshot: Snapshot) -> None:
    for suffix in SUFFIXES:
        file = tmp_path / f"snapshot.{suffix}"
        save_snapshot(snapshot, file)
        assert encode_snapshot(load_snapshot(file)) == encode_snapshot(snapshot)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("partitions", [[[1, 2]] * 4, [[1, 2], [2, 1]]], ids=["changes", "none"])
def test_a_plan_survives_files(tmp_path: Path, suffix: str, partitions: list[list[int]]) -> None:
    plan = make_plan(cluster(["a", "b", "c"], partitions), Goals())
    file = tmp_path / f"plan.{suffix}"
    save_plan(plan, file)
    assert encode_plan(load_plan(file)) == encode_plan(plan)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_brokers_and_batches_of_a_plan_survive_files(tmp_path: Path, suffix: str) -> None:
    snapshot = cluster(["a", "b", "c"], [[1, 2]] * 4, sizes=[1, 2, 3, 4])
    limits = Limits(copies=1, bytes=5, rate=7)
    plan = make_plan(snapshot, Goals())
    plan = described(snapshot, Goals(), plan, limits, assumptions=("it rains",))
    file = tmp_path / f"plan.{suffix}"
    save_plan(plan, file)
    loaded = load_plan(file)
    assert loaded.details is not None
    assert plan.details is not None
    assert loaded.batch_numbers().tolist() == plan.batch_numbers().tolist()
    assert loaded.details.brokers == plan.details.brokers
    assert loaded.details.schedule.batches == plan.details.schedule.batches
    assert encode_plan(loaded) == encode_plan(plan)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_brokers_without_room_for_all_at_once_survive_files(tmp_path: Path, suffix: str) -> None:
    cramped = Brokers.of([1, 2, 3], ["a", "b", "c"], disk_bytes=[50, 50, 5])
    rows = Rows(["t"] * 4, [0, 1, 2, 3], [1] * 4, [1] * 4, [1] * 4, [10] * 4)
    snapshot = snapshot_of(cramped, rows)
    plan = described(snapshot, Goals(), make_plan(snapshot, Goals()), Limits())
    file = tmp_path / f"plan.{suffix}"
    save_plan(plan, file)
    loaded = load_plan(file)
    assert loaded.details is not None
    assert loaded.details.schedule.short_of_room == (3,)
    assert b"shortOfRoom" in encode_plan(loaded)


def test_a_plan_whose_batches_were_edited_is_refused(tmp_path: Path) -> None:
    snapshot = cluster(["a", "b", "c"], [[1, 2]] * 4)
    plan = described(snapshot, Goals(), make_plan(snapshot, Goals()), Limits())
    document = msgspec.json.decode(encode_plan(plan))
    document["partitions"][0]["batch"] += 1
    file = tmp_path / "plan.json"
    file.write_bytes(msgspec.json.encode(document))
    with pytest.raises(InvalidInputError, match="in other batches than its schedule says"):
        load_plan(file)


def test_the_leader_is_the_first_replica_and_sizes_are_unknown_where_a_file_says_nothing() -> None:
    snapshot = decode_snapshot(
        b'{"version":1,"brokers":[{"id":7},{"id":3}],"partitions":'
        b'[{"topic":"t","partition":0,"replicas":[7,3],"log_dirs":["any","any"]}]}',
        source="x",
    )
    assert snapshot.brokers.ids.tolist() == [3, 7]
    assert snapshot.leaders().tolist() == [1]
    assert snapshot.sizes.tolist() == [UNKNOWN, UNKNOWN]
    assert snapshot.copy_bytes().tolist() == [0]


def test_a_capacity_of_nothing_is_an_unknown_one() -> None:
    capacities = {"diskBytes": 0, "networkInBytes": 0, "networkOutBytes": 7}
    document = {"version": 1, "brokers": [{"id": 1, **capacities}], "partitions": []}
    brokers = decode_snapshot(msgspec.json.encode(document), source="s.json").brokers
    assert brokers.disk_bytes.tolist() == brokers.network_in.tolist() == [UNKNOWN]
    assert brokers.network_out.tolist() == [7]


BROKER = {"id": 1}
PARTITION = {"topic": "t", "partition": 0, "replicas": [1]}


@pytest.mark.parametrize(
    ("brokers", "partitions", "message"),
    [
        ([], [], "names no brokers"),
        ([BROKER, BROKER], [], "broker 1 is listed twice"),
        ([{"id": -1}], [], "broker -1: an id is not negative"),
        ([{"id": 1, "diskBytes": -5}], [], "broker 1: diskBytes -5 is negative"),
        ([{"id": 1, "rak": "a"}], [], "unknown field `rak`"),
        ([BROKER], [{**PARTITION, "replicas": [2]}], "the snapshot has no broker 2; it has 1"),
        ([BROKER], [{**PARTITION, "replicas": []}], "t-0: has no replicas"),
        ([BROKER], [{**PARTITION, "replicas": [1, 1]}], "t-0: broker 1 has two replicas of it"),
        ([BROKER], [PARTITION, PARTITION], "t-0: is listed twice"),
        ([BROKER], [{**PARTITION, "partition": -1}], "number is not negative"),
        ([BROKER], [{**PARTITION, "leader": 5}], "t-0: leader 5 has no replica of it"),
        ([BROKER], [{**PARTITION, "sizes": [-7]}], "t-0: size -7 is negative"),
        ([BROKER], [{**PARTITION, "sizes": [1, 2]}], "t-0: 2 sizes for 1 replicas"),
        ([BROKER], [{**PARTITION, "replicas": ["1"]}], "Expected `int`, got `str`"),
        ([BROKER], [{"topic": "t"}], "missing required field `partition`"),
        ([{"id": 2**31}], [], "Expected `int` <= 2147483647"),
        ([{"id": 1, "diskBytes": 2**64}], [], "Expected `int` <= 9007199254740992"),
        ([BROKER], [{**PARTITION, "partition": 2**31}], "Expected `int` <= 2147483647"),
        ([BROKER], [{**PARTITION, "leader": 2**64}], "Expected `int` <= 2147483647"),
        ([BROKER], [{**PARTITION, "replicas": [-(2**64)]}], "Expected `int` >= -2147483648"),
        ([BROKER], [{**PARTITION, "sizes": [2**62]}], "Expected `int` <= 9007199254740992"),
        ([BROKER], [{**PARTITION, "bytesIn": 2**63}], "Expected `int` <= 9007199254740992"),
        ([{"id": 1, "rack": "\x1b[2J"}], [], r"broker 1: rack '\x1b[2J' has a control character"),
        ([BROKER], [{**PARTITION, "topic": "a\nb"}], r"topic 'a\nb' has a control character"),
    ],
)
def test_a_snapshot_that_cannot_be_is_refused(
    brokers: list[object], partitions: list[object], message: str
) -> None:
    content = msgspec.json.encode({"version": 1, "brokers": brokers, "partitions": partitions})
    with pytest.raises(InvalidInputError) as refused:
        decode_snapshot(content, source="snapshot.json")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xfe\xed", b"[]", b'{"version":2}', b'{"more":' + b"[" * 100_000],
    ids=["empty", "half", "no text", "list", "version", "nested"],
)
@pytest.mark.parametrize("name", ["x.json", "x.parquet"])
def test_a_file_that_is_something_else_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    for load in (load_snapshot, load_plan):
        with pytest.raises(InvalidInputError, match=name):
            load(file)


def test_a_table_without_a_column_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"topic": ["t"], "partition": [0]}), file)
    with pytest.raises(InvalidInputError, match="lacks column replicas"):
        load_snapshot(file)


def test_an_edited_plan_is_refused(tmp_path: Path) -> None:
    plan = make_plan(cluster(["a", "b", "c"], [[1, 2]] * 4), Goals())
    file = tmp_path / "plan.json"
    document = msgspec.json.decode(encode_plan(plan))
    document["partitions"][0]["replicas"] = [3, 1, 2]
    file.write_bytes(msgspec.json.encode(document))
    with pytest.raises(InvalidInputError, match="edited after it was planned"):
        load_plan(file)


def test_rows_in_any_order_give_the_same_snapshot() -> None:
    rows = [{"topic": t, "partition": p, "replicas": [1]} for t in "ba" for p in (1, 0)]
    head = {"version": 1, "brokers": [BROKER]}
    forth = decode_snapshot(msgspec.json.encode({**head, "partitions": rows}), source="x")
    back = decode_snapshot(msgspec.json.encode({**head, "partitions": rows[::-1]}), source="x")
    assert encode_snapshot(forth) == encode_snapshot(back)
    assert np.array_equal(forth.partition, [0, 1, 0, 1])


GOOD = {
    "topic": pa.array(["t", "t"]),
    "partition": pa.array([0, 1]),
    "replicas": pa.array([[1], [2]]),
    "leader": pa.array([1, 2]),
    "sizes": pa.array([[5], [6]]),
}


def write_table(partitions: pa.Table, file: Path) -> None:
    """A snapshot of these partitions on brokers 1 and 2."""
    brokers = {"regent.brokers": '[{"id":1},{"id":2}]'}
    pq.write_table(partitions.replace_schema_metadata(brokers), file)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"topic": pa.array([1, 2])}, "column topic is int64, and has to be string"),
        ({"topic": pa.array([b"t", b"\xff"])}, "column topic is binary, and has to be string"),
        ({"partition": pa.array([0, 2**40])}, "Integer value 1099511627776 not in range"),
        ({"partition": pa.array([0.5, 1.5])}, "column partition is double, and has to be int32"),
        ({"partition": pa.array(["0", "x"])}, "column partition is string, and has to be int32"),
        ({"partition": pa.array([0, -1])}, "t--1: a partition's number is not negative"),
        ({"replicas": pa.array([1, 2])}, "column replicas is int64, and has to be list"),
        ({"replicas": pa.array([["1"], ["2"]])}, "column replicas is list<element: string>"),
        ({"topic": pa.array(["t", None])}, "column topic has empty cells: fill them$"),
        ({"replicas": pa.array([[1], [None]])}, "column replicas has empty cells: fill them$"),
        ({"leader": pa.array([1, None])}, "column leader has empty cells: fill them, or use -1$"),
        ({"replicas": pa.array([[1], [9]])}, "t-1: the snapshot has no broker 9; it has 1, 2"),
        ({"leader": pa.array([1, 9])}, "t-1: leader 9 has no replica of it"),
        ({"sizes": pa.array([[5], [-7]])}, "t-1: size -7 is negative"),
        ({"sizes": pa.array([[5], [2**62]])}, "column sizes has the amount 4611686018427387904"),
        ({"sizes": pa.array([[5], [None]])}, "column sizes has empty cells"),
        ({"sizes": pa.array([[5], [0.5]])}, "column sizes is list<element: double>"),
        ({"sizes": pa.array([[5], [1, 2]])}, "more or fewer sizes than replicas"),
        ({"bytesIn": pa.array(["a", "b"])}, "column bytesIn is string, and has to be int64"),
        ({"bytesIn": pa.array([1, None])}, "column bytesIn has empty cells"),
        ({"bytesOut": pa.array([1, 2**62])}, "column bytesOut has the amount"),
    ],
)
def test_a_table_that_cannot_be_is_refused(
    tmp_path: Path, column: dict[str, Any], message: str
) -> None:
    file = tmp_path / "snapshot.parquet"
    write_table(pa.table(GOOD | column), file)
    with pytest.raises(InvalidInputError) as refused:
        load_snapshot(file)
    assert message in f"{refused.value}$"


def test_a_table_with_wider_types_is_the_same_snapshot(tmp_path: Path) -> None:
    files = [tmp_path / "narrow.parquet", tmp_path / "wide.parquet"]
    wide = {"replicas": pa.array([[1], [2]], pa.large_list(pa.int64()))}
    for file, column in zip(files, ({}, wide), strict=True):
        write_table(pa.table(GOOD | column), file)
    narrow, other = map(load_snapshot, files)
    assert encode_snapshot(narrow) == encode_snapshot(other)


def test_a_parquet_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"none\.parquet cannot be read: No such file"):
        load_snapshot(tmp_path / "none.parquet")


def test_a_folder_is_no_parquet_file(tmp_path: Path) -> None:
    folder = tmp_path / "folder.parquet"
    folder.mkdir()
    write_table(pa.table(GOOD), folder / "part.parquet")
    with pytest.raises(InvalidInputError, match=r"folder\.parquet cannot be read: Is a directory"):
        load_snapshot(folder)


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.parquet"
    rates = pa.table(GOOD | {"bytesIn": pa.array([1, 2])})
    write_table(rates.append_column("bytesIn", rates["bytesIn"]), file)
    with pytest.raises(InvalidInputError, match=r"Multiple matches for FieldRef\.Name\(bytesIn\)"):
        load_snapshot(file)


def test_a_damaged_page_is_refused_whatever_it_would_say(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.parquet"
    save_snapshot(cluster(["a", "b", "c"], [[1, 2], [2, 3], [3, 1]] * 50), file)
    intact, metadata = file.read_bytes(), pq.read_metadata(file).row_group(0)
    for number in range(metadata.num_columns):
        column = metadata.column(number)
        damaged = bytearray(intact)
        # The last byte of a chunk belongs to a page, not to the page's header.
        begin = column.dictionary_page_offset or column.data_page_offset
        damaged[begin + column.total_compressed_size - 1] ^= 0x10
        file.write_bytes(damaged)
        with pytest.raises(InvalidInputError, match=r"snapshot\.parquet is no intact Parquet file"):
            load_snapshot(file)


@pytest.mark.parametrize("load", [load_snapshot, load_plan])
def test_a_device_has_no_end_and_is_not_read(load: Callable[[Path], object]) -> None:
    with pytest.raises(InvalidInputError, match="/dev/zero is a device"):
        load(Path("/dev/zero"))


def piped(path: Path, content: bytes) -> Snapshot:
    """What is read of a pipe into which somebody writes this."""
    os.mkfifo(path)
    writing = threading.Thread(target=_write, args=(path, content))
    writing.start()
    try:
        return load_snapshot(path)
    finally:
        writing.join()


def _write(path: Path, content: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        path.write_bytes(content)


def test_of_a_pipe_no_more_is_read_than_a_snapshot_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = cluster(["a", "b"], [[1, 2]])
    content = encode_snapshot(snapshot)
    monkeypatch.setattr(files, "PIPE_MAX_BYTES", len(content))
    assert encode_snapshot(piped(tmp_path / "enough", content)) == content
    with pytest.raises(InvalidInputError, match=f"has more than {len(content):,} bytes"):
        piped(tmp_path / "more", content + b" " * 100_000)


@pytest.mark.parametrize("name", ["snapshot.json", "snapshot.parquet"])
def test_what_there_is_no_room_for_leaves_no_half_file(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    snapshot = cluster(["a", "b", "c"], [[1, 2], [2, 3], [3, 1]] * 50)
    with files_of_at_most(100), pytest.raises(InvalidInputError, match=f"{name} cannot be written"):
        save_snapshot(snapshot, file)
    assert not file.exists()


def test_a_full_device_is_no_file_to_be_removed() -> None:
    with pytest.raises(InvalidInputError, match="cannot be written: No space left on device"):
        write_file(Path("/dev/full"), b"plan")
    assert Path("/dev/full").exists()
