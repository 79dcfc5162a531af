"""A deterministic in-memory ZooKeeper, as a client sees it through kazoo.

No threads, no event loop, no clock: a call is carried out at once, and what ZooKeeper tells a
client unasked (watches, session states) waits in the client's queue until somebody takes it. A
session ends on command.

The suite in ``tests/contract`` holds it against a real server. Known differences: nothing is ever
reordered or stale, ACLs do not exist, and ``write`` applies its operations in one transaction each,
or in small ones if it is not to divide them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from regent.model.errors import (
    ControllerMovedError,
    SessionExpiredError,
    ZooKeeperUnavailableError,
)
from regent.simulation.zookeeper_tree import Change, Committed, Node, ZNodeTree, split
from regent.zk_data.operations import (
    DEFAULT_JUTE_MAX_BUFFER,
    Check,
    Create,
    Delete,
    Operation,
    SessionState,
    WatchedEvent,
    WatchedEventType,
    WriteResult,
    Written,
    ZkError,
    ZNode,
    operation_size,
)

Event = WatchedEvent | SessionState

UNDIVIDED_OPERATIONS = 3
"""Operations in a transaction of a ``write`` that is not divided: several are needed at once."""


class AppliedTransaction(NamedTuple):
    """A transaction that changed the tree, for invariant checkers.

    Attributes:
        session_id: Who did it. The end of a session deletes its ephemeral nodes in its own name.
        operations: As applied: sequential nodes have their numbers, paths are absolute.
    """

    session_id: int
    operations: tuple[Operation, ...]
    zxid: int


TransactionHook = Callable[[AppliedTransaction], None]


class InMemoryZooKeeper:
    """The server. Clients come from :meth:`connect`."""

    def __init__(self) -> None:
        self._tree = ZNodeTree()
        self._zxid = 0
        self._last_session_id = 0
        self._hooks: list[TransactionHook] = []
        self._owners: dict[int, InMemoryClient] = {}
        self._watching: dict[InMemoryClient, None] = {}
        self._ephemerals: dict[int, dict[str, None]] = {}

    def connect(self, *, chroot: str = "") -> InMemoryClient:
        """A client with a new session. The chroot is created if it is missing."""
        client = InMemoryClient(self, chroot=chroot)
        client.reconnect()
        return client

    def on_transaction(self, hook: TransactionHook) -> None:
        """Call ``hook`` after each transaction that changed the tree, before anyone is notified."""
        self._hooks.append(hook)

    @property
    def zxid(self) -> int:
        """Number of the last transaction, failed ones included, as in ZooKeeper."""
        return self._zxid

    def get(self, path: str) -> ZNode | None:
        """A node, whatever the sessions; for checkers and tests."""
        node = self._tree.find(path)
        return None if node is None else node.as_znode()

    def children(self, path: str) -> tuple[str, ...]:
        """Sorted names of a node's children; empty if there is no node."""
        node = self._tree.find(path)
        return () if node is None else tuple(sorted(node.children))

    def dump(self) -> dict[str, ZNode]:
        """Every node but the root by path, in the order of the paths' components."""
        return {path: node.as_znode() for path, node in self._tree.walk()}

    def is_alive(self, session_id: int) -> bool:
        """Whether the session exists, whatever its client believes."""
        return session_id in self._owners

    def expire(self, session_id: int) -> None:
        """End a session as the server does: its ephemeral nodes vanish, its connection breaks.

        The client sees a lost connection and learns the rest when it reconnects.
        """
        client = self._owners[session_id]
        self._end(session_id)
        client.disconnect()

    # What clients call.

    def open_session(self, client: InMemoryClient) -> int:
        self._last_session_id += 1
        self._zxid += 1
        self._owners[self._last_session_id] = client
        return self._last_session_id

    def watches(self, client: InMemoryClient) -> None:
        """The client has left a watch: it is to be notified of changes."""
        self._watching[client] = None

    def close_session(self, session_id: int) -> None:
        if session_id in self._owners:
            self._end(session_id)

    def find(self, path: str) -> Node | None:
        return self._tree.find(path)

    def commit(self, operations: Sequence[Operation], *, session_id: int) -> Committed:
        self._zxid += 1
        committed = self._tree.commit(operations, zxid=self._zxid, session_id=session_id)
        self._note_ephemerals(committed.operations, session_id)
        if committed.is_applied and any(not isinstance(op, Check) for op in operations):
            for hook in self._hooks:
                hook(AppliedTransaction(session_id, committed.operations, self._zxid))
        for change in committed.changes:
            for client in self._watching:
                client.notify(change)
        return committed

    def _note_ephemerals(self, operations: Sequence[Operation], session_id: int) -> None:
        for operation in operations:
            match operation:
                case Create(ephemeral=True):
                    self._ephemerals.setdefault(session_id, {})[operation.path] = None
                case Delete():
                    for owned in self._ephemerals.values():
                        owned.pop(operation.path, None)

    def _end(self, session_id: int) -> None:
        self._watching.pop(self._owners.pop(session_id), None)
        owned = self._ephemerals.pop(session_id, {})
        ephemerals = sorted(owned, key=lambda path: path.split("/"))
        if ephemerals:
            self.commit([Delete(path) for path in ephemerals], session_id=session_id)
        else:
            self._zxid += 1


