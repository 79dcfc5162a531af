"""The reader of a standby's copy of the cluster, which a take-over asks for it."""

from __future__ import annotations

import logging
from typing import Final

from regent.controller.state.standby_copy import StandbyCopy
from regent.model.errors import ZooKeeperError
from regent.runtime.cluster_reader import ClusterReader
from regent.runtime.collector import Collector
from regent.runtime.ports import RecursiveWatchesPort, ZooKeeperPort
from regent.standby.cache import StandbyCache

logger = logging.getLogger(__name__)

PREPARED_AT_ONCE: Final = 2_000
"""Partitions that are prepared without letting go of the loop: some 10 ms."""


class StandbyReader(ClusterReader[StandbyCache]):
    """Reads the copy, and gives it to the controller.

    Attributes:
        copies: How many take-overs have had a copy.
    """

    def __init__(
        self, *, zookeeper: ZooKeeperPort, watches: RecursiveWatchesPort, collector: Collector
    ) -> None:
        super().__init__(
            zookeeper=zookeeper, watches=watches, collector=collector, new_cache=StandbyCache
        )
        self.copies = 0
        self._is_taken_over = False

    def prepare(self, protocol: tuple[int, int] | None) -> bool:
        """Make some of what a take-over sends brokers; whether more is to be made. After a
        take-over there is nothing to prepare for until :meth:`resigned`."""
        if self._is_taken_over or not self._is_current:
            return False
        return self.cache.prepare(PREPARED_AT_ONCE, protocol=protocol)

    def resigned(self) -> None:
        """This process is not the controller any more: it may have to take over again."""
        self._is_taken_over = False

    async def read(self) -> StandbyCopy | None:
        """See :class:`~regent.runtime.ports.StandbyPort`.

        What is dirty now is read; what becomes dirty meanwhile is not waited for. That has happened
        later, and is reported to the controller as after any reading.
        """
        self._is_taken_over = True
        if not self.is_current():
            return None
        try:
            async with self._reading:
                self.end_check()
                self._observe()
                self.cache.expect_corrections()
                while self.is_current() and await self._read_dirty():
                    pass
                self.copies += self.is_current()
                return self.cache.copy() if self.is_current() else None
        except ZooKeeperError as error:
            logger.warning(
                "The standby's cache cannot be brought up to date, reading everything",
                extra={"error": str(error)},
            )
        except Exception:  # the controller goes on without a standby
            logger.exception("A defect of the standby's cache; reading everything")
            self.start_anew()
        return None
