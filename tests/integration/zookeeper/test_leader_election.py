"""Replicas that elect one among themselves."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import threading
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock
from kazoo.security import ACL, OPEN_ACL_UNSAFE, make_digest_acl

from regent.zk_data.operations import Create, Delete, SessionState
from regent.zk_data.replicas import queue_order
from regent.zookeeper import awaited_answers
from regent.zookeeper.awaited_answers import AwaitedAnswer
from regent.zookeeper.leader_election import Identity, LeaderElection, contenders
from sandbox import ZooKeeper
from sandbox.waiting import DEADLINE_S
from sandbox.znodes import end_session
from tests.integration.zookeeper.harness import (
    Connected,
    connected,
    settings_for,
    until,
)
from tests.support.present import present
from tests.support.thread_shortage import thread_shortage

pytestmark = pytest.mark.integration

PATH = "/regent/election"


class Replica:
    def __init__(self, client: Connected, name: str) -> None:
        self.client = client
        self.terms: list[str] = []
        self.election = LeaderElection(
            client.session,
            identifier=name,
            on_elected=lambda: self.terms.append("elected"),
            on_lost=lambda: self.terms.append("lost"),
            path=PATH,
        )

    @property
    def leads(self) -> bool:
        return self.election.is_leader


@contextlib.asynccontextmanager
async def replica(
    server: ZooKeeper, name: str, *, chroot: str = "/kafka", session_timeout_ms: int = 60_000
) -> AsyncIterator[Replica]:
    settings = settings_for(server.connect_string + chroot, session_timeout_ms=session_timeout_ms)
    async with connected(settings) as client:
        made = Replica(client, name)
        async with made.election:
            yield made


@contextlib.asynccontextmanager
async def two_replicas(server: ZooKeeper, chroot: str) -> AsyncIterator[tuple[Replica, Replica]]:
    """The one that leads, and the one that stands behind it."""
    async with (
        replica(server, "pod-0", chroot=chroot) as first,
        replica(server, "pod-1", chroot=chroot) as second,
    ):
        await until(lambda: first.leads or second.leads)
        await until_queued(first, 2)
        yield (first, second) if first.leads else (second, first)


async def test_one_of_two_leads_and_the_other_follows(shared_server: ZooKeeper) -> None:
    chroot = "/succession"
    async with replica(shared_server, "pod-0", chroot=chroot) as first:
        await until(lambda: first.leads)
        async with replica(shared_server, "pod-1", chroot=chroot) as second:
            await until_queued(second, 2)
            assert await contenders(second.client.port, PATH) == ["pod-0", "pod-1"]
            assert second.terms == []
            await first.election.close()
            assert first.terms == ["elected", "lost"]
            await until(lambda: second.leads)
            assert await contenders(second.client.port, PATH) == ["pod-1"]
    assert second.terms == ["elected", "lost"]
    assert first.terms == ["elected", "lost"]


async def test_a_place_that_is_closed_is_a_problem_until_it_is_open(
    shared_server: ZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    def set_access(access: list[ACL]) -> None:
        owner = KazooClient(shared_server.connect_string, auth_data=[("digest", "user:secret")])
        owner.start()
        if owner.exists("/closed" + PATH) is None:
            owner.create("/closed" + PATH, b"", makepath=True)
        owner.set_acls("/closed" + PATH, access)
        owner.stop()
        owner.close()

    await asyncio.to_thread(set_access, [make_digest_acl("user", "secret", all=True)])
    async with replica(shared_server, "pod-0", chroot="/closed") as alone:
        await until(lambda: "NOAUTH for /closed" in (alone.election.problem or ""))
        assert alone.terms == []
        await asyncio.to_thread(set_access, OPEN_ACL_UNSAFE)
        await until(lambda: alone.leads)
        assert alone.election.problem is None
    (logged,) = [r for r in caplog.records if r.message.startswith("The election among the")]
    assert logged.exc_info is None


async def test_a_place_that_a_quota_closes_is_named_with_the_way_out(
    quota_server: ZooKeeper,
) -> None:
    def limit(count: int) -> None:
        client = KazooClient(quota_server.connect_string)
        client.start()
        place = "/zookeeper/quota/election"
        for path, content in (
            ("/election", b""),
            (f"{place}/zookeeper_limits", b"count=-1,bytes=-1=;countHardLimit=%d" % count),
            (f"{place}/zookeeper_stats", b"count=1,bytes=0"),
        ):
            client.ensure_path(path)
            client.set(path, content)
        client.stop()
        client.close()

    await asyncio.to_thread(limit, 1)
    async with replica(quota_server, "pod-0", chroot="/election") as alone:
        await until(lambda: "QUOTAEXCEEDED for /election" in (alone.election.problem or ""))
        assert (alone.election.problem or "").endswith("(setquota, delquota)")
        await asyncio.to_thread(limit, 100)
        await until(lambda: alone.leads)


async def test_resigning_goes_to_the_end_of_the_queue(shared_server: ZooKeeper) -> None:
    async with two_replicas(shared_server, "/resigning") as (leader, other):
        leader.election.resign()
        assert leader.terms == ["elected", "lost"]
        assert not leader.leads
        await until(lambda: other.leads)
        await until_queued(leader, 2)
        leader.election.resign()  # not the leader any more: nothing happens
        assert leader.terms == ["elected", "lost"]
        other.election.resign()
        await until(lambda: leader.leads)
        assert leader.terms == ["elected", "lost", "elected"]


async def test_an_expired_session_ends_the_term_and_begins_a_new_candidacy(
    shared_server: ZooKeeper,
) -> None:
    async with two_replicas(shared_server, "/expiry") as (leader, other):
        session_id, _password = present(leader.client.session.generation().client.client_id)
        await asyncio.to_thread(end_session, shared_server.connect_string, session_id)
        await until(lambda: other.leads)
        await until(lambda: leader.terms == ["elected", "lost"])
        await leader.client.state(SessionState.CONNECTED, times=2)
        await until_queued(other, 2)
        other.election.resign()
        await until(lambda: leader.leads)


async def test_a_deleted_node_ends_the_term(shared_server: ZooKeeper) -> None:
    async with replica(shared_server, "pod-0", chroot="/deleted") as only:
        await until(lambda: only.leads)
        (children,) = await only.client.port.get_children([PATH])
        assert children is not None
        await only.client.port.multi([Delete(f"{PATH}/{children[0]}")])
        await until(lambda: only.terms[:2] == ["elected", "lost"])
        await until(lambda: only.leads)


async def test_those_whose_places_are_passed_queue_up_again(shared_server: ZooKeeper) -> None:
    """One takes over early, and deletes all places before its own in one transaction."""
    async with contextlib.AsyncExitStack() as stack:
        made: list[Replica] = []
        for number in range(3):
            name = f"pod-{number}"
            made.append(
                await stack.enter_async_context(replica(shared_server, name, chroot="/passed"))
            )
            await until_queued(made[-1], number + 1)
        first, second, third = made
        await until(lambda: first.leads)
        (children,) = await third.client.port.get_children([PATH])
        places = [f"{PATH}/{name}" for name in queue_order(children or ())]
        await third.client.port.multi([Delete(place) for place in places[:2]])
        await until(lambda: third.leads)
        await until_queued(third, 3)
        queue = await contenders(third.client.port, PATH)
        assert (queue[0], sorted(queue[1:])) == ("pod-2", ["pod-0", "pod-1"])
        assert first.terms == ["elected", "lost"]
        assert second.terms == []


async def test_a_lost_connection_alone_does_not_end_a_term(server: ZooKeeper) -> None:
    async with replica(server, "pod-0", session_timeout_ms=60_000) as only:
        await until(lambda: only.leads)
        await asyncio.to_thread(server.restart)
        await only.client.state(SessionState.RECONNECTED)
        assert only.terms == ["elected"]
        assert only.leads


async def test_the_fence_ends_the_term_while_the_server_hangs(server: ZooKeeper) -> None:
    async with replica(server, "pod-0", session_timeout_ms=3_000) as only:
        await until(lambda: only.leads)
        server.pause()
        await until(lambda: only.terms == ["elected", "lost"])
        assert SessionState.EXPIRED not in only.client.states
        server.resume()
        await until(lambda: only.leads)
        assert only.terms == ["elected", "lost", "elected"]


async def until_queued(asking: Replica, count: int) -> None:
    """Wait until so many replicas are in the queue."""
    async with asyncio.timeout(DEADLINE_S):
        for _ in itertools.count():
            if len(await contenders(asking.client.port, PATH)) == count:
                return
            await asyncio.sleep(0.01)


async def test_a_candidacy_that_no_thread_can_be_started_for_is_tried_again(
    shared_server: ZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(shared_server.connect_string + "/shortage")
    async with connected(settings) as client:
        alone = Replica(client, "pod-0")
        with thread_shortage() as refused:
            alone.election.start()
            assert "can't start new thread" in (alone.election.problem or "")
            await until(lambda: refused.count("leader-election") > 1)
        await until(lambda: alone.leads)
        assert alone.election.problem is None
        await alone.election.close()
    assert alone.terms == ["elected", "lost"]
    assert len([r for r in caplog.records if r.message.startswith("The election among the")]) == 1


async def test_a_candidacy_under_a_later_session_is_tried_again_too(
    shared_server: ZooKeeper,
) -> None:
    async with replica(shared_server, "pod-0", chroot="/shortage-later") as alone:
        await until(lambda: alone.leads)
        session_id, _password = present(alone.client.session.generation().client.client_id)
        await asyncio.to_thread(end_session, shared_server.connect_string, session_id)
        with thread_shortage(started_by=threading.current_thread().name) as refused:
            await until(lambda: "leader-election" in refused)
            assert "can't start new thread" in (alone.election.problem or "")
            assert not alone.leads
        await until(lambda: alone.leads)


async def test_a_replica_that_leaves_before_it_got_a_thread_contends_no_more(
    shared_server: ZooKeeper,
) -> None:
    async with connected(settings_for(shared_server.connect_string + "/left")) as client:
        alone = Replica(client, "pod-0")
        with thread_shortage():
            alone.election.start()
            await alone.election.close()
        assert alone.election._next_attempt is None
        assert await contenders(client.port, PATH) == []


async def test_an_error_that_nobody_expects_does_not_end_the_candidacy(
    shared_server: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire, failures = Lock.acquire, [MemoryError()]

    def fail_once(lock: Lock) -> bool:
        if failures:
            raise failures.pop()
        return bool(acquire(lock))

    monkeypatch.setattr(Lock, "acquire", fail_once)
    async with replica(shared_server, "pod-0", chroot="/memory") as alone:
        await until(lambda: "MemoryError" in (alone.election.problem or ""))
        await until(lambda: alone.leads)
        assert alone.election.problem is None
        assert alone.election.defect() is None


async def test_a_replica_leaves_in_order_where_no_thread_can_be_started(
    shared_server: ZooKeeper,
) -> None:
    """Nobody may have to wait for the end of its session."""
    async with (
        connected(settings_for(shared_server.connect_string + "/leaving")) as other,
        replica(shared_server, "pod-0", chroot="/leaving") as leaving,
    ):
        await until(lambda: leaving.leads)
        with thread_shortage():
            await leaving.election.close()
            assert await contenders(other.port, PATH) == []
            await leaving.client.session.close()
        assert leaving.terms == ["elected", "lost"]


async def test_a_place_of_its_own_that_was_left_keeps_no_replica_from_leading(
    shared_server: ZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    """Its creation, or its removal, was broken off, and then it was not found."""
    left = f"{PATH}/{uuid.uuid4().hex}__lock__"
    async with connected(settings_for(shared_server.connect_string + "/leftover")) as client:
        await client.port.multi([Create("/regent"), Create(PATH)])
        client.session.generation().client.create(
            f"/leftover{left}", b"pod-0", ephemeral=True, sequence=True
        )
        alone = Replica(client, "pod-0")
        async with alone.election:
            await until(lambda: alone.leads)
            (places,) = await client.port.get_children([PATH])
            assert places is not None
            assert len(places) == 1
            assert not f"{PATH}/{places[0]}".startswith(left)
    assert "A former place in the queue of the replicas is left" in caplog.messages


CONTROLLER_ID = 1_000_000_001


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Identity("pod-1", 7, CONTROLLER_ID), id="on another host"),
        pytest.param(Identity("pod-0", os.getpid(), CONTROLLER_ID), id="another process"),
    ],
)
async def test_a_replica_does_not_queue_up_while_its_controller_id_is_in_use(
    shared_server: ZooKeeper, other: Identity
) -> None:
    chroot = f"/in-use-on-{other.host}"
    own = Identity("pod-0", 7, CONTROLLER_ID)
    async with replica(shared_server, str(other), chroot=chroot) as first:
        await until(lambda: first.leads)
        async with replica(shared_server, str(own), chroot=chroot) as second:
            await until(lambda: second.election.problem is not None)
            problem = second.election.problem or ""
            for named in (f"controller_id {CONTROLLER_ID}", str(other), "Leave controller_id out"):
                assert named in problem
            assert f"session {first.client.port.session_id:#x}" in problem
            assert await contenders(second.client.port, PATH) == [str(other)]
            await first.election.close()
            await until(lambda: second.leads)
            assert second.election.problem is None


async def test_one_of_two_replicas_with_one_controller_id_that_queue_up_at_once_leaves(
    shared_server: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither has seen the other one when its own node is created."""
    first, second = (Identity(host, 7, CONTROLLER_ID) for host in ("pod-0", "pod-1"))
    ensure_path, both_have_looked, looked = Lock._ensure_path, threading.Event(), list[Lock]()

    def meet(lock: Lock) -> None:
        ensure_path(lock)
        looked.append(lock)
        if len(looked) == 2:
            both_have_looked.set()
        both_have_looked.wait(DEADLINE_S)

    monkeypatch.setattr(Lock, "_ensure_path", meet)
    async with (
        replica(shared_server, str(first), chroot="/at-once") as one,
        replica(shared_server, str(second), chroot="/at-once") as other,
    ):
        await until(lambda: one.leads or other.leads)
        leader, refused = (one, other) if one.leads else (other, one)
        await until(lambda: "is in use" in (refused.election.problem or ""))
        await until_queued(leader, 1)
        assert leader.terms == ["elected"]
        assert refused.terms == []


