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
from collections.abc import Sequence
from typing import Final

from regent.model.errors import RecursiveWatchesUnsupportedError, ZooKeeperError
from regent.runtime.collector import Collector
from regent.runtime.ports import ConnectionsPort, RecursiveWatchesPort, ZooKeeperPort
from regent.standby.cache import StandbyCache
from regent.standby.reads import LISTED, WATCHED, Listing, Reads
from regent.standby.self_check import Difference, compare, reads_to_compare
from regent.standby.status import StandbyPhase, StandbyStatus
from regent.zk_data.operations import SessionState, ZNode
from regent.zk_data.permitted_reads import UnreadableZNode, read_in_parts

logger = logging.getLogger(__name__)

READ_AT_ONCE: Final = 2_000
"""Nodes that are taken over without letting go of the loop: some 10 ms."""

REFRESH_PAUSE_S: Final = 0.1
"""From an event to the reading. It decides how many changes become one request."""

SELF_CHECK_INTERVAL_S: Final = 600.0

RETRY_PAUSE_S: Final = 5.0
"""After what no reconnection explains: a right that is missing, for instance."""

DEFECT_PAUSE_S: Final = 60.0
"""After an exception that nobody expects."""

_RECONNECTION_PAUSE_S: Final = 0.1
"""After a reading that a lost connection has ended: connections may come and go."""

_EXAMPLES: Final = 10


