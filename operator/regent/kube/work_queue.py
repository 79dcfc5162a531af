"""Which resources have to be looked at: a keyed queue that coalesces.

After controller-runtime's work queue. A key says *what* to look at, never why: ten events for one
resource are one look. The rules:

- a key is queued at most once, and handed out to one worker at a time;
- a key added while a worker has it is handed out again when that worker is done;
- a failed key comes back after an exponentially growing, jittered delay, and all failed keys
  together come back no faster than a fixed rate, so that an outage does not end in a stampede;
- a key that has cost much time rests for a multiple of that before it is handed out again: a
  resource about many partitions, each of whose changes is news for it, leaves time for the others,
  and for the controller.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)

BACKOFF_FIRST_S: Final = 0.5
BACKOFF_MAX_S: Final = 60.0
RETRIES_PER_S: Final = 100.0
CHEAP_S: Final = 0.02
"""What costs no more than this needs no rest."""
REST_PER_COST: Final = 4.0
REST_MAX_S: Final = 5.0
"""A change of the resource itself waits for the end of the rest, too."""


def backoff_s(count: int, *, jitter: float) -> float:
    """Seconds to wait after the ``count``-th failure in a row (from 1 on).

    Args:
        jitter: From 0 to 1. The delay lies between half of the exponential one and all of it.
    """
    full = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(count - 1, 16))
    return full * (0.5 + 0.5 * jitter)


class WorkQueue(Generic[KeyT]):
    """The queue. It is made, and its methods are called, in the event loop's thread;
    :meth:`stalled_s` and :meth:`oldest_s` may be called in any.
    """

    def __init__(
        self, *, jitter: Callable[[], float], on_idle: Callable[[], None] = lambda: None
    ) -> None:
        """
        Args:
            jitter: Returns numbers from 0 to 1 that spread retries.
            on_idle: Called when no key waits any more and none is worked on.
        """
        self._jitter = jitter
        self._on_idle = on_idle
        self._now = asyncio.get_running_loop().time
        self._waiting: dict[KeyT, float] = {}  # in order of arrival -> when it was queued
        self._handed_out: dict[KeyT, float] = {}
        self._again: set[KeyT] = set()
        self._failures: dict[KeyT, int] = {}
        self._rests_until: dict[KeyT, float] = {}
        self._due: dict[KeyT, float] = {}
        self._timetable: list[tuple[float, int, KeyT]] = []
        self._sequence = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._next_retry_at = 0.0
        self._moved_at = 0.0
        # One for each key that waits: a key wakes up one worker, not all that have nothing to do.
        self._available = asyncio.Semaphore(0)

    def __len__(self) -> int:
        """Keys that wait for a worker now; delayed ones do not count."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether no key waits and none is worked on. Delayed keys do not count."""
        return not self._waiting and not self._handed_out

    def stalled_s(self) -> float:
        """Seconds since anything was last finished while there was something to do: a key, or
        a step towards its end.

        A long queue is no reason for concern, however old its end is, as long as it moves.
        """
        return 0.0 if self.is_idle else self._now() - self._moved_at

    def moved(self) -> None:
        """A step towards the end of a key was finished: a request to a slow server, say."""
        self._moved_at = self._now()

    def oldest_s(self) -> float:
        """How long the first of the keys that wait has waited. May be called in any thread."""
        waiting = list(self._waiting.values())
        return self._now() - waiting[0] if waiting else 0.0

    def add(self, key: KeyT) -> None:
        """Queue a key now, or at the end of its rest. A delay it had is void."""
        self._due.pop(key, None)
        left_s = self._rests_until.get(key, 0.0) - self._now()
        if left_s > 0:
            self.add_after(key, left_s)
            return
        self._rests_until.pop(key, None)
        if key in self._handed_out:
            self._again.add(key)
        elif key not in self._waiting:
            if self.is_idle:
                self._moved_at = self._now()
            self._waiting[key] = self._now()
            self._available.release()

    def add_after(self, key: KeyT, delay_s: float) -> None:
        """Queue a key after a delay. Of several delays the shortest counts."""
        if delay_s <= 0:
            self.add(key)
            return
        due = self._now() + delay_s
        if key in self._waiting or self._due.get(key, float("inf")) <= due:
            return
        self._due[key] = due
        heapq.heappush(self._timetable, (due, next(self._sequence), key))
        self._arm()

    def retry(self, key: KeyT, *, at_least_s: float = 0.0) -> float:
        """Queue a key after a failure; the delay in seconds.

        Args:
            at_least_s: What the other side has asked for.
        """
        count = self._failures.get(key, 0) + 1
        self._failures[key] = count
        now = self._now()
        slot = max(now, self._next_retry_at)
        self._next_retry_at = slot + 1.0 / RETRIES_PER_S
        delay_s = max(backoff_s(count, jitter=self._jitter()), slot - now, at_least_s)
        self.add_after(key, delay_s)
        return delay_s

    def succeed(self, key: KeyT) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    async def get(self) -> KeyT:
        """The next key; waits for one. Must be followed by :meth:`done`."""
        await self._available.acquire()
        key = next(iter(self._waiting))
        self._handed_out[key] = self._waiting.pop(key)
        return key

    def done(self, key: KeyT, *, cost_s: float = 0.0) -> None:
        """The worker is done with a key, successfully or not.

        Args:
            cost_s: For how long it has kept the event loop busy.
        """
        del self._handed_out[key]
        self._moved_at = self._now()
        if cost_s > CHEAP_S:
            self._rests_until[key] = self._now() + min(REST_MAX_S, cost_s * REST_PER_COST)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        if self.is_idle:
            self._on_idle()

    def close(self) -> None:
        """Stop the timer. Delayed keys do not come back."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._timetable:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._timetable[0][0], self._release_due)

    def _release_due(self) -> None:
        self._timer = None
        now = self._now()
        while self._timetable and self._timetable[0][0] <= now:
            due, _, key = heapq.heappop(self._timetable)
            # Entries that were overtaken by a shorter delay or by add() are void.
            if self._due.get(key) == due:
                self.add(key)
        self._arm()
