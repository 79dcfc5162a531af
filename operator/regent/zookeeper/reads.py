"""Reading sets of znodes under one session: in bulk where the servers can, pipelined otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import chain
from typing import Any, Final, Literal, TypeVar, cast

from kazoo.exceptions import NoAuthError, NoNodeError, UnimplementedError
from kazoo.protocol.serialization import Exists, GetData
from kazoo.protocol.states import WatchedEvent, ZnodeStat

from regent.zk_data.operations import DatedZNode, ZNode
from regent.zookeeper.errors import NO_AUTH, NO_NODE, code_of, unexpected
from regent.zookeeper.generation import BATCH_SIZE, Answer, Generation
from regent.zookeeper.multi_read import GET_CHILDREN, GET_DATA, MultiRead, ReadAnswer
from regent.zookeeper.set_watches import SetWatches

T = TypeVar("T")
Watcher = Callable[[WatchedEvent], None]

PATHS_PER_REQUEST: Final = 500

_READ_BYTES: Final = 14
"""Of one read in a request, beside its path."""


class BulkReadsUnsupportedError(Exception):
    """The server does not know MultiRead."""


async def read_in_bulk(
    generation: Generation, paths: Sequence[str], opcode: Literal[4, 8]
) -> list[ReadAnswer | None]:
    """What each path has, None where there is no node.

    Raises:
        BulkReadsUnsupportedError: If the server is older than 3.6.
        UnexpectedZooKeeperError: If a node may not be read.
    """
    found: list[ReadAnswer | None] = [*await _bulk_answers(generation, paths, opcode)]
    if int in set(map(type, found)):
        for index, answer in enumerate(found):
            if answer == NO_NODE:
                found[index] = None
            elif isinstance(answer, int):
                raise unexpected(answer, paths[index])
    return found


async def exist_in_bulk(generation: Generation, paths: Sequence[str]) -> list[bool]:
    """Whether there is a node at each path: one that may not be read exists.

    Raises:
        BulkReadsUnsupportedError: If the server is older than 3.6.
    """
    # MultiRead has no operation "exists". Nodes of which there are many have few children.
    answers = await _bulk_answers(generation, paths, GET_CHILDREN)
    for path, answer in zip(paths, answers, strict=True):
        if isinstance(answer, int) and answer not in (NO_NODE, NO_AUTH):
            raise unexpected(answer, path)
    return [answer != NO_NODE for answer in answers]


async def _bulk_answers(
    generation: Generation, paths: Sequence[str], opcode: Literal[4, 8]
) -> list[ReadAnswer]:
    chunks = list(in_requests(paths, generation.settings.bulk_request_bytes))
    found = await together([_read_chunk(generation, chunk, opcode) for chunk in chunks])
    return list(chain.from_iterable(found))


async def read_one_by_one(
    generation: Generation, requests: Sequence[object], paths: Sequence[str]
) -> list[Answer | None]:
    """The answer to each request, None where there is no node; ``paths`` are for errors.

    Raises:
        UnexpectedZooKeeperError: If a node may not be read.
    """
    answers = await _answers(generation, requests)
    for index, answer in enumerate(answers):
        if isinstance(answer, NoNodeError):
            answers[index] = None
        elif isinstance(answer, Exception):
            raise unexpected(code_of(answer), paths[index]) from answer
    return answers


async def read_and_watch(
    generation: Generation, paths: Sequence[str], watcher: Watcher
) -> list[ZNode | None]:
    """The node at each path, and a watch on the data of each that exists.

    Raises:
        BulkReadsUnsupportedError: If the server is older than 3.6.
        UnexpectedZooKeeperError: If a node may not be read.
    """
    # Any answer brings the number of the server's last transaction along.
    await generation.answers([Exists("/", None)])
    since_zxid = generation.client.last_zxid
    nodes = cast("list[ZNode | None]", await read_in_bulk(generation, paths, GET_DATA))
    settled: list[str] = []
    changed: list[int] = []
    for index, node in enumerate(nodes):
        if node is not None and node.mzxid > since_zxid:
            changed.append(index)  # its watch fires at once for what has been read
        elif node is not None:
            settled.append(generation.absolute(paths[index]))
    watched = await together(
        [
            generation.answers(
                [SetWatches(generation.client, chunk, since_zxid=since_zxid, watcher=watcher)]
            )
            for chunk in in_requests(settled, generation.settings.bulk_request_bytes)
        ]
    )
    for (answer,) in watched:
        if isinstance(answer, Exception):
            raise unexpected(code_of(answer), paths[0]) from answer
    again = [paths[index] for index in changed]
    for index, node in zip(changed, await get_one_by_one(generation, again, watcher), strict=True):
        nodes[index] = node
    return nodes


async def get_one_by_one(
    generation: Generation, paths: Sequence[str], watcher: Watcher | None
) -> list[ZNode | None]:
    """The node at each path; with a watcher, a watch on the data of each that exists.

    Raises:
        UnexpectedZooKeeperError: If a node may not be read.
    """
    requests = [GetData(generation.absolute(path), watcher) for path in paths]
    return [
        None if answer is None else _znode(answer)
        for answer in await read_one_by_one(generation, requests, paths)
    ]


async def exist_one_by_one(
    generation: Generation, paths: Sequence[str], watcher: Watcher | None
) -> list[bool]:
    """Whether there is a node at each path; with a watcher, a watch on its existence.

    Servers from 3.8.4 and 3.9.2 on refuse to say so of a node that may not be read: such a node
    exists. No watch is left on it, so with a watcher it is an error.

    Raises:
        UnexpectedZooKeeperError: If a node that is to be watched may not be read.
    """
    requests = [Exists(generation.absolute(path), watcher) for path in paths]
    if watcher is not None:
        return [answer is not None for answer in await read_one_by_one(generation, requests, paths)]
    answers = await _answers(generation, requests)
    for path, answer in zip(paths, answers, strict=True):
        if isinstance(answer, Exception) and not isinstance(answer, NoNodeError | NoAuthError):
            raise unexpected(code_of(answer), path) from answer
    return [answer is not None and not isinstance(answer, NoNodeError) for answer in answers]


async def _answers(generation: Generation, requests: Sequence[object]) -> list[Answer]:
    batches = [requests[i : i + BATCH_SIZE] for i in range(0, len(requests), BATCH_SIZE)]
    answered = await together([generation.answers(batch) for batch in batches])
    return [answer for batch in answered for answer in batch]


async def get_dated(generation: Generation, paths: Sequence[str]) -> list[DatedZNode | None]:
    """The node at each path with its times, None where there is no node.

    Raises:
        UnexpectedZooKeeperError: If a node may not be read.
    """
    requests = [GetData(generation.absolute(path), None) for path in paths]
    found: list[DatedZNode | None] = []
    for answer in await read_one_by_one(generation, requests, paths):
        if answer is None:
            found.append(None)
        else:
            _, stat = cast("tuple[bytes | None, ZnodeStat]", answer)
            found.append(DatedZNode(_znode(answer), stat.ctime, stat.mtime))
    return found


async def together(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in order. The first failure ends the others and is raised as it is."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _read_chunk(
    generation: Generation, paths: Sequence[str], opcode: Literal[4, 8]
) -> list[ReadAnswer]:
    request = MultiRead(paths, opcode, chroot=generation.settings.chroot)
    (answer,) = await generation.answers([request])
    if answer is None or isinstance(answer, UnimplementedError):
        raise BulkReadsUnsupportedError
    if isinstance(answer, Exception):
        raise unexpected(code_of(answer), paths[0]) from answer
    assert isinstance(answer, list)
    assert len(answer) == len(paths)
    return answer


def in_requests(paths: Sequence[str], request_bytes: int) -> Iterator[Sequence[str]]:
    """Paths, at most so many bytes of them for each request; a longer one goes alone."""
    for start in range(0, len(paths), PATHS_PER_REQUEST):
        yield from _fitting(paths[start : start + PATHS_PER_REQUEST], request_bytes)


def _fitting(paths: Sequence[str], request_bytes: int) -> Iterator[Sequence[str]]:
    """The paths of a request, halved until each part is small enough, or a single path."""
    size = len("".join(paths).encode()) + _READ_BYTES * len(paths)
    if size <= request_bytes or len(paths) == 1:
        yield paths
    else:
        middle = len(paths) // 2
        yield from _fitting(paths[:middle], request_bytes)
        yield from _fitting(paths[middle:], request_bytes)


def _znode(answer: object) -> ZNode:
    data, stat = cast("tuple[bytes | None, ZnodeStat]", answer)
    return ZNode(data or b"", stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)
