"""A ZooKeeper in this process, so that a measurement holds the controller's own work only.

The znodes of the measured cluster are not stored: they follow from it. What is written later is.
Time that is spent in here is counted apart, to be taken off.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from regent.zk_data.operations import (
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    WriteResult,
    Written,
    ZkError,
    ZNode,
)


class MemoryZooKeeper:
    """Implements `regent.runtime.ports.ZooKeeperPort`. Nobody watches.

    Attributes:
        spent_ns: Processor time spent in here.
    """

    session_id = 1

    def __init__(self, given: Callable[[str], bytes | None]) -> None:
        self.spent_ns = 0
        self._given = given
        self._nodes: dict[str, ZNode | None] = {}
        self._children: dict[str, dict[str, None]] = {}
        self._zxid = 1

    def list(self, parent: str, children: Sequence[str]) -> None:
        """Given nodes that are to be found as children."""
        self._children[parent] = dict.fromkeys(children)

    def put(self, path: str, data: bytes = b"") -> None:
        """Create or replace a node, as somebody else does."""
        self._zxid += 1
        before = self._node(path)
        self._store(path, data, before)

    def remove(self, path: str) -> None:
        """Delete a node, as somebody else does."""
        parent, _, name = path.rpartition("/")
        self._nodes[path] = None
        self._children.get(parent, {}).pop(name, None)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        began = time.thread_time_ns()
        yield
        self.spent_ns += time.thread_time_ns() - began

    def _node(self, path: str) -> ZNode | None:
        if path in self._nodes:
            return self._nodes[path]
        data = self._given(path)
        return None if data is None else ZNode(data, 0, 1, 1)

    def _store(self, path: str, data: bytes, before: ZNode | None) -> int:
        version = 0 if before is None else before.version + 1
        created = self._zxid if before is None else before.czxid
        self._nodes[path] = ZNode(data, version, created, self._zxid)
        if before is None:
            parent, _, name = path.rpartition("/")
            self._children.setdefault(parent, {})[name] = None
        return version

    async def get_data(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[ZNode | None]:
        with self._counted():
            return [self._node(path) for path in paths]

    async def get_children(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[tuple[str, ...] | None]:
        with self._counted():
            return [tuple(sorted(self._children.get(path, ()))) for path in paths]

    async def exists(self, paths: Sequence[str], *, watch: bool = False) -> Sequence[bool]:
        with self._counted():
            return [self._node(path) is not None for path in paths]

    async def multi(self, operations: Sequence[Operation]) -> Sequence[WriteResult]:
        with self._counted():
            return [self._apply(operation) for operation in operations]

    async def write(
        self, operations: Sequence[Operation], *, guard: Check, divides: bool = True
    ) -> Sequence[WriteResult]:
        with self._counted():
            return [self._apply(operation) for operation in operations]

    def _apply(self, operation: Operation) -> WriteResult:
        self._zxid += 1
        before = self._node(operation.path)
        match operation:
            case Create():
                if before is not None:
                    return Written(-1) if operation.exist_ok else ZkError.NODE_EXISTS
                self._store(operation.path, operation.data, None)
                return Written(0, operation.path)
            case SetData():
                if before is None:
                    return ZkError.NO_NODE
                if operation.version not in (-1, before.version):
                    return ZkError.BAD_VERSION
                return Written(self._store(operation.path, operation.data, before))
            case Delete():
                if before is None:
                    return Written(-1) if operation.missing_ok else ZkError.NO_NODE
                self.remove(operation.path)
                return Written(-1)
            case Check():
                return Written(-1)