@pytest.mark.parametrize("has_same_pid", [True, False])
async def test_a_restarted_replica_queues_up_behind_its_former_process(
    shared_server: ZooKeeper, has_same_pid: bool
) -> None:
    """A container that is started again has the same process id, a service another one."""
    own = Identity("pod-0", os.getpid(), CONTROLLER_ID)
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    former = own if has_same_pid else own._replace(pid=ended.pid)
    chroot = f"/restarted-{has_same_pid}"
    async with replica(shared_server, str(former), chroot=chroot) as left:
        await until(lambda: left.leads)
        async with replica(shared_server, str(own), chroot=chroot) as restarted:
            await until_queued(restarted, 2)
            assert restarted.election.problem is None


async def test_a_replica_whose_request_was_lost_leads_again(
    shared_server: ZooKeeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever has lost it: a thread that waits for ever for its answer keeps its place."""
    monkeypatch.setattr(awaited_answers, "PATIENCE_S", 0.2)
    monkeypatch.setattr(awaited_answers, "LOOK_INTERVAL_S", 0.05)
    async with replica(shared_server, "pod-0", chroot="/lost") as only:
        await until(lambda: only.leads)
        client = only.client.session.generation().client
        append = client._queue.append
        lost: list[object] = []

        def lose_one(entry: tuple[object, Any]) -> None:
            if isinstance(entry[1], AwaitedAnswer) and not lost:
                lost.append(entry[0])
            else:
                append(entry)

        monkeypatch.setattr(client._queue, "append", lose_one)
        only.election.resign()
        await until(lambda: only.leads)
        assert len(lost) == 1
    assert "An answer of ZooKeeper was lost" in caplog.messages
