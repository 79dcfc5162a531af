"""What happened, one line per step in fixed columns, and the error of a broken invariant."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

LINES_KEPT = 200


class InvariantViolatedError(AssertionError):
    """The simulation has reached a state that must not exist."""


def require(condition: object, message: str) -> None:
    """Raise if an invariant does not hold."""
    if not condition:
        raise InvariantViolatedError(message)


class Trace:
    """Keeps the last lines and a digest of all: two runs of one seed have the same."""

    def __init__(
        self, now_ms: Callable[[], int], *, echo: Callable[[str], None] | None = None
    ) -> None:
        self._now_ms = now_ms
        self._echo = echo
        self._hash = hashlib.blake2b(digest_size=16)
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self.count = 0

    def line(self, actor: str, what: str, detail: object = "") -> None:
        """One line: number, simulated time, who, what, and details."""
        self.count += 1
        line = f"{self.count:>7} {self._now_ms():>8} {actor:<10} {what:<24} {detail}"
        self.lines.append(line)
        self._hash.update(line.encode())
        if self._echo is not None:
            self._echo(line)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def tail(self) -> str:
        """The last lines, for the report of a failure."""
        return "\n".join(self.lines)


class TracingLog:
    """The log of a controller core as part of the trace.

    An error that only a defect of the core can cause ends the run, unless the controller has been
    deposed without knowing it: it reads what its successor has written and may stumble over it.
    """

    traces_state_changes = True

    _DEFECTS = (
        "Event failed, giving the controller up",
        "Command failed",
        "Illegal partition transition",
        "Illegal replica transition",
        "A new replica cannot be the leader",
        "Replica missing from the assignment, added",
    )

    def __init__(
        self, trace: Trace, actor: str, *, is_deposed: Callable[[], bool] = lambda: False
    ) -> None:
        self._trace = trace
        self._actor = actor
        self._is_deposed = is_deposed

    def info(self, message: str, **fields: object) -> None:
        self._trace.line(self._actor, "  info", _text(message, fields))

    def warning(self, message: str, **fields: object) -> None:
        self._trace.line(self._actor, "  warning", _text(message, fields))

    def error(self, message: str, **fields: object) -> None:
        text = _text(message, fields)
        self._trace.line(self._actor, "  error", text)
        if message in self._DEFECTS and not self._is_deposed():
            cause = fields.get("exception")
            raise InvariantViolatedError(f"{self._actor}: {text}") from (
                cause if isinstance(cause, BaseException) else None
            )

    def state_change(self, what: object, before: object, after: object, **fields: object) -> None:
        self._trace.line(self._actor, "  state", _text(f"{what}: {before} -> {after}", fields))


def _text(message: str, fields: dict[str, object]) -> str:
    return message + "".join(f" {k}={v}" for k, v in fields.items() if k != "exception")
