"""The tree of an in-memory ZooKeeper: nodes, and transactions with ZooKeeper's checks and codes.

Follows ``PrepRequestProcessor`` and ``DataTree`` of the Java server: the order of the checks
decides which error a caller sees, and a sequential number counts the children ever created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, assert_never

import msgspec

from regent.zk_data.operations import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    WatchedEventType,
    WriteResult,
    Written,
    ZkError,
    ZNode,
)

PERSISTENT = 0


@dataclass(slots=True)
class Node:
    """A node. ``created_children`` only grows: it numbers sequential children."""

    data: bytes
    czxid: int
    mzxid: int
    ephemeral_owner: int = PERSISTENT
    version: int = 0
    created_children: int = 0
    children: dict[str, Node] = field(default_factory=dict)

    def as_znode(self) -> ZNode:
        return ZNode(self.data, self.version, self.czxid, self.mzxid, self.ephemeral_owner)


class Change(NamedTuple):
    """One node touched by a transaction: what watches are to be notified of."""

    type: WatchedEventType
    path: str


class Committed(NamedTuple):
    """Outcome of a transaction.

    Attributes:
        results: One per operation. If one is an error, nothing was applied.
        operations: The operations as applied (sequential nodes with their numbers); empty if
            nothing was.
        changes: What watches are to be notified of, in order.
    """

    results: tuple[WriteResult, ...]
    operations: tuple[Operation, ...]
    changes: tuple[Change, ...]

    @property
    def is_applied(self) -> bool:
        return not any(isinstance(result, ZkError) for result in self.results)


class _RefusedError(Exception):
    def __init__(self, error: ZkError) -> None:
        super().__init__(error.value)
        self.error = error


class ZNodeTree:
    """All nodes. Paths are absolute; the root always exists."""

    def __init__(self) -> None:
        self._root = Node(b"", czxid=0, mzxid=0)

    def find(self, path: str) -> Node | None:
        """The node at ``path``, or None."""
        if path == "/":
            return self._root
        if not path.startswith("/") or path.endswith("/"):
            raise ValueError(f"not an absolute path: {path!r}")
        node: Node | None = self._root
        for name in path[1:].split("/"):
            if node is None:
                return None
            node = node.children.get(name)
        return node

    def walk(self) -> Iterator[tuple[str, Node]]:
        """Every node but the root with its path, in the order of the paths' components."""
        stack = [(f"/{name}", node) for name, node in self._root.children.items()]
        stack.sort(reverse=True)
        while stack:
            path, node = stack.pop()
            yield path, node
            stack += [(f"{path}/{name}", node.children[name]) for name in sorted(node.children)][
                ::-1
            ]

    def commit(self, operations: Sequence[Operation], *, zxid: int, session_id: int) -> Committed:
        """All operations or none: then the culprit has its error, the others are rolled back."""
        undo: list[Callable[[], None]] = []
        results: list[WriteResult] = []
        applied: list[Operation] = []
        changes: list[Change] = []
        for index, operation in enumerate(operations):
            try:
                step = self._apply(operation, zxid=zxid, session_id=session_id, undo=undo)
            except _RefusedError as refused:
                for revert in reversed(undo):
                    revert()
                errors = [ZkError.ROLLED_BACK] * len(operations)
                errors[index] = refused.error
                return Committed(tuple(errors), (), ())
            results.append(step.result)
            applied.append(step.operation)
            changes.extend(step.changes)
        return Committed(tuple(results), tuple(applied), tuple(changes))

    def _apply(
        self, operation: Operation, *, zxid: int, session_id: int, undo: list[Callable[[], None]]
    ) -> _Step:
        match operation:
            case Create():
                return self._create(operation, zxid=zxid, session_id=session_id, undo=undo)
            case SetData():
                node = self._existing(operation.path, operation.version)
                undo.append(partial(_restore_data, node, node.data, node.mzxid))
                node.data, node.mzxid = operation.data, zxid
                node.version += 1
                change = Change(WatchedEventType.NODE_DATA_CHANGED, operation.path)
                return _Step(Written(node.version), operation, (change,))
            case Delete():
                return self._delete(operation, undo=undo)
            case Check():
                self._existing(operation.path, operation.version)
                return _Step(Written(-1), operation, ())
            case _:
                assert_never(operation)

    def _create(
        self, operation: Create, *, zxid: int, session_id: int, undo: list[Callable[[], None]]
    ) -> _Step:
        parent_path, name = split(operation.path)
        parent = self._existing(parent_path)
        if operation.sequential:
            name += f"{parent.created_children:010d}"
        if name in parent.children:
            raise _RefusedError(ZkError.NODE_EXISTS)
        if parent.ephemeral_owner != PERSISTENT:
            raise _RefusedError(ZkError.NO_CHILDREN_FOR_EPHEMERALS)
        undo.append(partial(_forget_child, parent, name))
        owner = session_id if operation.ephemeral else PERSISTENT
        parent.children[name] = Node(operation.data, zxid, zxid, ephemeral_owner=owner)
        parent.created_children += 1
        path = join(parent_path, name)
        changes = (
            Change(WatchedEventType.NODE_CREATED, path),
            Change(WatchedEventType.NODE_CHILDREN_CHANGED, parent_path),
        )
        created = msgspec.structs.replace(operation, path=path, sequential=False)
        return _Step(Written(0, path), created, changes)

    def _delete(self, operation: Delete, *, undo: list[Callable[[], None]]) -> _Step:
        parent_path, name = split(operation.path)
        parent = self._existing(parent_path)
        node = self._existing(operation.path, operation.version)
        if node.children:
            raise _RefusedError(ZkError.NOT_EMPTY)
        undo.append(partial(parent.children.__setitem__, name, node))
        del parent.children[name]
        changes = (
            Change(WatchedEventType.NODE_DELETED, operation.path),
            Change(WatchedEventType.NODE_CHILDREN_CHANGED, parent_path),
        )
        return _Step(Written(-1), operation, changes)

    def _existing(self, path: str, version: int = ANY_VERSION) -> Node:
        node = self.find(path)
        if node is None:
            raise _RefusedError(ZkError.NO_NODE)
        if version not in (ANY_VERSION, node.version):
            raise _RefusedError(ZkError.BAD_VERSION)
        return node


class _Step(NamedTuple):
    result: Written
    operation: Operation
    changes: tuple[Change, ...]


def _restore_data(node: Node, data: bytes, mzxid: int) -> None:
    node.data, node.mzxid = data, mzxid
    node.version -= 1


def _forget_child(parent: Node, name: str) -> None:
    del parent.children[name]
    parent.created_children -= 1


def split(path: str) -> tuple[str, str]:
    """Parent and name of a node other than the root."""
    parent, separator, name = path.rpartition("/")
    if not (separator and name):
        raise ValueError(f"not the path of a node with a parent: {path!r}")
    return parent or "/", name


def join(parent: str, name: str) -> str:
    """Inverse of :func:`split`."""
    return f"/{name}" if parent == "/" else f"{parent}/{name}"
