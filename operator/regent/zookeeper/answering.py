"""What kazoo is given with a request, and how answers get from its thread to the asyncio loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final

from kazoo.exceptions import ConnectionDropped

_NO_ANSWER: Final = object()


def post(
    loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *arguments: object
) -> None:
    """Call something in the loop, from any thread. A closed loop is left alone."""
    try:
        loop.call_soon_threadsafe(callback, *arguments)
    except RuntimeError:
        if not loop.is_closed():
            raise


class Batch:
    """Answers to several requests, handed to the loop with one wake-up."""

    __slots__ = ("_answers", "_future", "_lock", "_missing", "on_contact")

    def __init__(
        self, size: int, future: asyncio.Future[list[Any]], *, on_contact: Callable[[], None]
    ) -> None:
        self.on_contact = on_contact
        self._answers: list[Any] = [_NO_ANSWER] * size
        self._missing = size
        self._future = future
        self._lock = threading.Lock()
        if not size:
            future.set_result([])

    def complete(self, index: int, answer: object) -> None:
        """Any thread. Only the first answer to a request counts: kazoo may fail one twice."""
        with self._lock:
            if self._answers[index] is not _NO_ANSWER:
                return
            self._answers[index] = answer
            self._missing -= 1
            if self._missing:
                return
        post(self._future.get_loop(), self._deliver)

    def _deliver(self) -> None:
        if not self._future.done():
            self._future.set_result(self._answers)


class Slot:
    """What kazoo takes for its ``AsyncResult``: it calls only these two."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: Batch, index: int) -> None:
        self._batch = batch
        self._index = index

    def set(self, value: object, /) -> None:
        self._batch.on_contact()
        self._batch.complete(self._index, value)

    def set_exception(self, exception: Exception, /) -> None:
        self._batch.complete(self._index, exception)


class HeartbeatSink:
    """Takes the answer to a heartbeat.

    Args:
        prove_contact: Called with the time when the heartbeat was sent, once it is answered.
        sent_at: Monotonic seconds.
    """

    __slots__ = ("_prove_contact", "_sent_at")

    def __init__(self, prove_contact: Callable[[float], None], sent_at: float) -> None:
        self._prove_contact = prove_contact
        self._sent_at = sent_at

    def set(self, value: object, /) -> None:
        self._prove_contact(self._sent_at)

    def set_exception(self, exception: Exception, /) -> None:
        """A failed heartbeat proves nothing; a lost connection is noticed by kazoo."""


class GiveUp:
    """A request that ends the connection instead of being sent."""

    type = 0
    __slots__ = ("_silence_s",)

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s

    def serialize(self) -> bytes:
        raise ConnectionDropped(f"no answer for {self._silence_s:.1f} s")
