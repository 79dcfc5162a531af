"""Connections that cannot be accepted are logged once in a while."""

from __future__ import annotations

import asyncio
import errno
import logging

import pytest

from regent.observability.accept_failures import MESSAGE, SILENT_S, AcceptFailures


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """That of the only filter of the logger: it has one of Regent's once its logging is set up."""
    clock = Clock()
    monkeypatch.setattr(logging.getLogger("asyncio"), "filters", [AcceptFailures(clock)])
    return clock


def fail(loop: asyncio.AbstractEventLoop) -> None:
    """What asyncio does about each connection that it cannot accept."""
    error = OSError(errno.EMFILE, "Too many open files")
    loop.call_exception_handler(
        {"message": "socket.accept() out of system resource", "exception": error, "socket": "s"}
    )


async def test_they_are_logged_once_in_a_while_without_a_traceback(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    for _ in range(100):
        fail(loop)
    (entry,) = caplog.records
    assert (entry.getMessage(), entry.exc_info) == (MESSAGE, None)
    assert entry.__dict__["error"] == "[Errno 24] Too many open files"
    clock.now += SILENT_S
    fail(loop)
    assert [each.getMessage() for each in caplog.records] == [MESSAGE] * 2


async def test_other_errors_are_logged_as_they_are(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    del clock
    for _ in range(2):
        asyncio.get_running_loop().call_exception_handler(
            {"message": "a defect", "exception": ValueError("of ours")}
        )
    assert [each.exc_info is not None for each in caplog.records] == [True, True]
