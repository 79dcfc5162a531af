"""ZooKeeper for the controller: ``ZooKeeperPort`` over a kazoo session.

**Reads** go out as MultiRead requests of some hundreds of paths, which cannot leave watches; for
many nodes a SetWatches does that afterwards. Where that does not do (children are to be watched, or
the servers are older than 3.6), reads are pipelined one by one.

**Writes** go out as multis of many operations behind one check of the controller epoch. A multi
fails as a whole, and the server names the operation at fault: that one's result is settled,
and the operations before it and after it are sent again as two multis. When many of a chunk
conflict, the rest of it is sent one by one, each behind its own check.

After a lost connection a write is sent again, and a write that had in fact succeeded then reports
``BAD_VERSION``, ``NODE_EXISTS`` or ``NO_NODE``. Callers find out by reading, as in Kafka.

**Watches** are one-shot and reported to one callback. kazoo keeps a *set* of callables per path and
kind; there being only one callable, reading a path twice does not report its change twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, cast

from kazoo.protocol import states
from kazoo.protocol.serialization import GetChildren

from regent.model.errors import ZooKeeperUnavailableError
from regent.zk_data.operations import (
    Check,
    DatedZNode,
    Operation,
    WatchedEvent,
    WatchedEventType,
    WriteResult,
    Written,
    ZkError,
    ZNode,
)
from regent.zookeeper.answering import post
from regent.zookeeper.errors import EXPECTED, code_of, unexpected
from regent.zookeeper.generation import is_repeatable
from regent.zookeeper.kazoo_client import access_control_list
from regent.zookeeper.multi_read import GET_CHILDREN, GET_DATA
from regent.zookeeper.multi_write import MultiWrite, serialize_acl
from regent.zookeeper.reads import (
    BulkReadsUnsupportedError,
    exist_in_bulk,
    exist_one_by_one,
    get_dated,
    get_one_by_one,
    read_and_watch,
    read_in_bulk,
    read_one_by_one,
)
from regent.zookeeper.session import ZooKeeperSession
from regent.zookeeper.writes import GuardedWrite, RefusalLog, culprit_of, too_large

WATCHES_ONE_BY_ONE_MAX: Final = 32
"""Up to so many nodes, reading and watching each takes less than the round trips of the rest."""

EXISTENCE_ONE_BY_ONE_MAX: Final = 32
"""Up to so many nodes are asked for one by one: in bulk their children are listed, too, of which
those that are asked for in small numbers have many."""

WatchListener = Callable[[WatchedEvent], None]

_EVENT_TYPES: Final = {
    states.EventType.CREATED: WatchedEventType.NODE_CREATED,
    states.EventType.DELETED: WatchedEventType.NODE_DELETED,
    states.EventType.CHANGED: WatchedEventType.NODE_DATA_CHANGED,
    states.EventType.CHILD: WatchedEventType.NODE_CHILDREN_CHANGED,
}


class KazooZooKeeper:
    """``ZooKeeperPort`` over a session, for one asyncio loop.

    Args:
        session: Started by the caller.
        on_watch: Called in the loop when a watch has fired. That watches were lost with the
            connection is not reported here: the session's RECONNECTED and EXPIRED say so.
    """

    def __init__(self, session: ZooKeeperSession, *, on_watch: WatchListener) -> None:
        self._session = session
        self._on_watch = on_watch
        self._chroot = session.settings.chroot
        self._acl = serialize_acl(access_control_list(session.settings))
        self._sensitive_acl = serialize_acl(
            access_control_list(session.settings, is_sensitive=True)
        )
        self._refusals = RefusalLog()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last_event: states.WatchedEvent | None = None

    @property
    def session_id(self) -> int:
        return self._session.session_id

    async def get_data(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[ZNode | None]:
        generation = self._session.generation()
        watcher = self._watcher(watch)
        if generation.has_bulk_reads:
            try:
                if watcher is None:
                    nodes = await read_in_bulk(generation, paths, GET_DATA)
                    return cast("list[ZNode | None]", nodes)
                if len(paths) > WATCHES_ONE_BY_ONE_MAX:
                    return await read_and_watch(generation, paths, watcher)
            except BulkReadsUnsupportedError:
                generation.has_bulk_reads = False  # reconnected to an older server
        return await get_one_by_one(generation, paths, watcher)

    async def get_dated(self, paths: Sequence[str]) -> Sequence[DatedZNode | None]:
        """Some nodes with the times of their creation and last change. Not in the port: a
        controller decides nothing by the clock of ZooKeeper's servers."""
        return await get_dated(self._session.generation(), paths)

    async def get_children(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[tuple[str, ...] | None]:
        generation = self._session.generation()
        if generation.has_bulk_reads and not watch:
            try:
                children = await read_in_bulk(generation, paths, GET_CHILDREN)
                return cast("list[tuple[str, ...] | None]", children)
            except BulkReadsUnsupportedError:
                generation.has_bulk_reads = False
        watcher = self._watcher(watch)
        requests = [GetChildren(generation.absolute(path), watcher) for path in paths]
        answers = await read_one_by_one(generation, requests, paths)
        return [
            None if answer is None else tuple(sorted(cast("list[str]", answer)))
            for answer in answers
        ]

    async def exists(self, paths: Sequence[str], *, watch: bool = False) -> Sequence[bool]:
        generation = self._session.generation()
        if generation.has_bulk_reads and not watch and len(paths) > EXISTENCE_ONE_BY_ONE_MAX:
            try:
                return await exist_in_bulk(generation, paths)
            except BulkReadsUnsupportedError:
                generation.has_bulk_reads = False
        return await exist_one_by_one(generation, paths, self._watcher(watch))

    async def multi(self, operations: Sequence[Operation]) -> Sequence[WriteResult]:
        generation = self._session.generation()
        if not operations:
            return []
        request = MultiWrite(
            operations, chroot=self._chroot, acl=self._acl, sensitive_acl=self._sensitive_acl
        )
        if request.size > self._session.settings.jute_max_buffer:
            return too_large(operations)
        await generation.connection()
        if all(isinstance(operation, Check) for operation in operations):
            answer = await generation.call_at_once(request)
        else:
            (answer,) = await generation.call([request])
        if isinstance(answer, Exception):
            if is_repeatable(answer):
                raise ZooKeeperUnavailableError(
                    "the connection was lost: the transaction may have taken place or not"
                ) from answer
            raise unexpected(code_of(answer), operations[0].path) from answer
        assert isinstance(answer, list)
        culprit = culprit_of(answer)
        if culprit is None:
            return cast("list[Written]", answer)
        position, code = culprit
        if code not in EXPECTED:
            raise unexpected(code, operations[position].path)
        results: list[WriteResult] = [ZkError.ROLLED_BACK] * len(operations)
        results[position] = EXPECTED[code]
        return results

    async def write(
        self, operations: Sequence[Operation], *, guard: Check, divides: bool = True
    ) -> Sequence[WriteResult]:
        write = GuardedWrite(
            self._session.generation(),
            operations,
            guard=guard,
            divides=divides,
            chroot=self._chroot,
            acl=self._acl,
            sensitive_acl=self._sensitive_acl,
            refusals=self._refusals,
        )
        return await write.results()

    def _watcher(self, watch: bool) -> Callable[[states.WatchedEvent], None] | None:
        if not watch:
            return None
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._watch_fired

    def _watch_fired(self, event: states.WatchedEvent) -> None:
        """In kazoo's connection thread."""
        if event.type == states.EventType.NONE:
            return  # the connection is lost, and with it the watch
        if event is self._last_event:
            return  # one deletion, reported to the data watch and to the child watch
        self._last_event = event
        path = event.path[len(self._chroot) :] or "/"
        assert self._loop is not None
        post(self._loop, self._on_watch, WatchedEvent(_EVENT_TYPES[event.type], path))
