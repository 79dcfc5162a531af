"""Structured logs: constant messages, everything variable in fields."""

from __future__ import annotations

import dataclasses
import json
import logging
import queue
import threading
from collections.abc import Iterator

import pytest
from kopf._cogs.aiokits.aiotasks import guard

from regent.controller.log import MALFORMED_NOTIFICATIONS, PRODUCER_IDS_CONTENDED
from regent.model.entry_budget import ENTRIES
from regent.observability.logs import (
    JsonFormatter,
    StandardControllerLog,
    TextFormatter,
    configure,
    log_end_of_thread,
)


def record(**fields: object) -> logging.LogRecord:
    made = logging.getLogger("regent.test").makeRecord(
        "regent.test", logging.WARNING, "file.py", 1, "Something happened", (), None, extra=fields
    )
    made.created = 1_000_000_000.25
    return made


def test_json_has_the_fields_beside_the_message() -> None:
    entry = json.loads(JsonFormatter().format(record(path="/a", partitions=[1, 2], odd={1})))
    assert entry == {
        "time": "2001-09-09T01:46:40.250000+00:00",
        "level": "WARNING",
        "logger": "regent.test",
        "message": "Something happened",
        "path": "/a",
        "partitions": [1, 2],
        "odd": "{1}",
    }


@dataclasses.dataclass
class _Settings:
    """What a library logs beside its message: no JSON can be made of it."""

    queue: queue.SimpleQueue[int] = dataclasses.field(default_factory=queue.SimpleQueue)


@pytest.mark.parametrize("value", [_Settings(), {("t", 1): 2}])
def test_json_is_made_of_whatever_a_library_logs(value: object) -> None:
    line = JsonFormatter().format(record(settings=value, path="/a"))
    entry = json.loads(line)
    assert (entry["message"], entry["path"]) == ("Something happened", "/a")
    assert "settings" in entry
    assert "\n" not in line


def test_text_has_them_behind_it() -> None:
    line = TextFormatter().format(record(path="/a", count=3))
    assert line == "2001-09-09T01:46:40.250Z WARNING Something happened path=/a count=3"


def test_text_is_one_line_whatever_a_client_calls_itself() -> None:
    """Else anybody could write entries of their own, or commands for the terminal."""
    line = TextFormatter().format(record(principal="User:a\n2001-09-09 ERROR b\x1b[2J"))
    assert line.endswith(" principal=User:a\\n2001-09-09 ERROR b\\x1b[2J")


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_an_exception_keeps_its_traceback(formatter: logging.Formatter) -> None:
    made = record()
    error = ValueError("bad")
    made.exc_info = (ValueError, error, None)
    assert "ValueError: bad" in formatter.format(made)


def test_the_core_speaks_through_the_standard_loggers(caplog: pytest.LogCaptureFixture) -> None:
    log = StandardControllerLog()
    with caplog.at_level(logging.INFO), caplog.at_level(logging.INFO, "regent.state_change"):
        log.info("New topics", topics=2)
        log.error("Event failed", event="TopicChange", exception=ValueError("bad"))
        log.state_change("t-0", "NEW", "ONLINE", leader=1)
    messages = [(r.name, r.message) for r in caplog.records]
    assert messages == [
        ("regent.controller", "New topics"),
        ("regent.controller", "Event failed"),
        ("regent.state_change", "State change"),
    ]
    assert vars(caplog.records[0])["topics"] == 2
    assert caplog.records[1].exc_info is not None
    assert vars(caplog.records[2])["after"] == "ONLINE"


@pytest.fixture
def _logging_restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    root = logging.getLogger()
    known = [each for each in root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    before = [(each, each.level, each.handlers[:], each.filters[:]) for each in (root, *known)]
    yield
    for each, level, handlers, filters in before:
        each.setLevel(level)
        each.handlers[:], each.filters[:] = handlers, filters


@pytest.mark.usefixtures("_logging_restored")
async def test_of_kopf_only_what_is_raised_to_us_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(level="info", log_format="text", state_changes=False)

    async def fail() -> None:
        raise ValueError("no login")

    for part, name in (
        ("orchestration", "watcher for kafkatopics"),
        ("running", "multidimensional multitasker"),
        ("running", "credentials retriever"),
    ):
        logger = logging.getLogger(f"kopf._core.reactor.{part}")
        with pytest.raises(ValueError, match="no login"):
            await guard(fail(), name, logger=logger)
    entries = [line for line in capsys.readouterr().err.splitlines() if " ERROR " in line]
    assert len(entries) == 1
    assert "Credentials retriever has failed: no login" in entries[0]


def test_the_end_of_a_thread_by_an_error_is_an_entry_like_any_other(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library's thread does not survive a server that answers nonsense, for instance."""
    monkeypatch.setattr(threading, "excepthook", log_end_of_thread)
    thread = threading.Thread(target=lambda: [].pop(), name="reader")
    thread.start()
    thread.join()
    (entry,) = caplog.records
    assert (entry.getMessage(), vars(entry)["thread_name"]) == (
        "Thread ended by an error",
        "reader",
    )
    assert entry.exc_info is not None
    assert "pop from empty list" in json.loads(JsonFormatter().format(entry))["exception"]


def test_what_somebody_else_may_cause_any_number_of_times_is_logged_a_few_times_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [100.0]
    log = StandardControllerLog(clock=lambda: now[0])
    for _ in range(500):
        log.error(MALFORMED_NOTIFICATIONS, znodes=3)
        log.error("Command failed")
    now[0] += 60
    log.error(MALFORMED_NOTIFICATIONS, znodes=1)
    entries = [each for each in caplog.records if each.message == MALFORMED_NOTIFICATIONS]
    fields = [(vars(each)["znodes"], vars(each)["entries_left_out"]) for each in entries]
    assert fields == [(3, 0)] * ENTRIES + [(1, 500 - ENTRIES)]
    assert sum(each.message == "Command failed" for each in caplog.records) == 500


def test_so_are_warnings(caplog: pytest.LogCaptureFixture) -> None:
    log = StandardControllerLog(clock=lambda: 100.0)
    for _ in range(500):
        log.warning(PRODUCER_IDS_CONTENDED, path="/latest_producer_id_block")
    assert len(caplog.records) == ENTRIES
