"""Structured logging: one JSON object a line, or text for people.

Messages are constant, everything variable is a field (``extra=``), so that logs can be counted and
searched by message.
"""

from __future__ import annotations

import datetime
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

import pythonjsonlogger.json

from regent.controller.log import MAY_RECUR
from regent.model.entry_budget import EntryBudget
from regent.model.plain_text import plain
from regent.observability.accept_failures import AcceptFailures
from regent.observability.log_stream import handler_of

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_CONTROLLER = logging.getLogger("regent.controller")
_THREADS = logging.getLogger("regent.threads")
_STATE_CHANGE = logging.getLogger("regent.state_change")


def configure(
    *, level: str, log_format: Literal["json", "text"], state_changes: bool
) -> logging.Handler:
    """Set the root logger up. Called once, before anything logs. Returns what writes the log."""
    handler = handler_of(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Libraries speak of every connection and request; problems of theirs reach us as exceptions.
    for library in ("kazoo", "kopf", "aiohttp", "urllib3", "asyncio", "kubernetes"):
        logging.getLogger(library).setLevel(logging.WARNING)
    logging.getLogger("asyncio").addFilter(AcceptFailures())
    # What ends kopf's stream is raised to us, and logged by us.
    logging.getLogger("kopf._core.reactor.orchestration").setLevel(logging.CRITICAL)
    logging.getLogger("kopf._core.reactor.running").addFilter(_is_not_of_a_stream)
    _STATE_CHANGE.setLevel(logging.INFO if state_changes else logging.WARNING)
    threading.excepthook = log_end_of_thread
    return handler


def _is_not_of_a_stream(entry: logging.LogRecord) -> bool:
    """Other tasks of kopf may fail without an error that is raised to us."""
    return not entry.getMessage().startswith("Multidimensional multitasker has failed")


def log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    """An error that has ended a thread is logged; Python would print it in lines of its own.

    As there, a thread that asks for its end by ``SystemExit`` has no error.
    """
    error = ended.exc_value
    if isinstance(error, SystemExit):
        return
    _THREADS.error(
        "Thread ended by an error",
        extra={"thread_name": None if ended.thread is None else ended.thread.name},
        exc_info=None if error is None else (ended.exc_type, error, ended.exc_traceback),
    )


class JsonFormatter(pythonjsonlogger.json.JsonFormatter):
    """``{"time", "level", "logger", "message", ...fields, "exception"?}``."""

    def __init__(self) -> None:
        super().__init__(
            ("levelname", "name", "message"),
            rename_fields={"levelname": "level", "name": "logger", "exc_info": "exception"},
            timestamp="time",
        )

    def jsonify_log_record(self, log_data: dict[str, Any]) -> str:
        """One line of JSON, whatever a library adds to its records: kopf adds its settings."""
        try:
            return super().jsonify_log_record(log_data)
        except (TypeError, ValueError, RecursionError):
            return super().jsonify_log_record({k: _plain(v) for k, v in log_data.items()})


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | None) else repr(value)


class TextFormatter(logging.Formatter):
    """``time LEVEL message key=value ...``, in one line, whatever others have sent."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        said = plain(f"{record.getMessage()}{fields}")
        line = f"{_timestamp(record)} {record.levelname:<7} {said}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, tz=datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


class StandardControllerLog:
    """Writes what the controller core says to the standard loggers.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._budgets = {message: EntryBudget() for message in MAY_RECUR}

    @property
    def traces_state_changes(self) -> bool:
        return _STATE_CHANGE.isEnabledFor(logging.INFO)

    def info(self, message: str, **fields: object) -> None:
        _CONTROLLER.info(message, extra=fields)

    def warning(self, message: str, **fields: object) -> None:
        if self._may_be_written(message, fields):
            _CONTROLLER.warning(message, extra=fields)

    def error(self, message: str, **fields: object) -> None:
        exception = fields.pop("exception", None)
        if self._may_be_written(message, fields):
            _CONTROLLER.error(
                message,
                extra=fields,
                exc_info=exception if isinstance(exception, BaseException) else None,
            )

    def _may_be_written(self, message: str, fields: dict[str, object]) -> bool:
        """Whether there is room for an entry; how many had none before it is added to it."""
        budget = self._budgets.get(message)
        if budget is None:
            return True
        left_out = budget.take(self._clock())
        fields["entries_left_out"] = left_out
        return left_out is not None

    def state_change(self, what: object, before: object, after: object, **fields: object) -> None:
        _STATE_CHANGE.info(
            "State change", extra={"what": str(what), "before": before, "after": after} | fields
        )
