"""Reading sets of znodes of which some may be closed to us.

A topic that somebody has locked up must not cost the cluster its controller.
"""

from __future__ import annotations

from collections.abc import Sequence

from regent.controller.effects import Exists, ReadChildren, ReadData
from regent.controller.log import ControllerLog, examples
from regent.model.errors import UnexpectedZooKeeperError
from regent.zk_data.operations import ZNode
from regent.zk_data.permitted_reads import NO_AUTH, UnreadableZNode, read_in_parts


async def read_permitted(paths: Sequence[str], *, watch: bool = False) -> Sequence[ZNode | None]:
    """``ReadData`` in which a node that may not be read is an :class:`UnreadableZNode`.

    Raises:
        UnexpectedZooKeeperError: As :func:`~regent.zk_data.permitted_reads.read_in_parts` does.
    """

    async def request(some: Sequence[str]) -> Sequence[ZNode | None]:
        return await ReadData(some, watch=watch)

    return await read_in_parts(paths, request, UnreadableZNode.at)


async def exists_permitted(path: str, log: ControllerLog) -> bool:
    """Whether there is a node; leaves a watch on it. One that may not be read cannot be watched: it
    is looked at again by the next watch check.

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
    paths: Sequence[str], log: ControllerLog
) -> Sequence[Sequence[str] | None]:
    """``ReadChildren`` in which a node whose children may not be listed is logged and seems to
    have none.

    Raises:
        UnexpectedZooKeeperError: As :func:`~regent.zk_data.permitted_reads.read_in_parts` does.
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
