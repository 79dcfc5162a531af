"""Whether this process may send to brokers: as long as it knows that it is the controller.

Two things take the right away. The *fence* of the ZooKeeper session does when the servers may have
expired it. And a *pause* of this process does: a replica that was frozen, or whose machine was
suspended, may have a successor, which the brokers need not know yet. It does not know itself how
long it has slept until it looks at the clock, so that is done in the very question, before anything
else of this process has run. After a pause nothing is sent until ZooKeeper has confirmed, in answer
to a transaction of checks that was sent later, that the epoch is still the present one and that
``/controller`` is there. A read would not do: a server that lags behind answers it, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

from regent.model.errors import SessionExpiredError, ZooKeeperError
from regent.replicas.own_pauses import OwnPauses
from regent.runtime.ports import ZooKeeperPort
from regent.zk_data.controller import checks_of_controller
from regent.zk_data.operations import Written

logger = logging.getLogger(__name__)

LOOKS_PER_PAUSE: Final = 3
"""So often the clock is looked at in the time that is a pause."""

RETRY_S: Final = 0.1
"""After a question to ZooKeeper that got no answer."""

_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine is suspended, where there is one that does."""


def elapsed() -> float:
    """Seconds since some moment, those included in which the machine was suspended."""
    return time.clock_gettime(_CLOCK)


class SendingRight:
    """Belongs to the controller's loop.

    Args:
        zookeeper: Under the session by which this process is the controller.
        is_fenced: Whether that session must not be trusted.
        pause_s: So long this process has to have slept to be in doubt.
        clock: Seconds that also pass while this process sleeps.
    """

    def __init__(
        self,
        zookeeper: ZooKeeperPort,
        *,
        is_fenced: Callable[[], bool],
        pause_s: float,
        clock: Callable[[], float] = elapsed,
    ) -> None:
        self._zookeeper = zookeeper
        self._is_fenced = is_fenced
        self._interval_s = pause_s / LOOKS_PER_PAUSE
        self._clock = clock
        self._pauses = OwnPauses(pause_s, clock())
        self._epoch_zk_version: int | None = None
        self._settled = asyncio.Event()
        self._proving: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look at the clock from now on, whether or not there is anything to send."""
        if self._timer is None:
            self._look_again()

    async def close(self) -> None:
        """Undo :meth:`start`."""
        if self._timer is not None:
            self._timer.cancel()
        if self._proving is not None:
            self._proving.cancel()
            await asyncio.gather(self._proving, return_exceptions=True)

    def set_term(self, epoch_zk_version: int | None) -> None:
        """This process has become the controller, or is it no more.

        Args:
            epoch_zk_version: dataVersion of ``/controller_epoch`` in this term; None: no term.
        """
        if epoch_zk_version != self._epoch_zk_version:
            self._epoch_zk_version = epoch_zk_version
            self._look()

    def may_send(self) -> bool:
        """Whether a request may leave now: never without a term. To be asked right before, without
        a wait in between."""
        self._look()
        has_term = self._epoch_zk_version is not None
        return has_term and not self._pauses.is_in_doubt and not self._is_fenced()

    async def wait(self, at_most_s: float) -> None:
        """Wait until it is worth asking again. The fence compares clocks, so for that there is no
        event; a proof is not waited for longer than needed."""
        if not self._pauses.is_in_doubt:
            await asyncio.sleep(at_most_s)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self._settled.wait()

    def _look_again(self) -> None:
        # First: an error in one look must not be the end of all, which would be taken for a pause.
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._look_again)
        self._look()

    def _look(self) -> None:
        slept_s = self._pauses.looked(self._clock())
        if slept_s is not None:
            self._settled.clear()
            if self._epoch_zk_version is not None:
                logger.info(
                    "This process has slept: nothing is sent until ZooKeeper has confirmed that it "
                    "is still the controller",
                    extra={"slept_ms": round(slept_s * 1000)},
                )
        if self._pauses.is_in_doubt and self._epoch_zk_version is not None and not self._is_proving:
            self._proving = asyncio.get_running_loop().create_task(self._prove())
            self._proving.add_done_callback(_log_defect)

    @property
    def _is_proving(self) -> bool:
        return self._proving is not None and not self._proving.done()

    async def _prove(self) -> None:
        """Ask until the doubt is over, or the term."""
        began = self._clock()
        while self._pauses.is_in_doubt and self._epoch_zk_version is not None:
            asked, version = self._pauses.count, self._epoch_zk_version
            is_controller = await self._ask(version)
            # It may have slept again, with the answer in its hands.
            self._pauses.looked(self._clock())
            if version != self._epoch_zk_version:
                continue
            if is_controller is None:
                await asyncio.sleep(RETRY_S)
            elif is_controller:
                self._pauses.proven(asked)
            else:
                self._epoch_zk_version = None
                logger.warning("Not the controller any more after a pause: nothing is sent")
        if not self._pauses.is_in_doubt:
            self._settled.set()
            took_ms = round((self._clock() - began) * 1000)
            logger.info("Still the controller after a pause", extra={"took_ms": took_ms})

    async def _ask(self, version: int) -> bool | None:
        """Whether the term with that version goes on; None: there was no answer."""
        try:
            results = await self._zookeeper.multi(checks_of_controller(version))
        except SessionExpiredError:
            return False
        except ZooKeeperError as error:
            logger.debug("No answer about the controller", extra={"reason": str(error)})
            return None
        return all(isinstance(result, Written) for result in results)


def _log_defect(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("A defect has ended a proof after a pause", exc_info=task.exception())
