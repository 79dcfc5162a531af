"""Reads so many nodes that what has come is worked on while the rest is on its way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from regent.runtime.ports import ZooKeeperPort
from regent.zk_data.effects import Taker
from regent.zk_data.operations import ZNode

PART: Final = 5_000
"""Nodes that are handed over at a time: some ms of work."""

AHEAD: Final = 3
"""Parts that are asked for before the first of them is taken."""


async def read_ahead(zookeeper: ZooKeeperPort, paths: Sequence[str], take: Taker) -> None:
    """Read nodes, and hand them over in the order of their paths, some at a time.

    Raises:
        RegentError: As ``ZooKeeperPort.get_data`` does. Parts before that may have been
            handed over.
    """
    parts = (paths[start : start + PART] for start in range(0, len(paths), PART))
    reading: deque[tuple[Sequence[str], asyncio.Task[Sequence[ZNode | None]]]] = deque()

    def ask(count: int) -> None:
        for part in islice(parts, count):
            reading.append((part, asyncio.ensure_future(_read(zookeeper, part))))

    try:
        ask(AHEAD)
        while reading:
            part, answer = reading[0]
            nodes = await answer
            reading.popleft()
            ask(1)
            await asyncio.sleep(0)  # the next request leaves before this part is worked on
            take(part, nodes)
    finally:
        for _, answer in reading:
            answer.cancel()
        await asyncio.gather(*(answer for _, answer in reading), return_exceptions=True)


async def _read(zookeeper: ZooKeeperPort, paths: Sequence[str]) -> Sequence[ZNode | None]:
    return await zookeeper.get_data(paths)
