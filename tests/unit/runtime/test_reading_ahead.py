"""Many nodes are worked on while others are on their way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from regent.model.errors import UnexpectedZooKeeperError
from regent.runtime import reading_ahead
from regent.runtime.reading_ahead import read_ahead
from regent.zk_data.operations import ZNode
from sandbox.waiting import DEADLINE_S


class Reads:
    """ZooKeeper, which answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[str], asyncio.Future[None]]] = []
        self._is_asked = asyncio.Event()

    async def get_data(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[ZNode | None]:
        assert not watch
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.asked.append((paths, future))
        self._is_asked.set()
        await future
        return [node(path) for path in paths]

    async def wait_for(self, count: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.asked) < count:
                self._is_asked.clear()
                await self._is_asked.wait()


def node(path: str) -> ZNode:
    return ZNode(path.encode(), 0, 1, 1)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_ahead, "PART", 2)


async def test_parts_are_handed_over_in_order_while_others_are_read() -> None:
    zookeeper, paths = Reads(), [f"/{number}" for number in range(11)]
    taken: list[tuple[str, ZNode | None]] = []
    reading = asyncio.ensure_future(
        read_ahead(
            zookeeper,  # type: ignore[arg-type]
            paths,
            lambda some, nodes: taken.extend(zip(some, nodes, strict=True)),
        )
    )
    await zookeeper.wait_for(3)
    assert [list(asked) for asked, _ in zookeeper.asked] == [paths[0:2], paths[2:4], paths[4:6]]
    zookeeper.asked[1][1].set_result(None)  # not its turn
    zookeeper.asked[0][1].set_result(None)
    await zookeeper.wait_for(5)
    assert taken == [(path, node(path)) for path in paths[:4]]
    for number in range(2, 6):
        await zookeeper.wait_for(number + 1)
        zookeeper.asked[number][1].set_result(None)
    await reading
    assert taken == [(path, node(path)) for path in paths]


async def test_nothing_is_read_where_there_is_nothing() -> None:
    zookeeper = Reads()
    await read_ahead(zookeeper, [], lambda *_: None)  # type: ignore[arg-type]
    assert not zookeeper.asked


async def test_what_fails_ends_what_is_on_its_way() -> None:
    zookeeper = Reads()
    reading = asyncio.ensure_future(
        read_ahead(zookeeper, ["/a", "/b", "/c", "/d"], lambda *_: None)  # type: ignore[arg-type]
    )
    await zookeeper.wait_for(2)
    error = UnexpectedZooKeeperError("NOAUTH", "/a")
    zookeeper.asked[0][1].set_exception(error)
    with pytest.raises(UnexpectedZooKeeperError):
        await reading
    assert zookeeper.asked[1][1].cancelled()
