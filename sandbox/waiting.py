"""The one way to wait in tests, demos and the sandbox itself.

A wait that fails says what was awaited, what was seen last, and what the programs involved
wrote to their logs, so that a failure on somebody else's machine can be read without running
it again. A wait on a program that has died fails at once and not at its deadline.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from sandbox.errors import ProcessDiedError, WaitTimeoutError

T = TypeVar("T")

LOG_LINES = 30
_TAIL_BYTES = 64 * 1024


class Watched(Protocol):
    """What a wait needs to know of a program: is it still there, and where is its log."""

    @property
    def name(self) -> str: ...
    @property
    def is_running(self) -> bool: ...
    @property
    def log_path(self) -> Path: ...


def log_tail(path: Path, *, lines: int = LOG_LINES) -> str:
    """The last lines of a log, or a note that there are none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError as error:
        return f"(unreadable: {error})"
    return "\n".join(text.splitlines()[-lines:]) or "(empty)"


@dataclass(slots=True)
class _Attempt:
    """The state of one wait: the clock, what was seen last, and how to report a failure."""

    describe: str
    timeout_s: float
    logs: tuple[Path, ...]
    watch: tuple[Watched, ...]
    started: float = field(default_factory=time.monotonic)
    last: str = "nothing: the condition was never evaluated"
    error: Exception | None = None

    @property
    def remaining_s(self) -> float:
        return self.started + self.timeout_s - time.monotonic()

    def saw(self, value: object) -> None:
        self.error = None
        self.last = f"value {_shorten(repr(value))}"

    def raised(self, error: Exception) -> None:
        self.error = error
        self.last = f"exception {type(error).__name__}: {_shorten(str(error))}"

    def check_processes(self) -> None:
        """Fail at once when a watched program has ended."""
        for process in self.watch:
            if not process.is_running:
                headline = f"{process.name} died while waiting for {self.describe}"
                raise ProcessDiedError(self._report(headline)) from self.error

    def check_deadline(self) -> None:
        if self.remaining_s <= 0:
            headline = f"timed out after {self.timeout_s:g} s waiting for {self.describe}"
            raise WaitTimeoutError(self._report(headline)) from self.error

    def _report(self, headline: str) -> str:
        elapsed = time.monotonic() - self.started
        parts = [headline, f"last observed: {self.last}", f"waited: {elapsed:.1f} s"]
        paths = dict.fromkeys((*(process.log_path for process in self.watch), *self.logs))
        parts += [f"--- tail of {path} ---\n{log_tail(path)}" for path in paths]
        return "\n".join(parts)


def _shorten(text: str, *, limit: int = 2000) -> str:
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def wait_until(
    condition: Callable[[], T],
    *,
    timeout_s: float,
    describe: str,
    until: Callable[[T], object] = bool,
    interval_s: float = 0.05,
    logs: Iterable[Path] = (),
    watch: Iterable[Watched] = (),
    retry_on: tuple[type[Exception], ...] = (Exception,),
) -> T:
    """Poll `condition` until what it returns satisfies `until`, and return that value.

    `describe` completes the sentence "waiting for ...". With `until` the condition can return
    what it sees (an ISR, a status) instead of a bare False, so that a failure can show it.
    Exceptions of `retry_on` mean "not yet". `logs` are shown on failure; `watch` are programs
    without which there is nothing to wait for: their logs are shown too.

    Raises:
        WaitTimeoutError: the deadline passed; the last exception of the condition is its cause.
        ProcessDiedError: a watched program ended.
    """
    attempt = _Attempt(describe, timeout_s, tuple(logs), tuple(watch))
    while True:
        attempt.check_processes()
        try:
            value = condition()
            if until(value):
                return value
            attempt.saw(value)
        except retry_on as error:
            attempt.raised(error)
        attempt.check_deadline()
        time.sleep(min(interval_s, max(attempt.remaining_s, 0)))


async def wait_until_async(
    condition: Callable[[], Awaitable[T] | T],
    *,
    timeout_s: float,
    describe: str,
    until: Callable[[T], object] = bool,
    interval_s: float = 0.05,
    logs: Iterable[Path] = (),
    watch: Iterable[Watched] = (),
    retry_on: tuple[type[Exception], ...] = (Exception,),
) -> T:
    """`wait_until` for code in an event loop; the condition may be a plain or async function.

    An async condition that hangs is cut off at the deadline.
    """
    attempt = _Attempt(describe, timeout_s, tuple(logs), tuple(watch))
    while True:
        attempt.check_processes()
        try:
            outcome = condition()
            if inspect.isawaitable(outcome):
                value: T = await asyncio.wait_for(outcome, max(attempt.remaining_s, interval_s))
            else:
                value = outcome
            if until(value):
                return value
            attempt.saw(value)
        except retry_on as error:
            attempt.raised(error)
        attempt.check_deadline()
        await asyncio.sleep(min(interval_s, max(attempt.remaining_s, 0)))
