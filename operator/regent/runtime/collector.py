"""Keeps Python's cyclic garbage collector out of the controller's way.

The context of a large cluster is millions of objects that live as long as the controller is active
and take part in no cycle. Left alone the collector walks all of them again and again, for hundreds
of milliseconds at a time. So it rests while an event is processed, and what a failover has loaded
is moved out of its sight.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_THRESHOLDS: Final = (20_000, 20, 20)
"""New objects before a collection of the youngest; collections of a generation before one of the
next. Python's own (700, 10, 10) suit a small program: with thousands of resources whose bodies are
parsed again and again, a tenth of the time went into collections that found nothing."""


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
