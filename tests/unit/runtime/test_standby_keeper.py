"""The keeper of the standby's cache, over the in-memory ZooKeeper."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from regent.model.errors import RecursiveWatchesUnsupportedError, UnexpectedZooKeeperError
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.runtime.collector import Collector
from regent.runtime.standby_keeper import StandbyKeeper
from regent.standby.status import StandbyPhase
from regent.zk_data import paths
from regent.zk_data.operations import Create, Delete, Operation, SessionState, SetData
from regent.zk_data.topics import TopicZNode, encode_partition_state, encode_topic
from sandbox import wait_until_async
from tests.simulation.zookeeper import (
    Event,
    InMemoryClient,
    InMemoryRecursiveWatches,
    InMemoryZooKeeper,
    InMemoryZooKeeperPort,
)
from tests.support.broker_znodes import encode_broker
from tests.unit.controller.world import make_broker
from tests.unit.runtime.worlds import KeptChannels

DEADLINE_S = 60.0
T0 = TopicPartition("t", 0)


def state(leader: int) -> bytes:
    return encode_partition_state(LeaderAndIsr(leader, 0, (1, 2), 1, 0))


def topic(name: str, partitions: int = 1) -> list[Operation]:
    assignments = {p: ReplicaAssignment((1, 2)) for p in range(partitions)}
    created: list[Operation] = [
        Create(paths.topic(name), encode_topic(TopicZNode(None, assignments))),
        Create(paths.topic_partitions(name)),
    ]
    for partition in range(partitions):
        tp = TopicPartition(name, partition)
        created += [Create(paths.topic_partition(tp)), Create(paths.partition_state(tp), state(1))]
    return created


class World:
    """A keeper that runs, its client, and somebody who changes things."""

    def __init__(self, *, self_check_interval_s: float) -> None:
        self.server = InMemoryZooKeeper()
        self.admin = self.server.connect()
        for path in (*paths.PERSISTENT_PATHS, paths.CLUSTER):
            self.admin.multi([Create(path)])
        self.admin.multi(topic("t"))
        self.client: InMemoryClient = self.server.connect()
        self.watches = InMemoryRecursiveWatches(self.client)
        self.port = InMemoryZooKeeperPort(self.client)
        self.channels = KeptChannels()
        self.keeper = StandbyKeeper(
            zookeeper=self.port,
            watches=self.watches,
            channels=self.channels,
            collector=Collector(),
            self_check_interval_s=self_check_interval_s,
        )
        self.client.on_event(self._report)
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.keeper.run())
        self.keeper.session_changed(SessionState.CONNECTED)

    def _report(self, event: Event) -> None:
        if isinstance(event, SessionState):
            self.keeper.session_changed(event)

    async def until(self, condition: Callable[[], bool]) -> None:
        def is_so() -> bool:
            assert self.task is not None
            assert not self.task.done(), self.task.result()
            return condition()

        await wait_until_async(is_so, describe="the keeper", timeout_s=DEADLINE_S, interval_s=0.001)

    async def current(self) -> None:
        await self.until(
            lambda: (
                self.keeper.status.phase is StandbyPhase.CURRENT and not self.keeper.status.dirty
            )
        )

    def register(self, broker_id: int) -> None:
        content = encode_broker(make_broker(broker_id), timestamp_ms=0)
        self.admin.multi([Create(paths.broker_id(broker_id), content)])

    def prepared(self) -> list[TopicPartition]:
        return sorted(self.keeper.cache.cluster.announced_states)

    def leader(self, tp: TopicPartition = T0) -> int | None:
        known = self.keeper.cache.cluster.leadership.get(tp)
        return None if known is None else known.leader


@pytest.fixture
async def make() -> AsyncIterator[Callable[..., World]]:
    made: list[World] = []

    def world(*, self_check_interval_s: float = 3_600) -> World:
        made.append(World(self_check_interval_s=self_check_interval_s))
        return made[-1]

    yield world
    for each in made:
        if each.task is not None:
            each.task.cancel()
            await asyncio.wait([each.task])


Make = Callable[..., World]


async def test_changes_are_followed(make: Make) -> None:
    world = make()
    world.start()
    await world.current()
    assert world.leader() == 1
    world.admin.multi([SetData(paths.partition_state(T0), state(2))])
    await world.until(lambda: world.leader() == 2)
    world.admin.multi(topic("u", 3))
    await world.until(lambda: world.keeper.status.partitions == 4)
    await world.until(lambda: world.leader(TopicPartition("u", 2)) == 1)
    before = world.keeper.status
    assert (before.loads, before.differences, before.malformed) == (1, 0, 0)
    assert before.bytes_read > 0


async def test_many_changes_are_one_reading(make: Make) -> None:
    world = make()
    world.admin.multi(topic("u", 200))
    world.start()
    await world.current()
    before = world.keeper.status.refreshes
    for partition in range(200):
        tp = TopicPartition("u", partition)
        world.admin.multi([SetData(paths.partition_state(tp), state(2))])
    await world.until(lambda: world.leader(TopicPartition("u", 199)) == 2)
    assert world.keeper.status.refreshes - before == 1


@pytest.mark.parametrize("expires", [False, True])
async def test_what_was_missed_without_a_connection_is_read(make: Make, expires: bool) -> None:
    world = make()
    world.start()
    await world.current()
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
    world.admin.multi([SetData(paths.partition_state(T0), state(1))])
    await world.until(lambda: world.leader() == 1)
    assert world.keeper.status.loads == 2


async def test_garbage_is_not_hidden_from_the_collector_by_each_reconnection(
    make: Callable[..., World],
) -> None:
    world = make()
    world.start()
    await world.current()
    hidden = gc.get_freeze_count()
    assert hidden > 0
    for loads in (2, 3, 4):
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
            world.client.disconnect()
            world.client.reconnect()
            world.admin.multi([SetData("/brokers/topics/t/partitions/0/state", state(5 - losses))])
        return found

    world.port.get_children = lose_it  # type: ignore[method-assign]
    world.start()
    await world.current()
    assert world.leader() == 5
    world.admin.multi([SetData(paths.partition_state(T0), state(2))])
    await world.until(lambda: world.leader() == 2)


async def test_a_difference_is_logged_counted_and_healed(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
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


async def test_servers_without_recursive_watches_have_no_cache(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once. Newer servers are noticed when they are found."""
    world = make()
    add, is_old = world.watches.add, True

    async def add_if_new(paths: Sequence[str]) -> None:
        if is_old:
            raise RecursiveWatchesUnsupportedError
        await add(paths)

    world.watches.add = add_if_new  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING):
        world.start()
        await world.until(lambda: world.keeper.status.phase is StandbyPhase.UNSUPPORTED)
        world.client.disconnect()
        world.client.reconnect()
        await world.until(lambda: world.keeper.status.phase is StandbyPhase.UNSUPPORTED)
    assert [r.message for r in caplog.records].count(
        "No warm standby with these ZooKeeper servers"
    ) == 1
    assert "3.6" in str(world.keeper.status.problem)
    is_old = False
    world.client.disconnect()
    world.client.reconnect()
    await world.current()
    assert world.keeper.status.problem is None


