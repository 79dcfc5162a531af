"""How long partitions have no leader, as ZooKeeper says."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.support.metadata import Partition
from tests.support.znodes import Znodes

_INTERVAL_S = 0.01


class LeaderWatch:
    """Reads the states of all partitions again and again.

    Attributes:
        looks: How often it has read them.
        longest_s: The longest time in which a partition was led by nobody who is registered.
    """

    def __init__(self, znodes: Znodes) -> None:
        self._znodes = znodes
        self._since: dict[Partition, float] = {}
        self.looks = 0
        self.offline: set[Partition] = set()
        self.longest_s: dict[Partition, float] = {}

    @property
    def longest_ms(self) -> int:
        """Of any partition."""
        return round(1000 * max(self.longest_s.values(), default=0.0))

    def watch_until(self, stopped: threading.Event) -> None:
        """Look until then."""
        while not stopped.wait(_INTERVAL_S):
            self._look()

    def _look(self) -> None:
        now = time.monotonic()
        registered = {int(child) for child in self._znodes.children("/brokers/ids")}
        for tp, state in self._znodes.states().items():
            if not state:
                continue  # not created yet
            if state["leader"] == -1:
                self.offline.add(tp)
            if state["leader"] in registered:
                self._since.pop(tp, None)
            else:
                spent = now - self._since.setdefault(tp, now)
                self.longest_s[tp] = max(spent, self.longest_s.get(tp, 0.0))
        self.looks += 1


@contextlib.contextmanager
def watched_leaders(connect_string: str) -> Iterator[LeaderWatch]:
    """Look until the end of the block, in a thread."""
    stopped = threading.Event()
    with Znodes(connect_string) as znodes, ThreadPoolExecutor(1) as executor:
        watch = LeaderWatch(znodes)
        looking = executor.submit(watch.watch_until, stopped)
        try:
            yield watch
        finally:
            stopped.set()
        looking.result()
