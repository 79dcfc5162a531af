"""Which replica serves the custom resources: the elected one, else one that holds the Lease."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from regent.kube.errors import KubeError
from regent.kube.lease import Lease

logger = logging.getLogger(__name__)

_RELEASE_TIMEOUT_S: Final = 2.0


class Phase:
    """Something that begins and ends, again and again, as two events of one loop."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.over = asyncio.Event()
        self.over.set()

    def set(self, is_on: bool) -> None:
        if is_on:
            self.over.clear()
            self.begun.set()
        else:
            self.begun.clear()
            self.over.set()

    @property
    def is_on(self) -> bool:
        return self.begun.is_set()


class Leadership:
    """Keeps the Lease, and says when to serve.

    The elected replica serves whether or not it gets the Lease: what it does is fenced elsewhere,
    and a missing right on Leases must not stop it. Another replica serves only while it holds the
    Lease. It takes it once the Lease has expired, which takes long enough for a term to begin.

    Attributes:
        term: The terms of this replica as the elected one.
        serving: When to serve.
    """

    def __init__(
        self,
        *,
        duration_s: float,
        retry_s: float,
        on_rival: Callable[[str | None], None] = lambda rival: None,
        on_other_cluster: Callable[[str | None], None] = lambda cluster_id: None,
        on_problem: Callable[[str | None], None] = lambda problem: None,
    ) -> None:
        """
        Args:
            duration_s: How long an observer serves without being able to renew the Lease.
            retry_s: Seconds between renewals or attempts.
            on_rival: Called with what another Regent serves that has had the same Lease for
                ``duration_s``; None: no other one has it.
            on_other_cluster: Called with the id of the Kafka cluster that the holder of the Lease
                controls while this replica controls another one; None: that is not so.
            on_problem: Called after each attempt with why the Lease cannot be kept; None: it can.
        """
        self.term = Phase()
        self.serving = Phase()
        self._duration_s = duration_s
        self._retry_s = retry_s
        self._changed = asyncio.Event()
        self._held_at = float("-inf")
        self._problem: str | None = None
        self._on_rival = on_rival
        self._on_other_cluster = on_other_cluster
        self._on_problem = on_problem
        self._alone_at: float | None = None

    def set_elected(self, is_elected: bool) -> None:
        """This replica is, or is no longer, the elected one."""
        self.term.set(is_elected)
        self._changed.set()

    def look_again(self) -> None:
        """This replica controls a Kafka cluster now, or another one than before, or none."""
        self._changed.set()

    async def run(self, lease: Lease) -> None:
        """Keep the Lease until cancelled; then release it."""
        try:
            while True:
                self._changed.clear()
                await self._renew(lease)
                # Not asyncio.wait_for: before Python 3.12 it drops a cancellation at this moment.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._retry_s):
                        await self._changed.wait()
        finally:
            self.serving.set(False)
            await _release(lease)

    async def _renew(self, lease: Lease) -> None:
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(self._served_until()):
                is_held = await lease.take(by_force=self.term.is_on)
        except KubeError as error:
            is_held = now - self._held_at < self._duration_s
            self._report(str(error))
        except TimeoutError:
            is_held = False
            self._report(f"not renewed for {self._duration_s:g} s, for want of an answer")
        else:
            self._report(None)
            self._held_at = now if is_held else float("-inf")
            self._notice(lease.rival, now)
            self._on_other_cluster(lease.other_cluster)
        should_serve = is_held or (self.term.is_on and not lease.is_left)
        if should_serve != self.serving.is_on:
            logger.info(
                "Serving custom resources" if should_serve else "No longer serving resources",
                extra={"elected": self.term.is_on},
            )
            self.serving.set(should_serve)

    def _notice(self, rival: str | None, now: float) -> None:
        """While replicas get other settings, one of them may have the Lease for some seconds."""
        if rival is None or self._alone_at is None:
            self._alone_at = now
        has_stayed = now - self._alone_at >= self._duration_s
        self._on_rival(rival if has_stayed else None)

    def _served_until(self) -> float | None:
        """When an observer has to stop, though the answer about the Lease may still come: then
        another one may take it. None: this one has nothing to stop, or need not."""
        if self.term.is_on or not self.serving.is_on:
            return None
        return self._held_at + self._duration_s

    def _report(self, problem: str | None) -> None:
        """Log a problem once, not every few seconds."""
        if problem is not None and self._problem is None:
            logger.warning("The Lease cannot be kept", extra={"problem": problem})
        elif problem is None and self._problem is not None:
            logger.info("The Lease can be kept again")
        self._problem = problem
        self._on_problem(problem)


async def _release(lease: Lease) -> None:
    try:
        await asyncio.wait_for(lease.release(), _RELEASE_TIMEOUT_S)
    except (KubeError, TimeoutError) as error:
        logger.info("The Lease was not released and will expire", extra={"problem": str(error)})