class StandbyKeeper:
    """Belongs to the controller's loop, except :attr:`status`, which anybody may read.

    Attributes:
        cache: The present one; a self-check that finds a difference replaces it.

    Args:
        zookeeper: Of the same session as ``watches``: the order of events and answers counts.
        watches: Nobody else uses them.
        collector: Is told when a cluster was loaded.
        self_check_interval_s: How often the cache is compared with ZooKeeper.
    """

    def __init__(
        self,
        *,
        zookeeper: ZooKeeperPort,
        watches: RecursiveWatchesPort,
        collector: Collector,
        self_check_interval_s: float = SELF_CHECK_INTERVAL_S,
    ) -> None:
        self.cache = StandbyCache()
        self._zookeeper = zookeeper
        self._watches = watches
        self._collector = collector
        self._self_check_interval_s = self_check_interval_s
        self._phase = StandbyPhase.DISCONNECTED
        self._problem: str | None = None
        self._connected = asyncio.Event()
        self._wake = asyncio.Event()
        self._may_have_missed = True
        self._are_watches_known = False
        self._is_unsupported_logged = False
        self._refreshes = 0
        self._bytes_read = 0
        self._loads = 0
        self._self_checks = 0
        self._differences = 0

    @classmethod
    def of(cls, connections: ConnectionsPort, collector: Collector) -> StandbyKeeper:
        """The keeper for a controller's connections."""
        return cls(
            zookeeper=connections.zookeeper,
            watches=connections.recursive_watches,
            collector=collector,
        )

    @property
    def status(self) -> StandbyStatus:
        """The numbers as they are."""
        cache = self.cache
        return StandbyStatus(
            phase=self._phase,
            znodes=cache.znode_count,
            partitions=cache.cluster.partition_count,
            dirty=cache.dirty_count,
            malformed=len(cache.malformed),
            refreshes=self._refreshes,
            bytes_read=self._bytes_read,
            loads=self._loads,
            self_checks=self._self_checks,
            differences=self._differences,
            problem=self._problem,
        )

    def session_changed(self, state: SessionState) -> None:
        """The session of the ports is in another state."""
        self._may_have_missed = True
        if state in (SessionState.CONNECTED, SessionState.RECONNECTED):
            self._connected.set()
        else:
            self._connected.clear()
            self._phase = StandbyPhase.DISCONNECTED
        self._wake.set()

    async def run(self) -> None:
        """Keep the cache until cancelled."""
        self._watches.listen(self._wake.set)
        while True:
            await self._connected.wait()
            self._may_have_missed = False  # from now on
            try:
                await self._load()
                await self._follow()
            except RecursiveWatchesUnsupportedError as error:
                self._do_without(error)
                await self._until_reconnected()
            except ZooKeeperError as error:
                self._problem = str(error)
                if self._has_missed():  # the connection was lost, which explains it
                    await asyncio.sleep(_RECONNECTION_PAUSE_S)
                    continue
                logger.warning("The standby's cache cannot be kept", extra={"error": str(error)})
                self._phase = StandbyPhase.DISCONNECTED
                await self._until_reconnected(timeout_s=RETRY_PAUSE_S)
            except Exception as error:  # the controller goes on without a standby
                logger.exception("A defect has ended the standby's cache; loading it anew later")
                self._problem = f"a defect: {error!r}"
                self._phase = StandbyPhase.DISCONNECTED
                self.cache = StandbyCache()
                await self._until_reconnected(timeout_s=DEFECT_PAUSE_S)

    def _has_missed(self) -> bool:
        """Whether events may have been lost since the watches were last set."""
        return self._may_have_missed

    def _do_without(self, error: RecursiveWatchesUnsupportedError) -> None:
        self.cache = StandbyCache()
        self._phase = StandbyPhase.UNSUPPORTED
        self._problem = str(error)
        if not self._is_unsupported_logged:
            self._is_unsupported_logged = True
            logger.warning(
                "No warm standby with these ZooKeeper servers",
                extra={"reason": str(error), "consequence": "a take-over reads everything"},
            )

    async def _until_reconnected(self, *, timeout_s: float | None = None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not self._has_missed():
                    self._wake.clear()
                    await self._wake.wait()
        except TimeoutError:
            pass

    # Reading

    async def _load(self) -> None:
        """Set the watches, and read whatever may have changed before they stood."""
        self._phase = StandbyPhase.LOADING
        began = time.monotonic()
        if self._are_watches_known:
            await self._watches.restore()
        else:
            await self._watches.add(WATCHED)
            self._are_watches_known = True
        self.cache.expect_anything(await self._list())
        await self._catch_up()
        self._loads += 1
        self._collector.freeze()
        if self._has_missed():
            return
        self._phase, self._problem = StandbyPhase.CURRENT, None
        logger.info(
            "The standby's cache is current",
            extra={
                "znodes": self.cache.znode_count,
                "partitions": self.cache.cluster.partition_count,
                "took_ms": round((time.monotonic() - began) * 1000),
            },
        )

    async def _follow(self) -> None:
        """Read what events report, until the connection is lost."""
        next_check = time.monotonic() + self._self_check_interval_s
        while not self._has_missed():
            await self._event(until=next_check)
            if self._has_missed():
                return
            await self._refresh()
            if time.monotonic() >= next_check:
                if await self.check():
                    await self._load_anew()
                next_check = time.monotonic() + self._self_check_interval_s

    async def _event(self, *, until: float) -> None:
        """Wait for an event, and a little longer for others. What is dirty is not waited for."""
        if self.cache.dirty_count:
            return
        try:
            async with asyncio.timeout(max(until - time.monotonic(), 0)):
                await self._wake.wait()
        except TimeoutError:
            return
        await asyncio.sleep(REFRESH_PAUSE_S)
        self._wake.clear()

    async def _catch_up(self) -> None:
        """Read whatever is dirty. Ends, too, where changes keep coming: at the first reading that
        has left nothing for the next one."""
        while await self._refresh() and self.cache.dirty_count:
            pass

    async def _refresh(self) -> bool:
        """Read the next dirty nodes; whether there were some."""
        self.cache.observe(self._watches.take())
        reads = self.cache.next_reads(READ_AT_ONCE)
        if not reads:
            return False
        try:
            nodes = await self._read(reads)
        except BaseException:
            self.cache.put_back(reads)
            raise
        with self._collector.paused():
            self.cache.apply(reads, nodes)
        self._refreshes += 1
        self._bytes_read += sum(
            len(node[0]) for node in nodes if node is not None and node.mzxid >= 0
        )
        return True

    async def _list(self) -> Listing:
        return Listing.of(await self._zookeeper.get_children(LISTED))

    async def _read(self, reads: Reads) -> Sequence[ZNode | None]:
        return await read_in_parts(reads.paths, self._zookeeper.get_data, UnreadableZNode.at)

    # The self-check

    async def check(self) -> list[Difference]:
        """Compare the cache with ZooKeeper, and say so if it differs."""
        self.cache.observe(self._watches.take())
        listing = await self._list()
        found: list[Difference] = []
        for reads in reads_to_compare(self.cache, listing, most=READ_AT_ONCE):
            await self._catch_up()
            nodes = await self._read(reads)
            # What has changed before the answer has come before it.
            self.cache.observe(self._watches.take())
            if self._has_missed():
                return []  # everything is read again anyway
            found += compare(self.cache, reads, nodes)
        self._self_checks += 1
        if found:
            self._differences += len(found)
            logger.error(
                "The standby's cache differs from ZooKeeper; loading it anew",
                extra={
                    "znodes": len(found),
                    "examples": [difference._asdict() for difference in found[:_EXAMPLES]],
                },
            )
        return found

    async def _load_anew(self) -> None:
        self.cache = StandbyCache()
        await self._load()
