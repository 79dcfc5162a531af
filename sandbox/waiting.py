"""The one way to wait in tests, demos and the sandbox itself.

A wait that fails says what was awaited, what was seen last, and what the programs involved
wrote to their logs, so that a failure on somebody else's machine can be read without running
it again. A wait on a program that has died fails at once and not at its deadline.
"""

import asyncio
import inspect
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Required, Self, TypedDict, TypeVar, Unpack, overload

from sandbox.errors import ProcessDiedError, WaitTimeoutError

T = TypeVar("T")

DEADLINE_S = 180.0
"""The end of a wait for anything that merely has to happen. On the busiest machine it happens long
before."""

LOG_LINES = 30
INTERVAL_S = 0.05
MIN_ATTEMPT_S = 0.05
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


class WaitOptions(TypedDict, total=False):
    """What both forms of waiting take.

    `describe` completes the sentence "waiting for ...". `timeout_s` is `DEADLINE_S` unless the time
    itself is the subject. `logs` are shown on failure; `watch` are
    programs without which there is nothing to wait for: their logs are shown too. Exceptions of
    `retry_on` (all, unless given) raised by the condition mean "not yet".
    """

    timeout_s: float
    describe: Required[str]
    interval_s: float
    logs: Iterable[Path]
    watch: Iterable[Watched]
    retry_on: tuple[type[Exception], ...]


@dataclass(slots=True)
class _Attempt:
    """The state of one wait: the clock, what was seen last, and how to report a failure."""

    describe: str
    timeout_s: float
    interval_s: float
    logs: tuple[Path, ...]
    watch: tuple[Watched, ...]
    retry_on: tuple[type[Exception], ...]
    started: float = field(default_factory=time.monotonic)
    last: str = "nothing: the condition was never evaluated"
    error: Exception | None = None

    @classmethod
    def of(cls, options: WaitOptions) -> Self:
        return cls(
            describe=options["describe"],
            timeout_s=options.get("timeout_s", DEADLINE_S),
            interval_s=options.get("interval_s", INTERVAL_S),
            logs=tuple(options.get("logs", ())),
            watch=tuple(options.get("watch", ())),
            retry_on=options.get("retry_on", (Exception,)),
        )

    @property
    def pause_s(self) -> float:
        return min(self.interval_s, max(self.remaining_s, 0))

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
    condition: Callable[[], T | None],
    *,
    until: Callable[[T], object] = bool,
    **options: Unpack[WaitOptions],
) -> T:
    """Poll `condition` until what it returns satisfies `until`, and return that value.

    With `until` the condition can return what it sees (an ISR, a status) instead of a bare
    False, so that a failure can show it. None always means "not yet".

    Raises:
        WaitTimeoutError: the deadline passed; the last exception of the condition is its cause.
        ProcessDiedError: a watched program ended.
    """
    attempt = _Attempt.of(options)
    while True:
        attempt.check_processes()
        try:
            value = condition()
            if value is not None and until(value):
                return value
            attempt.saw(value)
        except attempt.retry_on as error:
            attempt.raised(error)
        attempt.check_deadline()
        time.sleep(attempt.pause_s)


@overload
async def wait_until_async(
    condition: Callable[[], Coroutine[None, None, T | None]],
    *,
    until: Callable[[T], object] = ...,
    **options: Unpack[WaitOptions],
) -> T: ...
@overload
async def wait_until_async(
    condition: Callable[[], T | None],
    *,
    until: Callable[[T], object] = ...,
    **options: Unpack[WaitOptions],
) -> T: ...
async def wait_until_async(
    condition: Callable[[], Any],
    *,
    until: Callable[[Any], object] = bool,
    **options: Unpack[WaitOptions],
) -> Any:
    """`wait_until` for code in an event loop; the condition may be a plain or async function.

    An async condition that hangs is cut off at the deadline.
    """
    attempt = _Attempt.of(options)
    while True:
        attempt.check_processes()
        try:
            value = condition()
            if inspect.isawaitable(value):
                value = await asyncio.wait_for(value, max(attempt.remaining_s, MIN_ATTEMPT_S))
            if value is not None and until(value):
                return value
            attempt.saw(value)
        except attempt.retry_on as error:
            attempt.raised(error)
        attempt.check_deadline()
        await asyncio.sleep(attempt.pause_s)