async def test_what_fails_is_tried_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regent.runtime.standby_keeper.RETRY_PAUSE_S", 0.01)
    world = make()
    get_data, failures = world.port.get_data, 2

    async def fail(paths: Sequence[str], *, watch: bool = False) -> object:
        nonlocal failures
        if failures:
            failures -= 1
            raise UnexpectedZooKeeperError("SYSTEMERROR", paths[0])
        return await get_data(paths, watch=watch)

    world.port.get_data = fail  # type: ignore[assignment,method-assign]
    world.start()
    await world.current()
    assert world.leader() == 1
    assert world.keeper.status.problem is None


async def test_a_defect_ends_nothing_but_the_cache(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is loaded anew some time later: the controller in the same process needs none."""
    monkeypatch.setattr("regent.runtime.standby_keeper.DEFECT_PAUSE_S", 0.01)
    world = make()
    world.start()
    await world.current()
    get_data, has_failed = world.port.get_data, False

    async def fail_once(paths: Sequence[str], *, watch: bool = False) -> object:
        nonlocal has_failed
        if not has_failed:
            has_failed = True
            raise RuntimeError("nobody expects this")
        return await get_data(paths, watch=watch)

    world.port.get_data = fail_once  # type: ignore[assignment,method-assign]
    world.admin.multi([SetData(paths.partition_state(T0), state(2))])
    await world.until(lambda: world.leader() == 2)
    await world.current()
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert record.exc_info is not None


async def test_a_node_that_may_not_be_read_is_left_out(make: Make) -> None:
    world = make()
    get_data = world.port.get_data

    async def refuse(some: Sequence[str], *, watch: bool = False) -> object:
        if paths.partition_state(T0) in some:
            raise UnexpectedZooKeeperError("NOAUTH", paths.partition_state(T0))
        return await get_data(some, watch=watch)

    world.port.get_data = refuse  # type: ignore[assignment,method-assign]
    world.admin.multi(topic("u"))
    world.start()
    await world.current()
    assert world.leader() is None
    assert world.leader(TopicPartition("u", 0)) == 1
    assert world.keeper.status.malformed == 1


class TestTakeOver:
    """What whoever takes over is given."""

    async def test_what_is_dirty_is_read_first(self, make: Make) -> None:
        world = make()
        world.start()
        await world.current()
        world.admin.multi([SetData(paths.partition_state(T0), state(2)), *topic("u", 3)])
        copy = await world.keeper.read()
        assert copy is not None
        assert copy.cluster.leadership[T0].leader == 2
        assert copy.cluster.leadership[TopicPartition("u", 2)].leader == 1
        assert copy.topic_mzxids.keys() == {"t", "u"}

    async def test_what_it_sends_is_prepared_as_the_cluster_changes(self, make: Make) -> None:
        world = make()
        world.start()
        await world.until(lambda: world.prepared() == [T0])
        world.admin.multi([*topic("u", 2)])
        u0, u1 = TopicPartition("u", 0), TopicPartition("u", 1)
        await world.until(lambda: world.prepared() == [T0, u0, u1])
        world.admin.multi([SetData(paths.partition_state(T0), state(2))])
        await world.until(lambda: world.leader() == 2 and world.prepared() == [T0, u0, u1])
        copy = await world.keeper.read()
        assert copy is not None
        assert sorted(copy.cluster.announced_states) == [T0, u0, u1]
        assert copy.cluster.announced_states[T0].leader_and_isr.leader == 2

    async def test_brokers_that_there_are_are_connected_to(self, make: Make) -> None:
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

    async def test_nothing_is_prepared_while_this_process_is_the_controller(
        self, make: Make
    ) -> None:
        world = make()
        world.start()
        await world.until(lambda: world.prepared() == [T0])
        assert await world.keeper.read() is not None
        assert world.prepared() == []
        world.admin.multi([SetData(paths.partition_state(T0), state(2))])
        await world.until(lambda: world.leader() == 2)
        refreshes = world.keeper.status.refreshes
        world.admin.multi([SetData(paths.partition_state(T0), state(1))])
        await world.until(lambda: world.keeper.status.refreshes > refreshes)
        assert world.prepared() == []
        world.keeper.resigned()
        await world.until(lambda: world.prepared() == [T0])
        assert world.keeper.status.copies == 1

    async def test_it_does_not_wait_until_changes_cease(self, make: Make) -> None:
        """What changes after its beginning is reported to the controller, as after any reading."""
        world = make()
        world.start()
        await world.current()
        get_data, number = world.port.get_data, 0

        async def change(some: Sequence[str], *, watch: bool = False) -> object:
            nonlocal number
            found = await get_data(some, watch=watch)
            number += 1
            world.admin.multi([SetData(paths.partition_state(T0), state(number))])
            return found

        world.admin.multi([SetData(paths.partition_state(T0), state(2))])
        world.port.get_data = change  # type: ignore[assignment,method-assign]
        copy = await world.keeper.read()
        assert copy is not None
        assert number == 1
        assert copy.cluster.leadership[T0].leader == 2

    async def test_a_reading_under_way_is_waited_for(self, make: Make) -> None:
        """What it has taken is not dirty any more, and not known yet."""
        world = make()
        world.start()
        await world.current()
        get_data, asked, answer = world.port.get_data, asyncio.Event(), asyncio.Event()

        async def wait(some: Sequence[str], *, watch: bool = False) -> object:
            asked.set()
            await answer.wait()
            return await get_data(some, watch=watch)

        world.port.get_data = wait  # type: ignore[assignment,method-assign]
        world.admin.multi([SetData(paths.partition_state(T0), state(2))])
        async with asyncio.timeout(DEADLINE_S):
            await asked.wait()
        reading = asyncio.create_task(world.keeper.read())
        await asyncio.sleep(0)
        assert not reading.done()
        answer.set()
        copy = await reading
        assert copy is not None
        assert copy.cluster.leadership[T0].leader == 2

    async def test_there_is_no_copy_before_everything_was_read(self, make: Make) -> None:
        world = make()
        get_children = world.port.get_children
        copies: list[object] = []

        async def ask(
            some: Sequence[str], *, watch: bool = False
        ) -> Sequence[tuple[str, ...] | None]:
            copies.append(await world.keeper.read())
            return await get_children(some, watch=watch)

        world.port.get_children = ask  # type: ignore[assignment,method-assign]
        assert await world.keeper.read() is None
        world.start()
        await world.current()
        assert copies == [None]
        assert await world.keeper.read() is not None

    @pytest.mark.parametrize("when", ["before", "meanwhile"])
    async def test_there_is_none_once_events_may_have_been_lost(
        self, make: Make, when: str
    ) -> None:
        world = make()
        world.start()
        await world.current()
        get_data = world.port.get_data

        async def lose(some: Sequence[str], *, watch: bool = False) -> object:
            found = await get_data(some, watch=watch)
            world.client.disconnect()
            world.admin.multi([SetData(paths.partition_state(T0), state(5))])
            world.client.reconnect()
            return found

        world.admin.multi([SetData(paths.partition_state(T0), state(2))])
        if when == "before":
            world.client.disconnect()
            world.client.reconnect()
        else:
            world.port.get_data = lose  # type: ignore[assignment,method-assign]
        assert await world.keeper.read() is None
        world.port.get_data = get_data  # type: ignore[method-assign]
        await world.current()
        assert await world.keeper.read() is not None
        assert world.keeper.status.copies == 1

    async def test_what_was_left_out_is_read_again(self, make: Make) -> None:
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

    async def test_what_cannot_be_read_costs_the_copy_and_not_the_controller(
        self, make: Make, caplog: pytest.LogCaptureFixture
    ) -> None:
        world = make()
        world.start()
        await world.current()
        get_data = world.port.get_data

        async def fail(some: Sequence[str], *, watch: bool = False) -> object:
            raise UnexpectedZooKeeperError("SYSTEMERROR", some[0])

        world.port.get_data = fail  # type: ignore[assignment,method-assign]
        world.admin.multi([SetData(paths.partition_state(T0), state(2))])
        assert await world.keeper.read() is None
        (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
        assert "SYSTEMERROR" in record.__dict__["error"]
        world.port.get_data = get_data  # type: ignore[method-assign]
        copy = await world.keeper.read()
        assert copy is not None
        assert copy.cluster.leadership[T0].leader == 2

    async def test_a_defect_costs_the_copy_and_the_cache_is_loaded_anew(
        self, make: Make, caplog: pytest.LogCaptureFixture
    ) -> None:
        world = make()
        world.start()
        await world.current()
        get_data = world.port.get_data

        async def fail(some: Sequence[str], *, watch: bool = False) -> object:
            raise RuntimeError("nobody expects this")

        world.port.get_data = fail  # type: ignore[assignment,method-assign]
        world.admin.multi([SetData(paths.partition_state(T0), state(2))])
        assert await world.keeper.read() is None
        world.port.get_data = get_data  # type: ignore[method-assign]
        assert [r.levelno for r in caplog.records if r.exc_info] == [logging.ERROR]
        await world.until(lambda: world.keeper.status.loads == 2)
        await world.current()
        assert world.leader() == 2

    async def test_a_take_over_ends_a_self_check(self, make: Make) -> None:
        """What was read for the one may be newer than what was read for the other."""
        world = make()
        world.start()
        await world.current()
        get_data = world.port.get_data

        async def take_over(some: Sequence[str], *, watch: bool = False) -> object:
            found = await get_data(some, watch=watch)
            if paths.partition_state(T0) in some:
                world.port.get_data = get_data  # type: ignore[method-assign]
                world.admin.multi([SetData(paths.partition_state(T0), state(2))])
                assert await world.keeper.read() is not None
            return found

        world.port.get_data = take_over  # type: ignore[assignment,method-assign]
        assert await world.keeper.check() == []
        assert world.keeper.status.self_checks == 0
        assert await world.keeper.check() == []
        assert world.keeper.status.self_checks == 1
