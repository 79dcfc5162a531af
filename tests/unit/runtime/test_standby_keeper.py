"""The keeper of the standby's cache, over the in-memory ZooKeeper."""

from __future__ import annotations

import gc
import logging
from collections.abc import Sequence

import pytest

from regent.model.errors import RecursiveWatchesUnsupportedError, UnexpectedZooKeeperError
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.leader_and_isr import usual_suffix
from regent.standby.status import StandbyPhase
from regent.zk_data import paths
from regent.zk_data.operations import Delete, SetData
from tests.unit.runtime.keeper_worlds import T0, Make, World, state, topic


async def test_changes_are_followed(world: World) -> None:
    assert world.leader() == 1
    world.change(leader=2)
    await world.until(lambda: world.leader() == 2)
    world.admin.multi(topic("u", 3))
    await world.until(lambda: world.keeper.status.partitions == 4)
    await world.until(lambda: world.leader(TopicPartition("u", 2)) == 1)
    before = world.keeper.status
    assert (before.loads, before.differences, before.malformed) == (1, 0, 0)
    assert before.bytes_read > 0


@pytest.mark.parametrize("expires", [False, True])
async def test_what_was_missed_without_a_connection_is_read(world: World, expires: bool) -> None:
    if expires:
        world.server.expire(world.client.session_id)
    else:
        world.client.disconnect()
    assert world.keeper.status.phase is StandbyPhase.DISCONNECTED
    world.admin.multi([SetData(paths.partition_state(T0), state(2)), *topic("u")])
    world.client.reconnect()
    await world.current()
    assert world.leader() == 2
    assert world.keeper.status.partitions == 2
    world.change(leader=1)
    await world.until(lambda: world.leader() == 1)
    assert world.keeper.status.loads == 2


async def test_a_new_session_starts_from_nothing(world: World) -> None:
    """It may be that of a restored ZooKeeper, where the same transaction wrote something else."""
    known = world.keeper.cache
    world.reconnect()
    await world.current()
    assert world.keeper.cache is known
    world.server.expire(world.client.session_id)
    world.client.reconnect()
    await world.current()
    assert world.keeper.cache is not known
    assert world.leader() == 1


@pytest.mark.parametrize("expires", [False, True])
async def test_reconnections_hide_no_garbage(world: World, expires: bool) -> None:
    hidden = gc.get_freeze_count()
    assert hidden > 0
    for loads in (2, 3, 4):
        if expires:
            world.server.expire(world.client.session_id)
        else:
            world.client.disconnect()
        world.client.reconnect()
        await world.until(lambda loads=loads: world.keeper.status.loads == loads)  # type: ignore[misc]
    assert gc.get_freeze_count() <= hidden


