"""Effects: the only things that a coroutine of Regent's rules may await.

Where a coroutine would touch the world it awaits one of these values; the driver of the coroutine
performs the effect and sends the result in, or throws the error. The driver is the interpreter
(kazoo, sockets) in production and the simulator in tests, where a crash can be placed between any
two effects. Nothing else can be awaited: there is no event loop in here.

Effects carry sets: reading the states of 100,000 partitions is one effect. Here are those of
ZooKeeper; :mod:`regent.controller.effects` has those that only a controller needs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from regent.zk_data.operations import Check, Operation, WriteResult, ZNode

T = TypeVar("T")


class Effect(msgspec.Struct, Generic[T], frozen=True):
    """Base of all effects: awaiting one hands it to the driver, which sends the result."""

    def __await__(self) -> Generator[Effect[Any], T, T]:
        return (yield self)


Taker = Callable[[Sequence[str], Sequence[ZNode | None]], None]
"""Is given some paths, and their nodes."""


class ReadData(Effect[Sequence[ZNode | None]], frozen=True):
    """``ZooKeeperPort.get_data``.

    Attributes:
        take: Is given all paths with their nodes, in order, perhaps some at a time while others are
            still on their way: then nothing is the result. If the reading fails it may have been
            given a part of them. Not with ``watch``.
    """

    paths: Sequence[str]
    watch: bool = False
    take: Taker | None = None

    def result(self, nodes: Sequence[ZNode | None]) -> Sequence[ZNode | None]:
        """For a driver that has read all nodes at once."""
        if self.take is None:
            return nodes
        self.take(self.paths, nodes)
        return ()


class ReadChildren(Effect[Sequence[tuple[str, ...] | None]], frozen=True):
    """``ZooKeeperPort.get_children``."""

    paths: Sequence[str]
    watch: bool = False


class Exists(Effect[Sequence[bool]], frozen=True):
    """``ZooKeeperPort.exists``."""

    paths: Sequence[str]
    watch: bool = False


class Multi(Effect[Sequence[WriteResult]], frozen=True):
    """``ZooKeeperPort.multi``: one transaction. The first operation is a check that fences it."""

    operations: Sequence[Operation]


class Write(Effect[Sequence[WriteResult]], frozen=True):
    """``ZooKeeperPort.write``: independent operations, every one fenced by ``guard``.

    The driver throws ``ControllerMovedError`` into the handler when the guard does not hold.
    """

    operations: Sequence[Operation]
    guard: Check
    divides: bool = True
