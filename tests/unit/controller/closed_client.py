"""A ZooKeeper that refuses single operations on single nodes, as access control lists do."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from regent.model.errors import UnexpectedZooKeeperError
from regent.simulation.zookeeper import InMemoryClient, InMemoryZooKeeper
from regent.zk_data.operations import (
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    WriteResult,
    ZkError,
    ZNode,
)
from tests.unit.controller.world import World


class Right(enum.Enum):
    """ZooKeeper's permissions. That to create or to delete a node is one on its parent."""

    READ = "r"
    WRITE = "w"
    CREATE = "c"
    DELETE = "d"


class ClosedClient(InMemoryClient):
    """A client that lacks rights.

    Attributes:
        missing: What is refused, by path.
        refused: What was refused so far.
    """

    def __init__(self, server: InMemoryZooKeeper) -> None:
        super().__init__(server)
        self.missing: set[tuple[str, Right]] = set()
        self.refused: set[tuple[str, Right]] = set()

    def get_data(self, paths: Sequence[str], *, watch: bool = False) -> list[ZNode | None]:
        self._refuse_to_read(paths)
        return super().get_data(paths, watch=watch)

    def get_children(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> list[tuple[str, ...] | None]:
        self._refuse_to_read(paths)
        return super().get_children(paths, watch=watch)

    def exists(self, paths: Sequence[str], *, watch: bool = False) -> list[bool]:
        if watch:
            self._refuse_to_read(paths)
        return super().exists(paths, watch=watch)

    def multi(self, operations: Sequence[Operation]) -> list[WriteResult]:
        for operation in operations:
            if self._is_refused(*_needed(operation)):
                raise UnexpectedZooKeeperError(ZkError.NO_AUTH.value, operation.path)
        return super().multi(operations)

    def write(
        self, operations: Sequence[Operation], *, guard: Check, divides: bool = True
    ) -> list[WriteResult]:
        results: list[WriteResult] = []
        for operation in operations:
            if self._is_refused(*_needed(operation)):
                super().write([], guard=guard)
                results.append(ZkError.NO_AUTH)
            else:
                results += super().write([operation], guard=guard, divides=divides)
        return results

    def _refuse_to_read(self, paths: Sequence[str]) -> None:
        for path in paths:
            if self._is_refused(path, Right.READ):
                raise UnexpectedZooKeeperError(ZkError.NO_AUTH.value, path)

    def _is_refused(self, path: str, right: Right) -> bool:
        """Whether the right is missing on a node that exists."""
        if (path, right) not in self.missing or not super().exists([path])[0]:
            return False
        self.refused.add((path, right))
        return True


def take_rights(world: World, *missing: tuple[str, Right]) -> ClosedClient:
    """Have the controller of a world go on as a client without these rights."""
    client = ClosedClient(world.zookeeper)
    client.reconnect()
    client.take_events()
    client.missing.update(missing)
    world.driver.client = client
    return client


def _needed(operation: Operation) -> tuple[str, Right]:
    """Where an operation needs which right."""
    parent = operation.path.rpartition("/")[0] or "/"
    match operation:
        case Create():
            return parent, Right.CREATE
        case Delete():
            return parent, Right.DELETE
        case SetData():
            return operation.path, Right.WRITE
        case Check():
            return operation.path, Right.READ