async def test_a_connection_lost_while_loading_is_no_end(make: Make) -> None:
    world = make()
    get_children = world.port.get_children
    losses = 3

    async def lose_it(
        paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[tuple[str, ...] | None]:
        nonlocal losses
        found = await get_children(paths, watch=watch)
        if losses:
            losses -= 1
            world.reconnect()
            world.change(leader=5 - losses)
        return found

    world.port.get_children = lose_it  # type: ignore[method-assign]
    world.start()
    await world.current()
    assert world.leader() == 5
    world.change(leader=2)
    await world.until(lambda: world.leader() == 2)


async def test_difference_is_healed(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """A watch that reports nothing any more, for instance."""
    world = make(self_check_interval_s=0.05)
    world.start()
    await world.current()
    await world.until(lambda: world.keeper.status.self_checks > 1)
    assert world.keeper.status.differences == 0
    await world.watches.remove([paths.BROKERS])
    world.watches.take()
    with caplog.at_level(logging.ERROR):
        world.admin.multi(
            [SetData(paths.partition_state(T0), state(2)), Delete(paths.DELETE_TOPICS)]
        )
        await world.until(lambda: world.keeper.status.differences == 1)
        await world.until(lambda: world.leader() == 2)
    (record,) = [r for r in caplog.records if "differs" in r.message]
    (example,) = record.__dict__["examples"]
    assert example["path"] == paths.partition_state(T0)
    assert world.reported == [[paths.partition_state(T0)]]


class OldServers:
    """Servers of a world, without recursive watches until they are upgraded."""

    def __init__(self, world: World) -> None:
        self.are_old = True
        self._add = world.watches.add
        world.watches.add = self._add_if_new  # type: ignore[method-assign]

    async def _add_if_new(self, paths: Sequence[str]) -> None:
        if self.are_old:
            raise RecursiveWatchesUnsupportedError
        await self._add(paths)


async def test_old_servers_have_no_cache(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """It is said once. Newer servers are noticed when they are found."""
    world = make()
    servers = OldServers(world)
    with caplog.at_level(logging.WARNING):
        assert world.keeper.status.is_first_load_awaited
        world.start()
        await world.until(lambda: world.keeper.status.phase is StandbyPhase.UNSUPPORTED)
        await world.until(lambda: not world.keeper.status.is_first_load_awaited)
        world.reconnect()
        await world.until(lambda: world.keeper.status.phase is StandbyPhase.UNSUPPORTED)
    assert [r.message for r in caplog.records].count(
        "No warm standby with these ZooKeeper servers"
    ) == 1
    assert "3.6" in str(world.keeper.status.problem)
    servers.are_old = False
    world.reconnect()
    await world.current()
    assert world.keeper.status.problem is None


async def test_what_fails_is_tried_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regent.runtime.standby_keeper.RETRY_PAUSE_S", 0.01)
    world = make()
    world.fail_reads(UnexpectedZooKeeperError("SYSTEMERROR", "/a"), times=2)
    world.start()
    await world.current()
    assert world.leader() == 1
    assert world.keeper.status.problem is None


async def test_prepared_state_holds_until_it_changes(make: Make) -> None:
    world = make()
    world.start()
    await world.until(lambda: world.keeper.status.is_prepared)
    assert world.prepared() == [T0]
    cache = world.keeper.cache
    cache.cluster.load_leadership({T0: LeaderAndIsr(2, 1, (2,), 1, 1)})
    assert not world.keeper.status.is_prepared


async def test_other_protocol_version_is_prepared_again(make: Make) -> None:
    """Nothing happens in ZooKeeper when a broker says which one it has."""
    world = make()
    world.start()
    await world.until(lambda: world.keeper.status.is_prepared)
    entries = world.keeper.cache.cluster.announced_states.entries
    assert entries is not None
    assert entries.suffix == usual_suffix((2, 6))
    world.channels.report((3, 9))
    assert not world.keeper.status.is_prepared

    def suffix() -> bytes | None:
        entries = world.keeper.cache.cluster.announced_states.entries
        return None if entries is None else entries.suffix

    await world.until(lambda: suffix() == usual_suffix((3, 9)))
    await world.until(lambda: world.keeper.status.is_prepared)


async def test_a_defect_ends_nothing_but_the_cache(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is loaded anew some time later: the controller in the same process needs none."""
    monkeypatch.setattr("regent.runtime.standby_keeper.DEFECT_PAUSE_S", 0.01)
    world.fail_reads(RuntimeError("nobody expects this"), times=1)
    world.change(leader=2)
    await world.until(lambda: world.leader() == 2)
    await world.current()
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert record.exc_info is not None


async def test_upgraded_servers_are_followed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session finds out some time after it."""
    monkeypatch.setattr("regent.runtime.standby_keeper.UNSUPPORTED_PAUSE_S", 0.01)
    world = make()
    servers = OldServers(world)
    world.start()
    await world.until(lambda: world.keeper.status.phase is StandbyPhase.UNSUPPORTED)
    servers.are_old = False
    await world.current()
    assert world.keeper.status.problem is None
