from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from regent.endpoint.zookeeper_reads import FewReadsAtOnce
from regent.zk_data.operations import ZNode
from tests.support.event_loop import until_idle


class Slow:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.under_way: list[str] = []
        self.may_answer = asyncio.Semaphore(0)

    async def _wait(self, paths: Sequence[str]) -> None:
        self.under_way.extend(paths)
        await self.may_answer.acquire()
        for path in paths:
            self.under_way.remove(path)

    async def get_data(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[ZNode | None]:
        await self._wait(paths)
        return [None for _ in paths]

    async def get_children(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[tuple[str, ...] | None]:
        await self._wait(paths)
        return [(path,) for path in paths]

    async def exists(self, paths: Sequence[str], *, watch: bool = False) -> Sequence[bool]:
        await self._wait(paths)
        return [True for _ in paths]


async def test_only_so_many_reads_are_under_way_and_the_others_follow_in_order() -> None:
    slow = Slow()
    reads = FewReadsAtOnce(slow, at_once=2)
    data = asyncio.create_task(reads.get_data(["/a"]))
    children = asyncio.create_task(reads.get_children(["/b"]))
    existing = asyncio.create_task(reads.exists(["/c"]))
    more = asyncio.create_task(reads.get_data(["/d"]))
    await until_idle()
    assert slow.under_way == ["/a", "/b"]
    slow.may_answer.release()
    await until_idle()
    assert slow.under_way == ["/b", "/c"]
    for _ in range(3):
        slow.may_answer.release()
    answers = await asyncio.gather(data, children, existing, more)
    assert list(answers) == [[None], [("/b",)], [True], [None]]


async def test_who_waits_no_more_leaves_its_place_to_others() -> None:
    slow = Slow()
    reads = FewReadsAtOnce(slow, at_once=1)
    first = asyncio.create_task(reads.exists(["/a"]))
    second = asyncio.create_task(reads.exists(["/b"]))
    third = asyncio.create_task(reads.exists(["/c"]))
    await until_idle()
    for task in (second, first):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await until_idle()
    assert slow.under_way[-1] == "/c"
    slow.may_answer.release()
    assert await third == [True]
