"""An ensemble whose servers lag behind, and the client of a cache: every step is the test's.

A server applies the leader's transactions in order, some time later. What it sends to a client is
in the order in which it happens there: events of the transactions that it applies, answers to the
requests that it takes from the connection. A client may lose its connection, and what is under way
with it, at any time; a server accepts a session only if it has applied what the client has seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from regent.cluster.reads import LISTED, WATCHED, Listing, Reads
from regent.cluster.self_check import Difference, compare, reads_to_compare
from regent.simulation.zookeeper_tree import ZNodeTree
from regent.standby.cache import StandbyCache
from regent.zk_data.operations import Operation, WatchedEventType, ZNode

CHUNK: Final = 2
"""Paths that a server reads at once: those of one request, at different times."""

Tree = Mapping[str, ZNode]


class Answer(NamedTuple):
    """What a server has read, with all that it had then and the number of its transactions."""

    nodes: tuple[ZNode | None, ...]
    tree: Tree
    position: int


@dataclass
class Server:
    """One server: the transactions that it has applied, and its client's connection."""

    tree: ZNodeTree = field(default_factory=ZNodeTree)
    position: int = 0
    is_watched: bool = False
    requests: deque[Sequence[str] | None] = field(default_factory=deque)
    sent: deque[str | Answer] = field(default_factory=deque)

    def forget_client(self) -> None:
        self.is_watched = False
        self.requests.clear()
        self.sent.clear()

    def dump(self) -> Tree:
        return {path: node.as_znode() for path, node in self.tree.walk()}

    def apply(self, operations: Sequence[Operation]) -> None:
        """The next transaction of the leader's log."""
        self.position += 1
        committed = self.tree.commit(operations, zxid=self.position, session_id=0)
        assert committed.is_applied
        for change in committed.changes:
            is_below = change.path.startswith(tuple(f"{path}/" for path in WATCHED))
            if (
                self.is_watched
                and is_below
                and change.type is not WatchedEventType.NODE_CHILDREN_CHANGED
            ):
                self.sent.append(change.path)

    def serve(self) -> None:
        """Take the next request: paths to be read; None: set the watches."""
        paths = self.requests.popleft()
        if paths is None:
            self.is_watched = True
            paths = ()
        nodes = tuple(None if n is None else n.as_znode() for n in map(self.tree.find, paths))
        self.sent.append(Answer(nodes, self.dump(), self.position))


class Ensemble:
    """The leader's log, and servers that follow it."""

    def __init__(self, size: int) -> None:
        self.leader = Server()
        self.log: list[Sequence[Operation]] = []
        self.servers = [Server() for _ in range(size)]

    def commit(self, operations: Sequence[Operation]) -> bool:
        """A transaction; whether it was one that could be."""
        zxid = len(self.log) + 1
        is_applied = self.leader.tree.commit(operations, zxid=zxid, session_id=0).is_applied
        if is_applied:
            self.log.append(operations)
        return is_applied

    def advance(self, server: Server) -> bool:
        """Let a server apply one transaction; whether there was one."""
        if server.position == len(self.log):
            return False
        server.apply(self.log[server.position])
        return True


class CacheClient:
    """Keeps a cache as the keeper in the runtime does, one message at a time."""

    def __init__(self, ensemble: Ensemble, *, most: int) -> None:
        self.cache = StandbyCache()
        self.checked = 0
        self._ensemble = ensemble
        self._most = most
        self._server: Server | None = None
        self._seen = 0
        self._listing: Listing | None = None
        self._reads: Reads | None = None
        self._nodes: list[ZNode | None] = []
        self._expected = 0

    @property
    def server(self) -> Server | None:
        return self._server

    @property
    def is_settled(self) -> bool:
        """Whether nothing is asked for, and nothing has to be."""
        return self._server is not None and not self._expected and not self.cache.dirty_count

    def connect(self, server: Server, *, is_new_session: bool) -> bool:
        """Find a server, under the old session or a new one; whether it accepts that."""
        self.disconnect()
        if not is_new_session and server.position < self._seen:
            return False
        self._server, self._seen, self._listing = server, server.position, None
        self._ask([None])
        return True

    def disconnect(self) -> None:
        """Lose the connection, and what is under way."""
        if self._server is not None:
            self._server.forget_client()
        self._server, self._expected, self._nodes = None, 0, []
        if self._reads is not None:
            self.cache.put_back(self._reads)
            self._reads = None

    def receive(self) -> list[Difference]:
        """Take the next message. What is not dirty must be as it was at the server then: returns
        where it is not."""
        assert self._server is not None
        message = self._server.sent.popleft()
        if isinstance(message, str):
            self.cache.observe([message])
            return []
        self._seen = max(self._seen, message.position)
        self._nodes += message.nodes
        self._expected -= 1
        if self._expected:
            return []
        nodes, self._nodes = self._nodes, []
        if self._listing is None:  # the watches stand: whatever comes from now on is reported
            self._listing = listing_of(message.tree)
            self.cache.expect_anything(self._listing)
        elif self._reads is not None:
            reads, self._reads = self._reads, None
            self.cache.apply(reads, nodes)
        differences = self.differences(message.tree)
        self.read()
        return differences

    def read(self) -> None:
        """Ask for what is dirty, unless that is under way or the watches do not stand yet."""
        if self._listing is None or self._reads is not None or not self.cache.dirty_count:
            return
        self._reads = self.cache.next_reads(self._most)
        paths = self._reads.paths
        self._ask([paths[start : start + CHUNK] for start in range(0, len(paths), CHUNK)])

    def differences(self, tree: Tree) -> list[Difference]:
        """The self-check, against all that a server had."""
        self.checked += 1
        return differences(self.cache, tree)

    def _ask(self, requests: Sequence[Sequence[str] | None]) -> None:
        assert self._server is not None
        self._server.requests.extend(requests)
        self._expected += len(requests)


def listing_of(tree: Tree) -> Listing:
    """The children of the paths that are listed."""
    return Listing.of(
        [
            [path.removeprefix(f"{parent}/") for path in tree if path.rpartition("/")[0] == parent]
            for parent in LISTED
        ]
    )


def differences(cache: StandbyCache, tree: Tree) -> list[Difference]:
    """What the self-check finds."""
    return [
        difference
        for reads in reads_to_compare(cache, listing_of(tree), most=3)
        for difference in compare(cache, reads, [tree.get(path) for path in reads.paths])
    ]


def cold(tree: Tree) -> StandbyCache:
    """A cache that has read everything once."""
    cache = StandbyCache()
    cache.expect_anything(listing_of(tree))
    while reads := cache.next_reads(1_000):
        cache.apply(reads, [tree.get(path) for path in reads.paths])
    return cache
