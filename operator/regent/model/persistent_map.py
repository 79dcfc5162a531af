"""An immutable mapping of which changed copies are cheap: a holder may read it in any
thread, without a lock and for as long as it likes, while its owner goes on making newer ones.

A hash trie: inner nodes are tuples of 32 children, leaves are small dicts that are not changed any
more. A changed key costs copies of the nodes on its path, whatever the size of the mapping. (The
libraries for this are no longer kept up to date with Python's releases.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")

_BITS: Final = 5
_CHILDREN: Final = 1 << _BITS
_MASK: Final = _CHILDREN - 1
_LARGEST_LEAF: Final = 16
_DEEPEST: Final = 12
"""Below this all bits of a hash are used up: keys with the same hash share a leaf."""

_NO_ENTRIES: Final[dict[Any, Any]] = {}

_Node = Any
"""A tuple of nodes, or a dict."""


class PersistentMap(Mapping[K, V], Generic[K, V]):
    """The mapping. In no order."""

    __slots__ = ("_root", "_size")

    def __init__(self, entries: Mapping[K, V] = _NO_ENTRIES) -> None:
        self._root: _Node = _NO_ENTRIES
        self._size = 0
        for key, value in entries.items():
            self._set(key, value)

    def updated(
        self, entries: Mapping[K, V] = _NO_ENTRIES, *, removed: Iterable[K] = ()
    ) -> PersistentMap[K, V]:
        """A copy with entries added or replaced, after others were removed (missing ones are
        ignored)."""
        copy: PersistentMap[K, V] = PersistentMap()
        copy._root, copy._size = self._root, self._size
        for key in removed:
            if key in copy:
                copy._root = _without(copy._root, hash(key), key)
                copy._size -= 1
        for key, value in entries.items():
            copy._set(key, value)
        return copy

    def _set(self, key: K, value: V) -> None:
        """Only for a mapping that is not shared yet."""
        self._size += key not in self
        self._root = _with(self._root, hash(key), key, value, depth=0)

    def __getitem__(self, key: K) -> V:
        node, rest = self._root, hash(key)
        while type(node) is tuple:
            node = node[rest & _MASK]
            rest >>= _BITS
        return cast(V, node[key])

    def get(self, key: K, default: Any = None) -> Any:
        """As of any mapping, whose way of finding out by an exception takes three times as long."""
        node, rest = self._root, hash(key)
        while type(node) is tuple:
            node = node[rest & _MASK]
            rest >>= _BITS
        return node.get(key, default)

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in _entries(self._root))

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"


def changed_keys(before: Mapping[K, V], after: Mapping[K, V]) -> Iterator[K]:
    """Keys that one of two mappings lacks, or for which they have different objects. What two
    persistent mappings share costs nothing."""
    missing = object()
    if isinstance(before, PersistentMap) and isinstance(after, PersistentMap):
        nodes = [(before._root, after._root)]
    else:
        nodes = [(dict(before), dict(after))]
    while nodes:
        one, other = nodes.pop()
        if one is other:
            continue
        if type(one) is tuple and type(other) is tuple:
            nodes.extend(zip(one, other, strict=True))
            continue
        former, present = dict(_entries(one)), dict(_entries(other))
        for key in former | present:
            if former.get(key, missing) is not present.get(key, missing):
                yield key


def _entries(root: _Node) -> Iterator[tuple[Any, Any]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if type(node) is tuple:
            waiting.extend(node)
        else:
            yield from node.items()


def _with(node: _Node, rest: int, key: Any, value: Any, *, depth: int) -> _Node:
    """A copy of a node with an entry; ``rest`` is what its depth leaves of the key's hash."""
    if type(node) is tuple:
        child = _with(node[rest & _MASK], rest >> _BITS, key, value, depth=depth + 1)
        return _replaced(node, rest & _MASK, child)
    leaf = {**node, key: value}
    if len(leaf) <= _LARGEST_LEAF or depth >= _DEEPEST:
        return leaf
    children: list[dict[Any, Any]] = [{} for _ in range(_CHILDREN)]
    for member, its_value in leaf.items():
        children[hash(member) >> _BITS * depth & _MASK][member] = its_value
    return tuple(children)


def _without(node: _Node, rest: int, key: Any) -> _Node:
    """A copy of a node without one of its keys."""
    if type(node) is tuple:
        child = _without(node[rest & _MASK], rest >> _BITS, key)
        return _replaced(node, rest & _MASK, child)
    return {member: value for member, value in node.items() if member != key}


def _replaced(children: tuple[_Node, ...], at: int, child: _Node) -> tuple[_Node, ...]:
    return (*children[:at], child, *children[at + 1 :])
