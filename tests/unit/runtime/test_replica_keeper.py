"""Replicas that know each other: the in-memory ZooKeeper, and heartbeats over real sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest

from regent.controller import events as e
from regent.controller.effects import StillAbsent
from regent.model.errors import UnexpectedZooKeeperError
from regent.network.heartbeats import Heartbeats
from regent.replicas.suspicion import SuspicionSettings
from regent.runtime import replica_keeper
from regent.runtime.replica_keeper import ReplicaKeeper
from regent.simulation.zookeeper import Event, InMemoryZooKeeper
from regent.sockets.listening import listening_socket
from regent.zk_data.operations import Create, SessionState, WatchedEvent
from sandbox.waiting import DEADLINE_S
from tests.simulation.zookeeper_ports import InMemoryZooKeeperPort
from tests.support.waiting import until

ELECTION = "/regent/election"
PRESENCE = "/regent/election-presence"
LOCALHOST = "127.0.0.1"
SETTINGS = SuspicionSettings(heartbeat_s=0.02, silence_s=5.0)


class Replica:
    """One replica, without a controller.

    Attributes:
        is_active: Whether it is the controller, as the test says.
    """

    def __init__(self, server: InMemoryZooKeeper, instance: str) -> None:
        self.is_active = False
        self.is_ready = True
        self.events: list[e.ControllerEvent] = []
        self.client = server.connect()
        self.port = InMemoryZooKeeperPort(self.client)
        self.heartbeats = Heartbeats(
            instance=instance,
            listening=listening_socket(LOCALHOST, 0, setting="replica"),
            settings=SETTINGS,
            tls=None,
        )
        self.keeper = ReplicaKeeper(
            zookeeper=self.port,
            heartbeats=self.heartbeats,
            controller_id=1_000_000_001,
            election_path=ELECTION,
            own_host=lambda: LOCALHOST,
            enqueue=self.events.append,
            is_ready=lambda: self.is_ready,
            is_active=lambda: self.is_active,
        )
        self.client.on_event(self._told)
        self.keeper.session_changed(SessionState.CONNECTED)
        self._running = asyncio.create_task(self.keeper.run())
        self.processing: asyncio.Task[None] = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]

    @property
    def session_id(self) -> int:
        return self.client.session_id

    def queue_up(self) -> None:
        self.client.multi([Create(f"{ELECTION}/x-__lock__", ephemeral=True, sequential=True)])

    async def knows(self, *others: Replica) -> None:
        """Wait until it has answers of these, and of no others."""

        def answered() -> bool:
            problems = self.heartbeats.problems()
            return len(problems) == len(others) and set(problems.values()) <= {None}

        await until(answered, f"answers of {len(others)}")

    async def has_heard(self, count: int) -> None:
        """Wait until it has answers of so many: it suspects only whom it has heard."""
        await until(
            lambda: list(self.heartbeats.problems().values()).count(None) == count,
            f"answers of {count}",
        )

    async def ends(self) -> None:
        """As a process that is killed: its session lives on."""
        self._running.cancel()
        self.processing.cancel()
        await asyncio.gather(self._running, self.processing, return_exceptions=True)
        await asyncio.to_thread(self.heartbeats.close)

    def _told(self, event: Event) -> None:
        if isinstance(event, WatchedEvent):
            self.keeper.watch_fired(event)
        else:
            self.keeper.session_changed(event)


class World:
    """Replicas that come and go."""

    def __init__(self) -> None:
        self.server = InMemoryZooKeeper()
        admin = self.server.connect()
        for path in ("/regent", ELECTION):
            admin.multi([Create(path)])
        self.replicas: list[Replica] = []

    def add(self, instance: str, *, contends: bool = True) -> Replica:
        replica = Replica(self.server, instance)
        self.replicas.append(replica)
        replica.queue_up()
        if contends:
            replica.keeper.contend()
        return replica


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    for replica in world.replicas:
        await replica.ends()


async def test_nothing_is_written_before_a_cluster_was_found(world: World) -> None:
    a = world.add("a", contends=False)
    b = world.add("b")
    await until(lambda: len(world.server.children(PRESENCE)) == 1, "b to register")
    assert a.heartbeats.problems() == b.heartbeats.problems() == {}
    a.keeper.contend()
    await a.knows(b)
    await b.knows(a)


async def test_one_that_dies_is_an_event_that_names_its_session(world: World) -> None:
    a, b = world.add("a"), world.add("b")
    await a.knows(b)
    await b.ends()
    await until(lambda: a.events, "a suspicion")
    event = a.events[0]
    assert isinstance(event, e.ReplicasAbsent)
    assert event.session_id == a.session_id
    assert [replica.session_id for replica in event.absent] == [b.session_id]
    assert "port refuses" in event.absent[0].reason
    assert event.absent[0].is_dead
    assert not event.is_named


async def test_who_was_never_heard_goes_with_the_event_and_is_not_suspected(world: World) -> None:
    """The former self of a replica, for instance: killed before this one was started."""
    former, b = world.add("former"), world.add("b")
    await former.knows(b)
    await former.ends()
    a = world.add("a")
    await until(lambda: a.keeper.unheard, "the former one to be unheard")
    await a.has_heard(1)
    await b.ends()
    await until(lambda: a.events, "a suspicion")
    event = a.events[-1]
    assert isinstance(event, e.ReplicasAbsent)
    assert [replica.session_id for replica in event.absent] == [b.session_id]
    assert [replica.session_id for replica in event.unheard] == [former.session_id]
    assert "does not answer" in event.unheard[0].reason


async def test_it_says_who_is_still_absent(world: World) -> None:
    former, b, c = (world.add(name) for name in ("former", "b", "c"))
    await former.knows(b, c)
    await former.ends()
    a = world.add("a")
    await until(lambda: a.keeper.unheard, "the former one to be unheard")
    await a.has_heard(2)
    await b.ends()
    await until(lambda: a.events, "a suspicion")
    asked = tuple(replica.session_id for replica in (former, b, c))
    assert a.keeper.still_absent(StillAbsent(asked, ())) == (b.session_id,)
    assert a.keeper.still_absent(StillAbsent((), asked)) == (former.session_id,)


async def test_one_that_ends_as_it_should_is_not_suspected(world: World) -> None:
    a, b = world.add("a"), world.add("b")
    await a.knows(b)
    await b.keeper.close()
    await until(lambda: "it has stopped" in str(a.heartbeats.problems()), "the end of b")
    assert a.events == []
    assert sum(a.keeper.suspicions.values()) == 0


async def test_the_controller_itself_suspects_nobody(world: World) -> None:
    a, b = world.add("a"), world.add("b")
    await a.knows(b)
    a.is_active = True
    await b.ends()
    await until(lambda: a.keeper.suspicions["dead"], "a suspicion")
    assert a.events == []


async def test_it_registers_under_each_session(world: World) -> None:
    a, b = world.add("a"), world.add("b")
    await a.knows(b)
    world.server.expire(b.session_id)
    await a.knows()
    b.client.reconnect()
    await a.knows(b)
    assert len(world.server.children(PRESENCE)) == 2


async def test_bad_presence_is_skipped(world: World, caplog: pytest.LogCaptureFixture) -> None:
    a = world.add("a")
    await until(lambda: world.server.children(PRESENCE), "a to register")
    stranger = world.server.connect()
    stranger.multi([Create(f"{PRESENCE}/junk", b"?", ephemeral=True)])
    b = world.add("b")
    await a.knows(b)
    assert "Registration of a replica skipped" in [record.message for record in caplog.records]


async def test_a_right_that_is_missing_is_shown_and_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(replica_keeper, "RETRY_PAUSE_S", 0.01)
    a = world.add("a", contends=False)
    multi = a.port.multi
    refused = 0

    async def refuse(operations: Any) -> Any:
        nonlocal refused
        refused += 1
        if refused < 4:
            raise UnexpectedZooKeeperError("NOAUTH", operations[0].path)
        return await multi(operations)

    monkeypatch.setattr(a.port, "multi", refuse)
    a.keeper.contend()
    await until(lambda: world.server.children(PRESENCE), "a to register")
    await until(lambda: a.keeper.status()["problem"] is None, "no problem")
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert [record.message for record in warnings] == ["Replicas cannot know each other"]


class TestHandingOver:
    async def led(self, world: World) -> tuple[Replica, Replica, Replica]:
        """One that leads, and two that are ready, in this order in the queue."""
        a, b, c = (world.add(name) for name in "abc")
        a.is_active = True
        for other in (b, c):
            await other.knows(a, c if other is b else b)
        await a.knows(b, c)
        await until(lambda: a.heartbeats.ready() == {"b", "c"}, "both to be ready")
        return a, b, c

    async def test_the_next_that_is_ready_is_named_and_waited_for(self, world: World) -> None:
        a, b, c = await self.led(world)
        b.is_ready = False
        await until(lambda: a.heartbeats.ready() == {"c"}, "b not to be ready")
        handing_over = asyncio.create_task(a.keeper.hand_over(a.processing))
        await until(lambda: c.events, "c to be named")
        absent = (e.AbsentReplica(a.session_id, _reason(c)),)
        assert c.events == [e.ReplicasAbsent(c.session_id, absent, is_named=True)]
        assert "leaves, and has named this one" in absent[0].reason
        assert b.events == []
        a.keeper.event_processed()  # something else
        assert not handing_over.done()
        a.is_active = False
        a.keeper.event_processed()
        await _soon(handing_over)

    async def test_without_anybody_who_is_ready_nothing_is_waited_for(self, world: World) -> None:
        a, b, c = await self.led(world)
        b.is_ready = c.is_ready = False
        await until(lambda: not a.heartbeats.ready(), "nobody to be ready")
        await _soon(a.keeper.hand_over(a.processing))
        assert b.events == c.events == []

    async def test_one_that_leads_nothing_names_nobody(self, world: World) -> None:
        a, b, c = await self.led(world)
        a.is_active = False
        await _soon(a.keeper.hand_over(a.processing))
        assert b.events == c.events == []

    async def test_a_successor_that_does_not_come_is_not_waited_for_forever(
        self,
        world: World,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr(replica_keeper, "HAND_OVER_MAX_S", 0.05)
        a, _, _ = await self.led(world)
        await _soon(a.keeper.hand_over(a.processing))
        assert "No other replica has taken over" in [record.message for record in caplog.records]

    async def test_a_controller_that_has_ended_hands_nothing_over(self, world: World) -> None:
        a, b, c = await self.led(world)
        handing_over = asyncio.create_task(a.keeper.hand_over(a.processing))
        await until(lambda: b.events, "b to be named")
        a.processing.cancel()
        await _soon(handing_over)
        assert c.events == []

    async def test_who_leaves_is_not_ready_and_takes_nothing_over(self, world: World) -> None:
        a, b, c = await self.led(world)
        await b.keeper.hand_over(b.processing)
        await until(lambda: a.heartbeats.ready() == {"c"}, "b not to be ready")
        a.heartbeats.name("b")
        a.heartbeats.name("c")
        await until(lambda: c.events, "c to be named")
        assert b.events == []


def _reason(replica: Replica) -> str:
    event = replica.events[0]
    assert isinstance(event, e.ReplicasAbsent)
    return event.absent[0].reason


async def _soon(awaited: Awaitable[Any]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await awaited
