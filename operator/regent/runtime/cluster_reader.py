"""Reads what a copy of the cluster needs, each time it is asked to: without a clock, and without a
loop of its own. Others decide when to read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from regent.cluster.cache import AnyClusterCache
from regent.cluster.reads import LISTED, WATCHED, Listing, Reads
from regent.cluster.self_check import Difference, compare, reads_to_compare
from regent.runtime.collector import Collector
from regent.runtime.ports import RecursiveWatchesPort, ZooKeeperPort
from regent.zk_data.operations import ZNode
from regent.zk_data.permitted_reads import UnreadableZNode, read_in_parts

logger = logging.getLogger(__name__)

READ_AT_ONCE: Final = 2_000
"""Nodes that are taken over without letting go of the loop: some 10 ms."""

_EXAMPLES: Final = 10

CacheT = TypeVar("CacheT", bound=AnyClusterCache)


class ClusterReader(Generic[CacheT]):
    """A cache, and the readings that it needs.

    Attributes:
        cache: The present one; :meth:`start_anew` replaces it.
        refreshes: Readings so far.
        bytes_read: Data that they have brought, in bytes.
        loads: How often everything was read.
        self_checks: How often the cache was compared with ZooKeeper.
        differences: Nodes that differed then.

    Args:
        zookeeper: The port of the session of ``watches``: the order of events and answers counts.
        watches: Only this reader uses them.
        collector: Does not look at the first content of a cache.
        new_cache: Makes an empty cache.
    """

    def __init__(
        self,
        *,
        zookeeper: ZooKeeperPort,
        watches: RecursiveWatchesPort,
        collector: Collector,
        new_cache: Callable[[], CacheT],
    ) -> None:
        self._new_cache = new_cache
        self.cache = new_cache()
        self._is_current = False
        self._is_hidden = False
        self.refreshes = 0
        self.bytes_read = 0
        self.loads = 0
        self.self_checks = 0
        self.differences = 0
        self._zookeeper = zookeeper
        self._watches = watches
        self._collector = collector
        self._may_have_missed = True
        self._is_other_history = False
        self._are_watches_known = False
        self._is_checking = False
        self._reading = asyncio.Lock()

    def session_changed(self, *, is_new: bool) -> None:
        """The session of the ports is in another state: events may have been lost.

        Args:
            is_new: It is another session, which may be that of another history (a restored backup).
                Transactions there have the numbers of others, and what has not changed is known by
                these. So nothing that is known counts.
        """
        self._may_have_missed = True
        self._is_current = False
        self._is_other_history |= is_new

    def is_current(self) -> bool:
        """Whether everything was read, and no event can have been lost since the watches were set.
        Changes that events report are read later. If not, a new :meth:`load` is needed."""
        return self._is_current

    def has_missed(self) -> bool:
        """Whether events may have been lost since the watches were last set."""
        return self._may_have_missed

    def doubt(self) -> None:
        """The cache is outdated: a copy is available only after the next :meth:`load`."""
        self._is_current = False

    def start_anew(self) -> None:
        """Forget the whole cache. The next :meth:`load` fills a new one."""
        self.cache = self._new_cache()
        self._is_current = self._is_hidden = False

    async def load(self) -> None:
        """Set the watches, and read whatever may have changed before they stood."""
        self._may_have_missed = self._is_current = False  # from now on
        if self._are_watches_known:
            await self._watches.restore()
        else:
            await self._watches.add(WATCHED)
            self._are_watches_known = True
        await self.read_everything()
        self.loads += 1
        if not self._is_hidden:  # once: after each reconnection, its garbage would stay forever
            self._collector.freeze()
            self._is_hidden = True
        self._is_current = not self.has_missed()

    async def read_everything(self) -> None:
        """Read all that there is, and all that is known, once. Needs no watches."""
        if self._is_other_history:
            self._is_other_history = False
            self.cache = self._new_cache()
        self.cache.expect_anything(await self._list())
        await self.catch_up()

    async def refresh(self) -> bool:
        """Read the next dirty nodes; whether there were some."""
        async with self._reading:
            self._observe()
            return await self._read_dirty()

    async def catch_up(self) -> None:
        """Read whatever is dirty. Ends, too, where changes keep coming: at the first reading that
        has left nothing for the next one."""
        while await self.refresh() and self.cache.dirty_count:
            pass

    def _observe(self) -> None:
        self.cache.observe(self._watches.take())

    async def _read_dirty(self) -> bool:
        cache = self.cache
        reads = cache.next_reads(READ_AT_ONCE)
        if not reads:
            return False
        try:
            nodes = await self._read(reads)
        except BaseException:
            cache.put_back(reads)
            raise
        with self._collector.paused():
            cache.apply(reads, nodes)
        self.refreshes += 1
        self.bytes_read += sum(
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
        cache, self._is_checking = self.cache, True
        self._observe()
        listing = await self._list()
        found: list[Difference] = []
        for reads in reads_to_compare(self.cache, listing, most=READ_AT_ONCE):
            await self.catch_up()
            nodes = await self._read(reads)
            # Events of changes before the answer have arrived before the answer.
            self._observe()
            if self.cache is not cache or not self._is_checking or self.has_missed():
                return []
            found += compare(cache, reads, nodes)
        self.self_checks += 1
        if found:
            self.differences += len(found)
            logger.error(
                "The copy of the cluster differs from ZooKeeper; loading it anew",
                extra={
                    "znodes": len(found),
                    "examples": [difference._asdict() for difference in found[:_EXAMPLES]],
                },
            )
        return found

    def end_check(self) -> None:
        """End a self-check: another reading begins, so its answers may be older than the cache."""
        self._is_checking = False
