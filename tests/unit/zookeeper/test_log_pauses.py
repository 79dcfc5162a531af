from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from regent.zookeeper.log_pauses import SilenceAboutRepeats


@contextmanager
def silence(clock: Callable[[], float] = lambda: 0.0) -> Iterator[SilenceAboutRepeats]:
    """The filter, at a library's logger."""
    log = logging.getLogger("a.library")
    log.addFilter(found := SilenceAboutRepeats(clock))
    try:
        yield found
    finally:
        log.removeFilter(found)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> logging.Logger:
    caplog.set_level(logging.DEBUG)
    return logging.getLogger("a.library")


def test_repetition_is_logged_once(log: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    with silence(lambda: now):
        for _ in range(61):
            log.info("Connecting to %s", "zk1")
            log.info("Connecting to %s", "zk2")
            now += 1
    assert caplog.messages == ["Connecting to zk1", "Connecting to zk2"] * 3


@pytest.mark.parametrize("level", [logging.ERROR, logging.DEBUG])
def test_errors_and_debug_messages_all_stay(
    log: logging.Logger, caplog: pytest.LogCaptureFixture, level: int
) -> None:
    with silence():
        for _ in range(3):
            log.log(level, "Sending request")
    assert caplog.messages == ["Sending request"] * 3


def test_an_entry_that_cannot_be_formatted_does_no_harm() -> None:
    record = logging.LogRecord("a.library", logging.INFO, "", 0, "%d servers", ("many",), None)
    assert SilenceAboutRepeats(lambda: 0.0).filter(record)


def test_what_differs_each_time_takes_no_memory(log: logging.Logger) -> None:
    with silence() as filtering:
        for number in range(1000):
            log.info("Session %d", number)
    assert len(filtering._logged_at) <= 100