class InMemoryClient:
    """A client of the server: one session, and after its expiry the next.

    Attributes:
        events: What the client has been notified of and nobody has taken yet, in order.
        session_id: The current session, 0 if there is none.
    """

    def __init__(self, server: InMemoryZooKeeper, *, chroot: str = "") -> None:
        self.events: deque[Event] = deque()
        self.session_id = 0
        self._server = server
        self._chroot = chroot
        self._is_connected = False
        self._is_closed = False
        self._data_watches: set[str] = set()
        self._child_watches: set[str] = set()
        self._recursive_watches: dict[str, None] = {}
        self._recursive_listeners: list[Callable[[WatchedEventType, str], None]] = []
        self._listeners: list[Callable[[Event], None]] = []

    # The connection.

    @property
    def is_connected(self) -> bool:
        return self._is_connected

    def disconnect(self) -> None:
        """Lose the connection. Every watch is gone, as with kazoo; the session lives on."""
        if self._is_connected:
            self._is_connected = False
            self._data_watches.clear()
            self._child_watches.clear()
            self._recursive_watches.clear()
            self._tell(SessionState.SUSPENDED)

    def reconnect(self) -> None:
        """Find a server again: resume the session, or learn that it is gone and get a new one."""
        if self._is_connected or self._is_closed:
            return
        self._is_connected = True
        if self.session_id and self._server.is_alive(self.session_id):
            self._tell(SessionState.RECONNECTED)
            return
        if self.session_id:
            self._tell(SessionState.EXPIRED)
        self.session_id = self._server.open_session(self)
        self._create_chroot()
        self._tell(SessionState.CONNECTED)

    def on_event(self, listener: Callable[[Event], None]) -> None:
        """Call ``listener`` with every event the moment it happens, before anyone takes it."""
        self._listeners.append(listener)

    def close(self) -> None:
        """End the session in an orderly way. No event is reported."""
        if not self._is_closed:
            self._is_closed = True
            self._is_connected = False
            self._server.close_session(self.session_id)
            self.session_id = 0

    def take_events(self) -> list[Event]:
        """All waiting events, which are thereby delivered."""
        taken = list(self.events)
        self.events.clear()
        return taken

    # Operations; each raises what the port documents, ``ZooKeeperUnavailableError`` at once.

    def get_data(self, paths: Sequence[str], *, watch: bool = False) -> list[ZNode | None]:
        found = [self._find(path) for path in paths]
        if watch:
            existing = [path for path, node in zip(paths, found, strict=True) if node is not None]
            self._data_watches.update(existing)
            self._server.watches(self)
        return [None if node is None else node.as_znode() for node in found]

    def get_children(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> list[tuple[str, ...] | None]:
        found = [self._find(path) for path in paths]
        if watch:
            existing = [path for path, node in zip(paths, found, strict=True) if node is not None]
            self._child_watches.update(existing)
            self._server.watches(self)
        return [None if node is None else tuple(sorted(node.children)) for node in found]

    def exists(self, paths: Sequence[str], *, watch: bool = False) -> list[bool]:
        found = [self._find(path) is not None for path in paths]
        if watch:
            self._data_watches.update(paths)
            self._server.watches(self)
        return found

    def on_touched(self, listener: Callable[[WatchedEventType, str], None]) -> None:
        """Call ``listener`` with what recursive watches report, at once."""
        self._recursive_listeners.append(listener)

    def watch_below(self, paths: Sequence[str]) -> None:
        """Leave persistent recursive watches. One-shot watches on the very same paths, which would
        replace them in servers before 3.9, are not to be set."""
        self._require_session()
        self._recursive_watches.update(dict.fromkeys(paths))
        self._server.watches(self)

    def remove_watches(self, paths: Sequence[str]) -> None:
        """Remove the recursive watches of these paths, if there are such."""
        self._require_session()
        for path in paths:
            self._recursive_watches.pop(path, None)

    def multi(self, operations: Sequence[Operation]) -> list[WriteResult]:
        self._require_session()
        sizes = [operation_size(operation) for operation in operations]
        if sum(sizes) > DEFAULT_JUTE_MAX_BUFFER:
            results: list[WriteResult] = [ZkError.ROLLED_BACK] * len(operations)
            results[sizes.index(max(sizes))] = ZkError.TOO_LARGE
            return results
        return list(self._commit(operations)) if operations else []

    def write(
        self, operations: Sequence[Operation], *, guard: Check, divides: bool = True
    ) -> list[WriteResult]:
        self._require_session()
        results: list[WriteResult] = []
        for some in _transactions(operations, divides=divides):
            checked, *written = self.multi([guard, *some])
            if isinstance(checked, ZkError) and checked is not ZkError.ROLLED_BACK:
                raise ControllerMovedError(f"{guard.path} is not at version {guard.version}")
            results += map(_forgiven, some, written)
        return results

    def notify(self, change: Change) -> None:
        """Fire the watches that a change concerns: one event, even where two watches do."""
        inside = self._inside(change.path)
        if inside is None:
            return
        if change.type is not WatchedEventType.NODE_CHILDREN_CHANGED and any(
            inside == path or inside.startswith(path.rstrip("/") + "/")
            for path in self._recursive_watches
        ):
            for touched in self._recursive_listeners:
                touched(change.type, inside)
        concerned: tuple[set[str], ...]
        match change.type:
            case WatchedEventType.NODE_CHILDREN_CHANGED:
                concerned = (self._child_watches,)
            case WatchedEventType.NODE_DELETED:
                concerned = (self._data_watches, self._child_watches)
            case _:
                concerned = (self._data_watches,)
        fires = any(inside in watches for watches in concerned)
        for watches in concerned:
            watches.discard(inside)
        if fires:
            self._tell(WatchedEvent(change.type, inside))

    def _tell(self, event: Event) -> None:
        self.events.append(event)
        for listener in self._listeners:
            listener(event)

    def _commit(self, operations: Sequence[Operation]) -> tuple[WriteResult, ...]:
        absolute = [
            msgspec.structs.replace(operation, path=self._absolute(operation.path))
            for operation in operations
        ]
        committed = self._server.commit(absolute, session_id=self.session_id)
        return tuple(
            Written(result.version, result.path.removeprefix(self._chroot))
            if isinstance(result, Written)
            else result
            for result in committed.results
        )

    def _find(self, path: str) -> Node | None:
        self._require_session()
        return self._server.find(self._absolute(path))

    def _require_session(self) -> None:
        if not self.session_id:
            raise SessionExpiredError("there is no ZooKeeper session")
        if not self._is_connected:
            raise ZooKeeperUnavailableError("the connection to ZooKeeper is lost")

    def _create_chroot(self) -> None:
        missing = []
        path = self._chroot
        while path and self._server.find(path) is None:
            missing.append(path)
            parent, _ = split(path)
            path = "" if parent == "/" else parent
        for path in reversed(missing):
            self._server.commit([Create(path)], session_id=self.session_id)

    def _absolute(self, path: str) -> str:
        return (self._chroot + path).rstrip("/") or "/"

    def _inside(self, path: str) -> str | None:
        if not self._chroot:
            return path
        if path == self._chroot:
            return "/"
        return path[len(self._chroot) :] if path.startswith(self._chroot + "/") else None


def _transactions(
    operations: Sequence[Operation], *, divides: bool
) -> Iterator[Sequence[Operation]]:
    """Neighbours on the same node stay together where a transaction is not divided."""
    some: list[Operation] = []
    for operation in operations:
        is_full = len(some) >= (1 if divides else UNDIVIDED_OPERATIONS)
        if is_full and (divides or operation.path != some[-1].path):
            yield some
            some = []
        some.append(operation)
    if some:
        yield some


def _forgiven(operation: Operation, result: WriteResult) -> WriteResult:
    match operation, result:
        case Create(exist_ok=True), ZkError.NODE_EXISTS:
            return Written(-1)
        case Delete(missing_ok=True), ZkError.NO_NODE:
            return Written(-1)
        case _:
            return result
