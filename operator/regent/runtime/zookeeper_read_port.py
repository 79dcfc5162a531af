"""Reading sets of znodes, for those who need no more of ZooKeeper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from regent.zk_data.operations import ZNode


class ZooKeeperReadPort(Protocol):
    """The part of :class:`~regent.runtime.ports.ZooKeeperPort` that reads; see there for errors."""

    async def get_data(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[ZNode | None]:
        """Data of each path in order, None where there is no node.

        With ``watch``, a one-shot watch is left on every *existing* node (as getData does); use
        :meth:`exists` to be notified of a node's creation.
        """
        ...

    async def get_children(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[tuple[str, ...] | None]:
        """Sorted names of each path's children in order, None where there is no node."""
        ...

    async def exists(self, paths: Sequence[str], *, watch: bool = False) -> Sequence[bool]:
        """Whether each path exists. The watch also reports a later creation; a node that may not be
        read exists, but cannot be watched."""
        ...
