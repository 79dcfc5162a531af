"""Keeps the standby's cache up to date, beside the controller and whoever that is.

Watches are set first, then everything is read, then what the watches report is read again: a short
pause after the first event, so that many changes are one request. After a lost connection, under a
new session and after a failed self-check everything is read again; what has not changed costs no
more than the reading. Servers without recursive watches (before 3.6) have no cache: a take-over
reads everything, as it does without the setting.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from regent.cluster.self_check import Difference
from regent.controller.state.standby_copy import StandbyCopy
from regent.model.cluster import Broker
from regent.model.errors import RecursiveWatchesUnsupportedError, ZooKeeperError
from regent.runtime.collector import Collector
from regent.runtime.ports import (
    BrokerChannelsPort,
    ConnectionsPort,
    RecursiveWatchesPort,
    ZooKeeperPort,
)
from regent.runtime.standby_reader import StandbyReader
from regent.standby.cache import StandbyCache
from regent.standby.status import StandbyPhase, StandbyStatus
from regent.zk_data.operations import SessionState

logger = logging.getLogger(__name__)

REFRESH_PAUSE_S: Final = 0.1
"""From an event to the reading. It decides how many changes become one request."""

SELF_CHECK_INTERVAL_S: Final = 600.0

RETRY_PAUSE_S: Final = 5.0
"""After what no reconnection explains: a right that is missing, for instance."""

UNSUPPORTED_PAUSE_S: Final = 60.0
"""Until servers that were too old may have been found upgraded. Looking costs no request."""

DEFECT_PAUSE_S: Final = 60.0
"""After an exception that nobody expects."""

_RECONNECTION_PAUSE_S: Final = 0.1
"""After a reading that a lost connection has ended: connections may come and go."""


class StandbyKeeper:
    """Belongs to the controller's loop, except :attr:`status`, which anybody may read.

    Args:
        zookeeper: Of the same session as ``watches``: the order of events and answers counts.
        watches: Nobody else uses them.
        channels: Are connected to the brokers that the cache has.
        collector: Is informed when a cluster was loaded.
        report: Is given the paths of nodes that differ, if a self-check finds some: a controller
            that has loaded the cache may be wrong about them, too.
        self_check_interval_s: How often the cache is compared with ZooKeeper.
    """

    def __init__(
        self,
        *,
        zookeeper: ZooKeeperPort,
        watches: RecursiveWatchesPort,
        channels: BrokerChannelsPort,
        collector: Collector,
        report: Callable[[Sequence[str]], None],
        self_check_interval_s: float = SELF_CHECK_INTERVAL_S,
    ) -> None:
        self._reader = StandbyReader(zookeeper=zookeeper, watches=watches, collector=collector)
        self._watches = watches
        self._channels = channels
        self._report = report
        self._connected_to: Mapping[int, Broker] | None = None
        self._self_check_interval_s = self_check_interval_s
        self._phase = StandbyPhase.DISCONNECTED
        self._problem: str | None = None
        self._connected = asyncio.Event()
        self._wake = asyncio.Event()
        self._is_unsupported_logged = False

    @classmethod
    def of(
        cls,
        connections: ConnectionsPort,
        collector: Collector,
        report: Callable[[Sequence[str]], None],
    ) -> StandbyKeeper:
        """The keeper for a controller's connections."""
        return cls(
            zookeeper=connections.zookeeper,
            watches=connections.recursive_watches,
            channels=connections.channels,
            collector=collector,
            report=report,
        )

    @property
    def cache(self) -> StandbyCache:
        """The present one; a self-check that finds a difference replaces it."""
        return self._reader.cache

    @property
    def status(self) -> StandbyStatus:
        """The numbers as they are."""
        reader = self._reader
        return StandbyStatus(
            phase=self._phase,
            znodes=reader.cache.znode_count,
            partitions=reader.cache.cluster.partition_count,
            dirty=reader.cache.dirty_count,
            malformed=len(reader.cache.malformed),
            is_prepared=reader.cache.is_prepared_for(self._channels.expected_protocol()),
            copies=reader.copies,
            refreshes=reader.refreshes,
            bytes_read=reader.bytes_read,
            loads=reader.loads,
            self_checks=reader.self_checks,
            differences=reader.differences,
            problem=self._problem,
        )

    def session_changed(self, state: SessionState) -> None:
        """The session of the ports is in another state."""
        self._reader.session_changed(is_new=state is SessionState.CONNECTED)
        if state in (SessionState.CONNECTED, SessionState.RECONNECTED):
            self._connected.set()
        else:
            self._connected.clear()
            self._phase = StandbyPhase.DISCONNECTED
        self._wake.set()

    async def read(self) -> StandbyCopy | None:
        """See :class:`~regent.runtime.ports.StandbyPort`."""
        copy = await self._reader.read()
        if copy is None:
            self._wake.set()  # it may have to be loaded anew
        return copy

    def resigned(self) -> None:
        """See :class:`~regent.runtime.ports.StandbyPort`."""
        self._reader.resigned()
        self._connected_to = None  # all channels are closed
        self._wake.set()

    async def check(self) -> list[Difference]:
        """Compare the cache with ZooKeeper, and say so if it differs."""
        return await self._reader.check()

    async def run(self) -> None:
        """Keep the cache until cancelled."""
        self._watches.listen(self._wake.set)
        self._channels.listen(self._wake.set)
        while True:
            await self._connected.wait()
            try:
                await self._load()
                await self._follow()
            except RecursiveWatchesUnsupportedError as error:
                self._do_without(error)
                await self._until_reconnected(timeout_s=UNSUPPORTED_PAUSE_S)
            except ZooKeeperError as error:
                if self._reader.has_missed():  # the connection was lost, which explains it
                    await asyncio.sleep(_RECONNECTION_PAUSE_S)
                    continue
                self._problem = str(error)
                logger.warning("The standby's cache cannot be kept", extra={"error": str(error)})
                self._reader.doubt()
                self._phase = StandbyPhase.DISCONNECTED
                await self._until_reconnected(timeout_s=RETRY_PAUSE_S)
            except Exception as error:  # the controller goes on without a standby
                logger.exception("A defect has ended the standby's cache; loading it anew later")
                self._problem = f"a defect: {error!r}"
                self._phase = StandbyPhase.DISCONNECTED
                self._reader.start_anew()
                await self._until_reconnected(timeout_s=DEFECT_PAUSE_S)

    def _do_without(self, error: RecursiveWatchesUnsupportedError) -> None:
        self._reader.start_anew()
        self._phase = StandbyPhase.UNSUPPORTED
        self._problem = str(error)
        if not self._is_unsupported_logged:
            self._is_unsupported_logged = True
            logger.warning(
                "No warm standby with these ZooKeeper servers",
                extra={"reason": str(error), "consequence": "a take-over reads everything"},
            )

    async def _until_reconnected(self, *, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not self._reader.has_missed():
                    self._wake.clear()
                    await self._wake.wait()
        except TimeoutError:
            pass

    async def _load(self) -> None:
        self._phase = StandbyPhase.LOADING
        began = time.monotonic()
        await self._reader.load()
        if not self._reader.is_current():
            return
        self._phase, self._problem = StandbyPhase.CURRENT, None
        cache = self._reader.cache
        logger.info(
            "The standby's cache is current",
            extra={
                "znodes": cache.znode_count,
                "partitions": cache.cluster.partition_count,
                "took_ms": round((time.monotonic() - began) * 1000),
            },
        )

    async def _follow(self) -> None:
        """Read what events report, until the connection is lost, or the cache turns out wrong."""
        next_check = time.monotonic() + self._self_check_interval_s
        while self._reader.is_current():
            self._connect()
            await self._prepare()
            await self._event(until=next_check)
            if not self._reader.is_current():
                return
            await self._reader.refresh()
            if time.monotonic() >= next_check:
                if differences := await self._reader.check():
                    self._reader.start_anew()
                    self._report([difference.path for difference in differences])
                next_check = time.monotonic() + self._self_check_interval_s

    def _connect(self) -> None:
        """Have connections to the brokers that there are now."""
        brokers = self.cache.cluster.brokers  # another mapping after each change
        if brokers is not self._connected_to:
            self._connected_to = brokers
            self._channels.stand_by(brokers.values())

    async def _prepare(self) -> None:
        """Prepare what a take-over sends, until it is done or an event comes; some in any case."""
        while self._reader.prepare(self._channels.expected_protocol()):
            if self._wake.is_set():
                return
            await asyncio.sleep(0)

    async def _event(self, *, until: float) -> None:
        """Wait for an event or a broker's report, and a little longer for others. What is dirty is
        not waited for."""
        if self._reader.cache.dirty_count:
            return
        try:
            async with asyncio.timeout(max(until - time.monotonic(), 0)):
                await self._wake.wait()
        except TimeoutError:
            return
        await asyncio.sleep(REFRESH_PAUSE_S)
        self._wake.clear()
