"""Writes log entries where nobody may read them: a process must not stand still over its log.

Standard error of a process is a pipe, to a container runtime for instance. If that does not read,
as its disk is full, the pipe fills up, and whoever writes then waits until somebody reads, holding
the lock that all who log wait for. The controller would stand still, and remain the controller: its
session is kept by another thread. Entries that cannot be written are dropped instead, and counted.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import time
from collections.abc import Callable
from typing import Final, TextIO

CHUNK: Final = select.PIPE_BUF
"""Bytes that a pipe takes at once if it says that it can be written to."""

PATIENCE_S: Final = 0.5
"""So long a reader that is slow is waited for, at most."""

_PATIENCE_PER_SECOND: Final = 0.05
"""So much of that comes back each second: a log is waited for a twentieth of the time at most."""

_DROPPED: Final = "Log entries dropped: they could not be written"
_UNFORMATTED: Final = "A log entry cannot be made: what has logged it has a defect"


class UnblockedHandler(logging.Handler):
    """Writes to a file descriptor as long as that takes something.

    Errors of the descriptor, such as a full disk or a pipe that was closed, drop entries, too.

    Args:
        descriptor: It stays open.
        clock: Monotonic seconds.

    Attributes:
        dropped: Entries that were not written, or not to their end, so far.
    """

    def __init__(self, descriptor: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.dropped = 0
        self._unreported = 0
        self._descriptor = descriptor
        self._clock = clock
        self._patience_s = PATIENCE_S
        self._looked_at = clock()
        self._is_line_open = False
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def emit(self, record: logging.LogRecord) -> None:
        """Write an entry, and before it how many were dropped. Called under the handler's lock.

        Nothing is raised: whoever logs has other things to do, and may be short of memory. What the
        standard library does with an error, :meth:`handleError`, writes to standard error, and
        waits for its reader.
        """
        try:
            is_written = self._write_entry(record)
        except Exception:  # noqa: BLE001 - counted
            is_written = False
        if not is_written:
            self._count()

    def _write_entry(self, record: logging.LogRecord) -> bool:
        line = self._line(record)
        if self._unreported and not self._write(self._report(record)):
            return False
        self._unreported = 0
        return self._write(line)

    def _line(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except Exception as error:  # noqa: BLE001 - it says what is the matter with the entry
            entry = {"entry": repr(record.msg)[:CHUNK], "entry_logger": record.name}
            return self._own_line(record, _UNFORMATTED, error=repr(error), **entry)

    def _count(self) -> None:
        self.dropped += 1
        self._unreported += 1

    def _report(self, occasion: logging.LogRecord) -> str:
        return self._own_line(occasion, _DROPPED, entries=self._unreported)

    def _own_line(self, occasion: logging.LogRecord, message: str, **fields: object) -> str:
        report = logging.makeLogRecord(
            {
                "name": __name__,
                "levelname": "WARNING",
                "levelno": logging.WARNING,
                "msg": message,
                "created": occasion.created,
                **fields,
            }
        )
        return self.format(report)

    def _write(self, line: str) -> bool:
        """Write a line; whether it was written to its end. If not, its rest is lost."""
        data = memoryview(
            (("\n" if self._is_line_open else "") + line + "\n").encode(errors="backslashreplace")
        )
        with contextlib.suppress(OSError):
            while data and self._takes_some():
                written = os.write(self._descriptor, data[:CHUNK])
                data = data[written:]
                self._is_line_open = bool(data)
        return not data

    def _takes_some(self) -> bool:
        if self._poll.poll(0):
            return True
        now = self._clock()
        regained = (now - self._looked_at) * _PATIENCE_PER_SECOND
        self._patience_s = min(self._patience_s + regained, PATIENCE_S)
        takes_some = self._patience_s > 0 and bool(self._poll.poll(self._patience_s * 1000))
        self._looked_at = self._clock()
        self._patience_s -= self._looked_at - now
        return takes_some


def handler_of(stream: TextIO) -> logging.Handler:
    """The handler for a stream; one that is no file has nobody to wait for."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return logging.StreamHandler(stream)
    stream.flush()
    return UnblockedHandler(descriptor)
