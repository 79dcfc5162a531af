"""Answers that a thread waits for without a bound, as kazoo's recipes do.

Servers answer what comes over one connection in order, and with the connection everything fails
that waits. So an answer that is missing when later requests have been answered was lost on this
side, and will never come: whoever waits for it asks again, as after a lost connection.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from kazoo.exceptions import ConnectionLoss
from kazoo.handlers.threading import AsyncResult, SequentialThreadingHandler

logger = logging.getLogger(__name__)

PATIENCE_S: Final = 10.0
"""What was asked so much later has been answered. kazoo makes some requests only after others, and
hands some answers on in a second thread."""

LOOK_INTERVAL_S: Final = 1.0


class AnswerLostError(ConnectionLoss):
    """An answer will never come, though the connection stands. Recipes ask again."""


class AwaitedAnswer(AsyncResult):
    """The answer to one request.

    Args:
        has_answered_since: Whether the servers have answered something that was asked after a
            moment (monotonic seconds), and all that was asked before. Called in any thread.
    """

    def __init__(
        self,
        handler: SequentialThreadingHandler,
        *,
        has_answered_since: Callable[[float], bool],
    ) -> None:
        super().__init__(handler)
        self._has_answered_since = has_answered_since

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """See kazoo.

        Raises:
            AnswerLostError: See there.
        """
        if block and timeout is None:
            self._wait_for_it()
        return super().get(block, timeout)

    def _wait_for_it(self) -> None:
        asked_at = time.monotonic()
        while not self.wait(LOOK_INTERVAL_S):
            if self._has_answered_since(asked_at + PATIENCE_S) and not self.ready():
                waited_s = round(time.monotonic() - asked_at, 1)
                logger.error("An answer of ZooKeeper was lost", extra={"waited_s": waited_s})
                raise AnswerLostError(f"no answer in {waited_s:g} s, though later ones have come")
