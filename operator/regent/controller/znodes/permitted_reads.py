"""Reading sets of znodes of which some may be closed to us.

A set is read in a few requests, and ZooKeeper refuses a request over one znode without the right to
read it. The others are good all the same: a topic that somebody has locked up must not cost the
cluster its controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

from regent.controller.effects import ReadData
from regent.model.errors import MalformedZNodeError, UnexpectedZooKeeperError
from regent.zk_data.operations import ZNode

NO_AUTH: Final = "NOAUTH"
UNREADABLE_MAX: Final = 100
"""With more znodes than that it is not these that are wrong but our rights."""


class UnreadableZNode(ZNode):
    """A node of which nothing may be read: who asks for its data hears what a decoder would say.

    Its version and its transactions are -1: it must not be written back.
    """

    __slots__ = ()

    @classmethod
    def at(cls, path: str) -> UnreadableZNode:
        """The node at a path, which is kept where others have their data."""
        return cls(path.encode(), version=-1, czxid=-1, mzxid=-1)

    @property
    def data(self) -> NoReturn:
        """There is none.

        Raises:
            MalformedZNodeError: Always.
        """
        raise MalformedZNodeError(self[0].decode(), "ZooKeeper answered NOAUTH")


async def read_permitted(paths: Sequence[str], *, watch: bool = False) -> Sequence[ZNode | None]:
    """``ReadData`` in which a node that may not be read is an :class:`UnreadableZNode`.

    Raises:
        UnexpectedZooKeeperError: More than :data:`UNREADABLE_MAX` nodes may not be read.
    """
    unreadable: list[str] = []

    async def read(some: Sequence[str]) -> list[ZNode | None]:
        try:
            return list(await ReadData(some, watch=watch))
        except UnexpectedZooKeeperError as error:
            if error.code != NO_AUTH:
                raise
            if len(some) > 1:
                middle = len(some) // 2
                return await read(some[:middle]) + await read(some[middle:])
            unreadable.append(some[0])
            if len(unreadable) > UNREADABLE_MAX:
                raise
            return [UnreadableZNode.at(some[0])]

    return await read(paths)
