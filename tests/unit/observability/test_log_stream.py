"""Log entries for which there is no room: nobody reads the pipe, the disk is full."""

from __future__ import annotations

import fcntl
import io
import json
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from regent.observability.log_metrics import LogCollector
from regent.observability.log_stream import CHUNK, PATIENCE_S, UnblockedHandler, handler_of
from regent.observability.logs import JsonFormatter
from tests.support.waiting import DEADLINE_S


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Pipe:
    """A pipe with room for 4 pages, and a handler at one end."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        fcntl.fcntl(self.writing, fcntl.F_SETPIPE_SZ, 4 * CHUNK)
        os.set_blocking(self.reading, False)
        self.clock = Clock()
        self.handler = UnblockedHandler(self.writing, clock=self.clock)

    def log(self, text: str, **fields: object) -> None:
        self.handler.handle(logging.makeLogRecord({"msg": text, **fields}))

    def read(self) -> str:
        try:
            return os.read(self.reading, 100 * CHUNK).decode()
        except BlockingIOError:
            return ""

    def close(self) -> None:
        for descriptor in (self.reading, self.writing):
            os.close(descriptor)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


def test_entries_are_lines(pipe: Pipe) -> None:
    pipe.log("one")
    pipe.log("two \udc80")
    assert pipe.read() == "one\ntwo \\udc80\n"
    assert pipe.handler.dropped == 0


def test_a_pipe_that_nobody_reads_stops_nobody_and_the_loss_is_told(pipe: Pipe) -> None:
    entries = [f"{number:03}" + 900 * "x" for number in range(40)]
    for entry in entries:
        pipe.log(entry)
    lost = pipe.handler.dropped
    assert 0 < lost < 40
    told = pipe.read().splitlines()
    assert told[: 40 - lost] == entries[: 40 - lost]
    pipe.log("again")
    again = pipe.read().splitlines()
    assert again[-2:] == ["Log entries dropped: they could not be written", "again"]
    pipe.log("more")
    assert pipe.read() == "more\n"
    assert pipe.handler.dropped == lost


def test_an_entry_larger_than_the_pipe_is_cut_and_the_next_begins_a_line(pipe: Pipe) -> None:
    pipe.log(10 * CHUNK * "x")
    assert pipe.handler.dropped == 1
    assert set(pipe.read()) == {"x"}
    pipe.log("again")
    assert pipe.read().startswith("\nLog entries dropped")


def test_a_reader_that_is_slow_is_waited_for(pipe: Pipe) -> None:
    read: list[str] = []

    def read_slowly() -> None:
        pause = threading.Event()
        while not read or not read[-1].endswith("end\n"):
            pause.wait(0.01)
            read.append(pipe.read())

    reading = threading.Thread(target=read_slowly, daemon=True)
    reading.start()
    pipe.log(20 * CHUNK * "x" + "end")
    reading.join(DEADLINE_S)
    assert "".join(read) == 20 * CHUNK * "x" + "end\n"


def test_it_is_waited_for_a_part_of_the_time_only(pipe: Pipe) -> None:
    """The clock stands while the system waits: what it would show is given."""
    pipe.handler._patience_s = 0.0
    pipe.log(4 * CHUNK * "x")
    pipe.clock.now += 1
    pipe.log("y")
    assert 0 < pipe.handler._patience_s <= 0.05
    pipe.clock.now += 1_000
    pipe.log("y")
    assert pipe.handler._patience_s <= PATIENCE_S


def test_a_closed_pipe_and_a_full_disk_stop_nobody(pipe: Pipe, tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with Path("/dev/full").open("wb") as full:
        for descriptor in (write_end, full.fileno()):
            handler = UnblockedHandler(descriptor)
            for _ in range(3):
                handler.handle(logging.makeLogRecord({"msg": "lost"}))
            assert handler.dropped == 3
    os.close(write_end)
    with (tmp_path / "log").open("w") as file:
        handler_of(file).handle(logging.makeLogRecord({"msg": "kept"}))
    assert (tmp_path / "log").read_text() == "kept\n"


def test_what_is_no_file_is_written_as_ever() -> None:
    stream = io.StringIO()
    handler_of(stream).handle(logging.makeLogRecord({"msg": "kept"}))
    assert stream.getvalue() == "kept\n"


def dropped_by_metric(handler: logging.Handler) -> float | None:
    registry = CollectorRegistry()
    registry.register(LogCollector(handler))
    return registry.get_sample_value("regent_log_entries_dropped_total")


def test_a_metric_counts_what_was_dropped(pipe: Pipe) -> None:
    assert dropped_by_metric(pipe.handler) == 0
    for _ in range(20):
        pipe.log("x" * CHUNK)
    assert pipe.handler.dropped > 0
    assert dropped_by_metric(pipe.handler) == pipe.handler.dropped
    assert dropped_by_metric(logging.StreamHandler(io.StringIO())) == 0


def test_an_entry_that_cannot_be_made_is_one_of_its_own(
    pipe: Pipe, capsys: pytest.CaptureFixture[str]
) -> None:
    """What logging does by itself writes to standard error, and waits for whoever reads that."""
    pipe.handler.setFormatter(JsonFormatter())
    pipe.log("%d of %d", args=(1,), name="lib")
    entry = json.loads(pipe.read())
    assert entry["message"] == "A log entry cannot be made: what has logged it has a defect"
    assert (entry["entry"], entry["entry_logger"]) == ("'%d of %d'", "lib")
    assert "not enough arguments" in entry["error"]
    assert pipe.handler.dropped == 0
    assert capsys.readouterr() == ("", "")


def test_whoever_logs_gets_no_error_for_want_of_memory(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> str:
        raise MemoryError

    monkeypatch.setattr(pipe.handler, "format", fail)
    pipe.log("one")
    assert pipe.handler.dropped == 1
    monkeypatch.undo()
    monkeypatch.setattr(pipe.handler, "_write", fail)
    pipe.log("two")
    assert pipe.handler.dropped == 2
    monkeypatch.undo()
    pipe.log("three")
    assert pipe.read().splitlines() == [
        "Log entries dropped: they could not be written",
        "three",
    ]
