"""A Regent that is ready to take over, and does so at a moment of the test's choice."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from kazoo.recipe.lock import Lock

from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, regent

_ELECTION = "/regent/election"


@dataclass(frozen=True)
class Standby:
    """A Regent behind the test in the election among the replicas."""

    process: RegentProcess
    _first_in_line: Lock

    def take_over(self) -> None:
        """Let it be elected, and wait until it is the controller."""
        self._first_in_line.release()
        self.process.wait_until_active()


@contextlib.contextmanager
def standby(cluster: Cluster) -> Iterator[Standby]:
    """A Regent that waits in the election; stopped in an orderly way at the end."""
    first_in_line = Lock(cluster.znodes.client, _ELECTION, "the test")
    assert first_in_line.acquire(timeout=60.0)
    try:
        with regent(cluster) as process:
            cluster.wait(
                lambda: len(cluster.znodes.children(_ELECTION)) == 2, "it to queue up as standby"
            )
            yield Standby(process, first_in_line)
    finally:
        first_in_line.release()
