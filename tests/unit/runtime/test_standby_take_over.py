"""What the keeper of the standby's cache gives to a take-over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from regent.model.errors import UnexpectedZooKeeperError
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.operations import Delete, SetData
from sandbox.waiting import DEADLINE_S
from tests.support.event_loop import until_idle
from tests.unit.runtime.keeper_worlds import T0, Make, World, state, topic


async def test_what_is_dirty_is_read_first(world: World) -> None:
    world.admin.multi([SetData(paths.partition_state(T0), state(2)), *topic("u", 3)])
    copy = await world.keeper.read()
    assert copy is not None
    assert copy.cluster.leadership[T0].leader == 2
    assert copy.cluster.leadership[TopicPartition("u", 2)].leader == 1
    assert copy.topic_mzxids.keys() == {"t", "u"}


async def test_brokers_that_there_are_are_connected_to(make: Make) -> None:
    world = make()
    world.register(1)
    world.start()
    await world.until(lambda: world.channels.standing_by == [[1]])
    world.register(2)
    await world.until(lambda: world.channels.standing_by == [[1], [1, 2]])
    world.admin.multi(topic("u", 2))
    await world.until(lambda: world.keeper.status.partitions == 3)
    world.admin.multi([Delete(paths.broker_id(1))])
    await world.until(lambda: world.channels.standing_by == [[1], [1, 2], [2]])
    world.keeper.resigned()
    await world.until(lambda: world.channels.standing_by == [[1], [1, 2], [2], [2]])


async def test_nothing_is_prepared_while_this_process_is_the_controller(make: Make) -> None:
    world = make()
    world.start()
    await world.until(lambda: world.prepared() == [T0])
    assert await world.keeper.read() is not None
    assert world.prepared() == []
    world.change(leader=2)
    await world.until(lambda: world.leader() == 2)
    refreshes = world.keeper.status.refreshes
    world.change(leader=1)
    await world.until(lambda: world.keeper.status.refreshes > refreshes)
    assert world.prepared() == []
    world.keeper.resigned()
    await world.until(lambda: world.prepared() == [T0])
    assert world.keeper.status.copies == 1


async def test_it_does_not_wait_until_changes_cease(world: World) -> None:
    """What changes after its beginning is reported to the controller, as after any reading."""
    get_data, number = world.port.get_data, 0

    async def change(some: Sequence[str], *, watch: bool = False) -> object:
        nonlocal number
        found = await get_data(some, watch=watch)
        number += 1
        world.change(leader=number)
        return found

    world.change(leader=2)
    world.port.get_data = change  # type: ignore[assignment,method-assign]
    copy = await world.keeper.read()
    assert copy is not None
    assert number == 1
    assert copy.cluster.leadership[T0].leader == 2


async def test_a_reading_under_way_is_waited_for(world: World) -> None:
    """What it has taken is not dirty any more, and not known yet."""
    get_data, asked, answer = world.port.get_data, asyncio.Event(), asyncio.Event()

    async def wait(some: Sequence[str], *, watch: bool = False) -> object:
        asked.set()
        await answer.wait()
        return await get_data(some, watch=watch)

    world.port.get_data = wait  # type: ignore[assignment,method-assign]
    world.change(leader=2)
    async with asyncio.timeout(DEADLINE_S):
        await asked.wait()
    reading = asyncio.create_task(world.keeper.read())
    await until_idle()
    assert not reading.done()
    answer.set()
    copy = await reading
    assert copy is not None
    assert copy.cluster.leadership[T0].leader == 2


async def test_there_is_no_copy_before_everything_was_read(make: Make) -> None:
    world = make()
    get_children = world.port.get_children
    copies: list[object] = []

    async def ask(some: Sequence[str], *, watch: bool = False) -> Sequence[tuple[str, ...] | None]:
        copies.append(await world.keeper.read())
        return await get_children(some, watch=watch)

    world.port.get_children = ask  # type: ignore[assignment,method-assign]
    assert await world.keeper.read() is None
    world.start()
    await world.current()
    assert copies == [None]
    assert await world.keeper.read() is not None


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_there_is_none_once_events_may_have_been_lost(world: World, when: str) -> None:
    get_data = world.port.get_data

    async def lose(some: Sequence[str], *, watch: bool = False) -> object:
        found = await get_data(some, watch=watch)
        world.client.disconnect()
        world.change(leader=5)
        world.client.reconnect()
        return found

    world.change(leader=2)
    if when == "before":
        world.reconnect()
    else:
        world.port.get_data = lose  # type: ignore[assignment,method-assign]
    assert await world.keeper.read() is None
    world.port.get_data = get_data  # type: ignore[method-assign]
    await world.current()
    assert await world.keeper.read() is not None
    assert world.keeper.status.copies == 1


async def test_what_was_left_out_is_read_again(make: Make) -> None:
    """A right that is given back is no change of the node, so there is no event."""
    world = make()
    get_data, path = world.port.get_data, paths.partition_state(T0)

    async def refuse(some: Sequence[str], *, watch: bool = False) -> object:
        if path in some:
            raise UnexpectedZooKeeperError("NOAUTH", path)
        return await get_data(some, watch=watch)

    world.port.get_data = refuse  # type: ignore[assignment,method-assign]
    world.start()
    await world.current()
    copy = await world.keeper.read()
    assert copy is not None
    assert [error.path for error in copy.malformed_states] == [path]
    world.port.get_data = get_data  # type: ignore[method-assign]
    copy = await world.keeper.read()
    assert copy is not None
    assert copy.cluster.leadership[T0].leader == 1
    assert copy.malformed_states == ()


async def test_defect_has_the_cache_reloaded(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.fail_reads(RuntimeError("nobody expects this"), times=1)
    world.change(leader=2)
    assert await world.keeper.read() is None
    assert [r.levelno for r in caplog.records if r.exc_info] == [logging.ERROR]
    await world.until(lambda: world.keeper.status.loads == 2)
    await world.current()
    assert world.leader() == 2


async def test_a_take_over_ends_a_self_check(world: World) -> None:
    """What was read for the one may be newer than what was read for the other."""
    get_data = world.port.get_data

    async def take_over(some: Sequence[str], *, watch: bool = False) -> object:
        found = await get_data(some, watch=watch)
        if paths.partition_state(T0) in some:
            world.port.get_data = get_data  # type: ignore[method-assign]
            world.change(leader=2)
            assert await world.keeper.read() is not None
        return found

    world.port.get_data = take_over  # type: ignore[assignment,method-assign]
    assert await world.keeper.check() == []
    assert world.keeper.status.self_checks == 0
    assert await world.keeper.check() == []
    assert world.keeper.status.self_checks == 1
