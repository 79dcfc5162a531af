"""Reading sets of znodes, some of which Regent has no permission to read.

A set is read in a few requests, and ZooKeeper refuses a whole request over one znode without the
permission to read it. The other znodes are still good: a locked topic must not cost the cluster its
controller.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Final, NoReturn, TypeVar

from regent.model.errors import MalformedZNodeError, UnexpectedZooKeeperError
from regent.model.log import StructuredLog, examples
from regent.zk_data.effects import Exists, ReadChildren, ReadData
from regent.zk_data.operations import ZNode

T = TypeVar("T")

NO_AUTH: Final = "NOAUTH"
UNREADABLE_MAX: Final = 100
"""More unreadable znodes than that mean that Regent's permissions are wrong."""


class UnreadableZNode(ZNode):
    """A node of which nothing may be read: its ``data`` raises what a decoder would raise.

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
        raise may_not_be_read(self[0].decode())


def may_not_be_read(path: str) -> MalformedZNodeError:
    """Return the error for a node without the permission to read it, or to list its children."""
    return MalformedZNodeError(path, "ZooKeeper answered NOAUTH: the right to read it is missing")


def parts_that_may_be_closed(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Parts of a sequence that are small enough for :func:`read_in_parts` even if nothing of them
    may be read."""
    for start in range(0, len(items), UNREADABLE_MAX):
        yield items[start : start + UNREADABLE_MAX]


async def read_in_parts(
    paths: Sequence[str],
    request: Callable[[Sequence[str]], Coroutine[Any, Any, Sequence[T]]],
    unreadable: Callable[[str], T],
) -> Sequence[T]:
    """Return what ``request`` reads, with ``unreadable`` in the place of each unreadable node.

    Finds those by halving, since ZooKeeper refuses a request as a whole.

    Raises:
        UnexpectedZooKeeperError: More than :data:`UNREADABLE_MAX` nodes are unreadable, or any
            other error of ``request``.
    """
    refused = 0

    async def read(some: Sequence[str]) -> list[T]:
        nonlocal refused
        try:
            return list(await request(some))
        except UnexpectedZooKeeperError as error:
            if error.code != NO_AUTH:
                raise
            if len(some) > 1:
                middle = len(some) // 2
                return await read(some[:middle]) + await read(some[middle:])
            refused += 1
            if refused > UNREADABLE_MAX:
                raise
            return [unreadable(some[0])]

    return await read(paths)


async def read_permitted(paths: Sequence[str], *, watch: bool = False) -> Sequence[ZNode | None]:
    """Read nodes; an unreadable one is an :class:`UnreadableZNode`.

    Raises:
        UnexpectedZooKeeperError: As :func:`read_in_parts` does.
    """

    async def request(some: Sequence[str]) -> Sequence[ZNode | None]:
        return await ReadData(some, watch=watch)

    return await read_in_parts(paths, request, UnreadableZNode.at)


async def exists_permitted(path: str, log: StructuredLog) -> bool:
    """Return whether there is a node, and leave a watch on it.

    An unreadable node gets no watch: the next watch check looks at it again.

    Raises:
        UnexpectedZooKeeperError: Any other answer than NOAUTH.
    """
    try:
        (exists,) = await Exists([path], watch=True)
    except UnexpectedZooKeeperError as error:
        if error.code != NO_AUTH:
            raise
        log.error("A node may not be watched", path=path, answer=NO_AUTH)
        return True
    return exists


async def list_permitted(
    paths: Sequence[str], log: StructuredLog
) -> Sequence[Sequence[str] | None]:
    """Read children. A node without the permission to list its children is logged and seems to have
    none.

    Raises:
        UnexpectedZooKeeperError: As :func:`read_in_parts` does.
    """
    closed: list[str] = []

    async def request(some: Sequence[str]) -> Sequence[Sequence[str] | None]:
        return await ReadChildren(some)

    def without_children(path: str) -> Sequence[str]:
        closed.append(path)
        return ()

    found = await read_in_parts(paths, request, without_children)
    if closed:
        log.error(
            "Children of znodes may not be listed",
            znodes=len(closed),
            examples=examples(closed),
            answer=NO_AUTH,
        )
    return found
