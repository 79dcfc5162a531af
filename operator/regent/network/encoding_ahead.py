"""When the metadata that waits is made into bytes: while brokers work on what they were sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

_AHEAD_S: Final = 0.001
"""Seconds after the end of a request was sent, before the next one is prepared: what is ready to
leave goes first, such as answers to what brokers ask. Twice as long each time that requests to
others are still on their way, as one may take long whose broker does not read."""


class EncodingAhead:
    """Has a channel encode its next metadata between the end of a request and its answer.

    Not while requests to other brokers are on their way: that would keep their ends back.

    Args:
        writing: Those whose request has begun to leave, and not ended; the same set for the
            channels of all brokers.
    """

    def __init__(self, *, writing: set[EncodingAhead]) -> None:
        self._writing = writing
        self._timer: asyncio.TimerHandle | None = None

    def on_sending(self) -> None:
        """A request begins to leave."""
        self._writing.add(self)

    def on_sent(self, encode: Callable[[], None]) -> None:
        """Its end has left: the broker has something to work on.

        Args:
            encode: Encodes what waits. All receivers share the bytes.
        """
        self._writing.discard(self)
        self._encode_in(_AHEAD_S, encode)

    def on_ended(self) -> None:
        """No more of it will leave: it was answered, has failed, or was stopped."""
        self._writing.discard(self)

    def cancel(self) -> None:
        """Encode nothing ahead until the end of another request has left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _encode_in(self, seconds: float, encode: Callable[[], None]) -> None:
        self.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._encode_unless, seconds, encode)

    def _encode_unless(self, waited_s: float, encode: Callable[[], None]) -> None:
        if self._writing:
            self._encode_in(2 * waited_s, encode)
        else:
            encode()
