"""Keeps Python's cyclic garbage collector out of the controller's way.

The context of a large cluster is millions of objects that live as long as the controller is active
and take part in no cycle. Left alone the collector walks all of them again and again, for hundreds
of milliseconds at a time. So it rests while an event is processed, and what a failover has loaded
is moved out of its sight.

Now and then it looks at all the rest. What connections leave behind may be in a circle, with errors
and transports of libraries in it, and large: a TLS connection has 40 kB. By itself the collector
looks at what has lived for a while after millions of new objects only, which may be gigabytes.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_THRESHOLDS: Final = (20_000, 20, 20)
"""New objects before a collection of the youngest; collections of a generation before one of the
next. Python's own (700, 10, 10) suit a small program: with thousands of resources whose bodies are
parsed again and again, a tenth of the time went into collections that found nothing."""

INTERVAL_S: Final = 60.0
"""Between two looks at everything, at least."""

TIME_SHARE: Final = 0.001
"""Of all time that such looks may take: 10,000 resources in memory cost tenths of a second each."""

_QUIET_CHECK_S: Final = 0.25


def settle() -> None:
    """The program is loaded: hide what it consists of from the collector, and have it run less."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


class Collector:
    """Governs the collector of this process."""

    def __init__(self) -> None:
        self._depth = 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No collection inside."""
        gc.disable()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                gc.enable()

    def population_changed(self, *, is_active: bool) -> None:
        """A context was loaded: hide it from the collector. Or dropped: let it see all again."""
        if is_active:
            self.freeze()
        else:
            gc.unfreeze()

    def freeze(self) -> None:
        """Hide what there is now, and will live long, from the collector."""
        gc.freeze()

    async def collect_at_quiet_moments(self, is_quiet: Callable[[], bool]) -> None:
        """Look at everything that is not hidden, now and then, until cancelled.

        Args:
            is_quiet: Whether nobody has to wait for the loop while that lasts.
        """
        rest_s = INTERVAL_S
        while True:
            await asyncio.sleep(rest_s)
            if self._depth or not is_quiet():
                rest_s = _QUIET_CHECK_S
                continue
            began = time.monotonic()
            gc.collect()
            rest_s = max(INTERVAL_S, (time.monotonic() - began) / TIME_SHARE)
