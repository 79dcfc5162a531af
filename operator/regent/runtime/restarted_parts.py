"""Parts of the controller's loop that the controller can do without for a while.

They show what it does, or find out what helps it. A defect in one of them, or memory that it does
not get, ends that part alone: it is started again after a pause that grows.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from regent.runtime.cancellation import is_to_end

logger = logging.getLogger(__name__)

VIEW: Final = "the view of the cluster"
COLLECTION: Final = "the collection of garbage"

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0

STABLE_AFTER_S: Final = 60.0
"""A part that has run for so long again is in order."""


class RestartedParts:
    """Belongs to the controller's loop, except :meth:`problem`, which anybody may call."""

    def __init__(
        self,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pause = pause
        self._now = now
        self._problems: dict[tuple[str, type[BaseException]], tuple[str, float]] = {}

    async def run(self, name: str, part: Callable[[], Awaitable[None]]) -> None:
        """Run a part to its end, again after each exception, until cancelled.

        A cancellation that comes from within is an exception, too: the part awaited what somebody
        else had cancelled.
        """
        pause_s = FIRST_PAUSE_S
        while True:
            began = self._now()
            try:
                await part()
            except (Exception, asyncio.CancelledError) as error:
                if is_to_end():
                    raise
                if self._now() - began > STABLE_AFTER_S:
                    pause_s = FIRST_PAUSE_S
                logger.exception(
                    "A part of the process failed and is started again; the Kafka controller goes "
                    "on",
                    extra={"part": name, "delay_s": pause_s},
                )
                self._note(name, error, pause_s)
            else:
                return
            await self._pause(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def do(self, name: str, work: Callable[[], None]) -> None:
        """Do something that is done again and again. An error is logged when it is of a new kind,
        or the last one of its kind is a while ago."""
        try:
            work()
        except Exception as error:
            if self._found(name, type(error)) is None:
                logger.exception(
                    "A part of the process failed and is tried again; the Kafka controller goes on",
                    extra={"part": name},
                )
                self._note(name, error, 0.0)

    def problem(self) -> str | None:
        """What has failed, and has not been in order for a while since; None: nothing."""
        problems = [
            f"{name} has failed, and is tried again: {found}"
            for name, kind in list(self._problems)
            if (found := self._found(name, kind)) is not None
        ]
        return "; ".join(problems) or None

    def _note(self, name: str, error: BaseException, pause_s: float) -> None:
        until = self._now() + pause_s + STABLE_AFTER_S
        self._problems[name, type(error)] = repr(error), until

    def _found(self, name: str, kind: type[BaseException]) -> str | None:
        error, until = self._problems.get((name, kind), ("", float("-inf")))
        return error if self._now() < until else None
