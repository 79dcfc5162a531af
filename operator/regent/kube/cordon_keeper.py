"""Keeps the cordon of the controller equal to what the BrokerDrains ask for.

The controller knows its cordon for a term only. So it is compared whenever the view or a
BrokerDrain changes, and a BrokerDrain that is gone leaves nothing behind: it needs no finalizer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from regent.admin.commands import CordonBrokers, Rejected
from regent.controller.view import ClusterView
from regent.kube.command_batcher import CommandBatcher
from regent.kube.work_queue import backoff_s

logger = logging.getLogger(__name__)


class CordonKeeper:
    """Has the controller cordon what is wanted, for as long as :meth:`run` runs.

    Args:
        wanted: Returns the brokers that are to be cordoned, sorted.
        view: Returns the newest view of the cluster.
        jitter: Returns numbers from 0 to 1 that spread retries.
    """

    def __init__(
        self,
        batcher: CommandBatcher,
        *,
        wanted: Callable[[], tuple[int, ...]],
        view: Callable[[], ClusterView],
        jitter: Callable[[], float],
    ) -> None:
        self._batcher = batcher
        self._wanted = wanted
        self._view = view
        self._jitter = jitter
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """The view, or a BrokerDrain, may have changed."""
        self._changed.set()

    async def run(self, known: asyncio.Event) -> None:
        """Keep it, until cancelled.

        Args:
            known: Set once all BrokerDrains are known: before that a missing one says nothing.
        """
        await known.wait()
        failures = 0
        while True:
            self._changed.clear()
            wanted, view = self._wanted(), self._view()
            if not view.may_act or view.cordoned == wanted:
                failures = 0
                await self._changed.wait()
                continue
            (outcome,) = await self._batcher.submit((CordonBrokers(wanted),))
            if isinstance(outcome, Rejected):
                failures += 1
                logger.warning(
                    "Cordoning brokers failed",
                    extra={"brokers": list(wanted), "reason": outcome.message},
                )
            await self._pause(failures)

    async def _pause(self, failures: int) -> None:
        """Wait for a change; after a refusal, or one that does not show, not for ever."""
        try:
            async with asyncio.timeout(backoff_s(max(1, failures), jitter=self._jitter())):
                await self._changed.wait()
        except TimeoutError:
            pass
