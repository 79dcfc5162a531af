"""What happens to a session when servers die, hang and come back."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from regent.model.errors import (
    SessionExpiredError,
    UnexpectedZooKeeperError,
    ZooKeeperUnavailableError,
)
from regent.zk_data.operations import Check, Create, SessionState, SetData, Written, ZkError
from regent.zookeeper.establishing import ensure_chroot
from regent.zookeeper.multi_write import MultiWrite, serialize_acl
from regent.zookeeper.session import ZooKeeperSession
from sandbox import ZooKeeper, ZooKeeperEnsemble
from sandbox.waiting import DEADLINE_S
from sandbox.znodes import end_session
from sandbox.zookeeper import SESSION_TIMEOUT_MAX_MS
from tests.integration.zookeeper.harness import (
    Connected,
    Proxy,
    connected,
    settings_for,
    until,
)
from tests.support.present import present
from tests.support.thread_shortage import thread_shortage

pytestmark = pytest.mark.integration

SUSPENDED, RECONNECTED = SessionState.SUSPENDED, SessionState.RECONNECTED
CONNECTED, EXPIRED = SessionState.CONNECTED, SessionState.EXPIRED


async def test_a_restart_of_the_server_is_survived(server: ZooKeeper, chroot: str) -> None:
    settings = settings_for(server.connect_string + chroot, session_timeout_ms=60_000)
    async with connected(settings) as client:
        session_id = client.session.session_id
        await client.port.multi([Create("/e", b"1", ephemeral=True), Create("/guard")])
        await asyncio.to_thread(server.stop)
        await client.state(SUSPENDED)
        reading = asyncio.create_task(client.port.get_data(["/e", "/missing"]))
        write = client.port.write([SetData("/e", b"2", 0)], guard=Check("/guard", 0))
        writing = asyncio.create_task(write)
        await asyncio.to_thread(server.start)
        assert [n and n.ephemeral_owner for n in await reading] == [session_id, None]
        assert await writing == [Written(1)]
        assert client.states == [CONNECTED, SUSPENDED, RECONNECTED]
        assert client.session.session_id == session_id
        assert not client.session.is_fenced()


async def test_without_a_server_calls_fail_after_their_bound(
    server: ZooKeeper, chroot: str
) -> None:
    settings = settings_for(
        server.connect_string + chroot, session_timeout_ms=60_000, unavailable_after_ms=700
    )
    async with connected(settings) as client:
        await client.port.multi([Create("/node")])
        server.kill()
        await client.state(SUSPENDED)
        calls = [
            client.port.get_data(["/node"]),
            client.port.get_data(["/node"], watch=True),
            client.port.get_children(["/node"]),
            client.port.exists(["/node"]),
            client.port.write([SetData("/node", b"")], guard=Check("/", -1)),
            client.port.multi([SetData("/node", b"")]),
        ]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [ZooKeeperUnavailableError] * len(calls)
        assert client.states == [CONNECTED, SUSPENDED]  # the session goes on
        await asyncio.to_thread(server.start)
        await client.state(RECONNECTED)
        assert await client.port.exists(["/node"]) == [True]


async def test_a_multi_under_way_fails_with_the_connection(server: ZooKeeper, chroot: str) -> None:
    settings = settings_for(server.connect_string + chroot, session_timeout_ms=60_000)
    async with connected(settings) as client:
        server.pause()
        multi = asyncio.create_task(client.port.multi([Create("/node")]))
        read = asyncio.create_task(client.port.exists(["/"]))
        await asyncio.sleep(0)  # both are handed to kazoo
        server.kill()
        with pytest.raises(ZooKeeperUnavailableError):
            await multi
        assert not read.done()
        await asyncio.to_thread(server.start)
        assert await read == [True]


async def test_a_hanging_server_fences_before_the_session_can_expire(
    server: ZooKeeper, chroot: str
) -> None:
    settings = settings_for(server.connect_string + chroot, session_timeout_ms=3_000)
    async with connected(settings) as client:
        await client.port.multi([Create("/e", ephemeral=True)])
        expired_id = client.session.session_id
        started = time.monotonic()
        server.pause()
        await until(client.session.is_fenced)
        fenced_after_s = time.monotonic() - started
        print(f"fenced {fenced_after_s:.2f} s after the server's last sign of life")
        # 3 s after it last heard of us the server may expire the session.
        assert client.session.fence_deadline - client.session.last_contact <= 2
        with pytest.raises(ZooKeeperUnavailableError):
            await client.port.get_data(["/e"])
        # Frozen for longer than the session lasts: once awake, the server expires it.
        await asyncio.sleep(max(0.0, started + 4.5 - time.monotonic()))
        await until(lambda: SUSPENDED in client.states)
        assert client.states == [CONNECTED, SUSPENDED]
        server.resume()
        await until(lambda: client.states[-1] in (RECONNECTED, CONNECTED))
        assert not client.session.is_fenced()
        if client.states[-1] is RECONNECTED:  # it heard us before it looked at its clock
            return
        assert [s for s in client.states if s is not SUSPENDED] == [CONNECTED, EXPIRED, CONNECTED]
        assert client.session.session_id != expired_id
        assert await client.port.exists(["/e"]) == [False]


async def test_a_zookeeper_restored_from_a_backup_is_reached_again(
    server: ZooKeeper, chroot: str, tmp_path: Path
) -> None:
    """It refuses sessions that have seen more than it knows: the session is not waited for."""
    data = server.state_path / "data"
    settings = settings_for(server.connect_string + chroot, session_timeout_ms=2_000)
    async with connected(settings) as client:
        await client.port.multi([Create("/before")])
        session_id = client.session.session_id
        await asyncio.to_thread(server.stop)
        shutil.copytree(data, tmp_path / "backup")
        await asyncio.to_thread(server.start)
        await until(lambda: client.session.is_connected)
        for number in range(10):
            await client.port.multi([Create(f"/after-{number}")])
        states = len(client.states)

        await asyncio.to_thread(server.stop)
        shutil.rmtree(data)
        shutil.copytree(tmp_path / "backup", data)
        await asyncio.to_thread(server.start)
        await until(lambda: CONNECTED in client.states[states:])
        assert client.session.session_id != session_id
        assert await client.port.exists(["/before", "/after-0"]) == [True, False]
        await client.port.multi([Create("/anew")])
        assert not client.session.is_fenced()


async def test_idle_sessions_stay_trusted(shared_server: ZooKeeper, chroot: str) -> None:
    """Heartbeats, one every five seconds, are contacts, and every contact moves the fence."""
    settings = settings_for(shared_server.connect_string + chroot, session_timeout_ms=15_000)
    async with connected(settings) as client:
        deadline = client.session.fence_deadline
        await until(lambda: client.session.fence_deadline > deadline + 2)
        assert client.states == [CONNECTED]


async def test_the_fence_follows_the_timeout_that_was_granted(
    shared_server: ZooKeeper, chroot: str
) -> None:
    granted_s = SESSION_TIMEOUT_MAX_MS / 1000
    settings = settings_for(
        shared_server.connect_string + chroot, session_timeout_ms=2 * SESSION_TIMEOUT_MAX_MS
    )
    async with connected(settings) as client:
        for _ in range(2):  # contacts follow, too
            assert client.session.fence_deadline - client.session.last_contact == pytest.approx(
                granted_s * 2 / 3
            )
            await client.port.exists(["/"])


async def test_a_client_that_was_cut_off_learns_of_the_expiry(
    shared_server: ZooKeeper, chroot: str
) -> None:
    async with (
        Proxy(shared_server.port) as proxy,
        connected(settings_for(proxy.connect_string + chroot, session_timeout_ms=3_000)) as client,
        connected(settings_for(shared_server.connect_string + chroot)) as witness,
    ):
        await client.port.multi([Create("/e", ephemeral=True)])
        await witness.port.exists(["/e"], watch=True)
        proxy.cut()
        await client.state(SUSPENDED)
        call = asyncio.create_task(client.port.get_data(["/e"]))
        await until(lambda: bool(witness.events))
        assert client.session.is_fenced()
        assert client.states == [CONNECTED, SUSPENDED]
        call_again = asyncio.create_task(client.port.get_data(["/e"]))
        proxy.restore()
        await client.state(CONNECTED, times=2)
        assert client.states == [CONNECTED, SUSPENDED, EXPIRED, CONNECTED]
        with pytest.raises(SessionExpiredError):
            await call_again
        with pytest.raises((SessionExpiredError, ZooKeeperUnavailableError)):
            await call
        assert not client.session.is_fenced()
        assert await client.port.exists(["/e"]) == [False]


async def test_a_silent_connection_is_given_up_for_another(
    shared_server: ZooKeeper, chroot: str
) -> None:
    async with Proxy(shared_server.port) as one, Proxy(shared_server.port) as other:
        hosts = f"{one.connect_string},{other.connect_string}"
        settings = settings_for(hosts + chroot, session_timeout_ms=15_000, connect_timeout_ms=2_000)
        async with connected(settings) as client:
            session_id = client.session.session_id
            await client.port.multi([Create("/e", ephemeral=True)])
            used = one if one.is_used else other
            assert used.is_used
            assert not (one.is_used and other.is_used)
            used.hold()
            call = asyncio.create_task(client.port.get_data(["/e"]))
            await client.state(RECONNECTED)
            assert EXPIRED not in client.states
            assert client.session.session_id == session_id
            assert [node and node.ephemeral_owner for node in await call] == [session_id]


async def test_what_was_given_up_is_not_carried_out_later(server: ZooKeeper, chroot: str) -> None:
    settings = settings_for(
        server.connect_string + chroot, session_timeout_ms=60_000, unavailable_after_ms=300
    )
    async with connected(settings) as client:
        generation = client.session.generation()
        server.kill()
        await client.state(SUSPENDED)
        # As if the loss had not been noticed yet: kazoo queues what it cannot send.
        request = MultiWrite([Create("/late")], chroot="", acl=serialize_acl(OPEN_ACL_UNSAFE))
        with pytest.raises(ZooKeeperUnavailableError):
            await generation.call([request])
        abandoned = asyncio.create_task(generation.call([request]))
        await asyncio.sleep(0)
        abandoned.cancel()
        await asyncio.gather(abandoned, return_exceptions=True)
        await asyncio.to_thread(server.start)
        await client.state(RECONNECTED)
        assert await client.port.exists(["/late"]) == [False]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_connection_thread_that_dies_is_replaced(
    shared_server: ZooKeeper, chroot: str
) -> None:
    class Unserializable:
        type = 1

        def serialize(self) -> bytes:
            raise RuntimeError("kazoo does not expect this")

    async with connected(settings_for(shared_server.connect_string + chroot)) as client:
        with pytest.raises(SessionExpiredError):
            await client.session.generation().call([Unserializable()])
        await client.state(CONNECTED, times=2)
        assert client.states == [CONNECTED, EXPIRED, CONNECTED]
        assert await client.port.exists(["/"]) == [True]


async def test_start_gives_up_in_time_and_can_go_on() -> None:
    server = ZooKeeper()
    session = ZooKeeperSession(settings_for(server.connect_string))
    try:
        with pytest.raises(ZooKeeperUnavailableError):
            await session.start(timeout_s=0.5)
        assert session.session_id == 0
        assert session.is_fenced()
        with pytest.raises(SessionExpiredError):
            session.generation()
        await asyncio.to_thread(server.start)
        await session.wait_until_established(timeout_s=DEADLINE_S)
        assert session.session_id != 0
        assert not session.is_fenced()
    finally:
        await session.close()
        server.close()


async def test_closing_without_a_server_does_not_wait_for_one(
    server: ZooKeeper, chroot: str
) -> None:
    session_timeout_ms = 60_000
    settings = settings_for(server.connect_string + chroot, session_timeout_ms=session_timeout_ms)
    async with connected(settings) as client:
        server.kill()
        await client.state(SUSPENDED)
        await asyncio.wait_for(client.session.close(), timeout=session_timeout_ms / 2 / 1000)


async def test_a_chroot_is_created_and_kept(shared_server: ZooKeeper, chroot: str) -> None:
    async with connected(settings_for(f"{shared_server.connect_string}{chroot}/a/b/c")) as client:
        await client.port.multi([Create("/node", b"inside")])
    async with connected(settings_for(f"{shared_server.connect_string}{chroot}/a/b")) as client:
        assert await client.port.get_children(["/", "/c"]) == [("c",), ("node",)]
    async with connected(settings_for(f"{shared_server.connect_string}{chroot}/a/b/c")) as client:
        (node,) = await client.port.get_data(["/node"])
        assert node is not None
        assert node.data == b"inside"


def _lock_up(server: ZooKeeper, chroot: str, path: str) -> None:
    """Create a node that only its creator can read, write and add children to."""
    owner = KazooClient(server.connect_string)
    owner.start(timeout=DEADLINE_S)
    owner.ensure_path(chroot)
    acl = [make_digest_acl("user", "password", all=True)]
    owner.create(chroot + path, b"", acl=acl)
    owner.stop()
    owner.close()


async def test_what_may_not_be_read_is_no_answer_that_anyone_expects(
    shared_server: ZooKeeper, chroot: str
) -> None:
    await asyncio.to_thread(_lock_up, shared_server, chroot, "/secret")
    async with connected(settings_for(shared_server.connect_string + chroot)) as client:
        for call in (
            client.port.get_data(["/", "/secret"]),
            client.port.get_data(["/", "/secret"], watch=True),
            client.port.get_data(["/"] * 40 + ["/secret"], watch=True),
            client.port.get_children(["/secret"]),
            client.port.multi([Check("/", -1), SetData("/secret", b"x")]),
            client.port.write([SetData("/open", b"x")], guard=Check("/secret", -1)),
        ):
            with pytest.raises(UnexpectedZooKeeperError) as caught:
                await call
            assert (caught.value.code, caught.value.path) == ("NOAUTH", "/secret")


async def test_what_may_not_be_read_exists_but_cannot_be_watched(
    shared_server: ZooKeeper, chroot: str
) -> None:
    await asyncio.to_thread(_lock_up, shared_server, chroot, "/closed")
    async with connected(settings_for(shared_server.connect_string + chroot)) as client:
        asked = ["/", "/closed", "/missing"]
        assert await client.port.exists(asked) == [True, True, False]
        assert await client.port.exists(asked * 20) == [True, True, False] * 20
        with pytest.raises(UnexpectedZooKeeperError, match="NOAUTH for /closed"):
            await client.port.exists(["/closed"], watch=True)


async def test_what_may_not_be_written_is_the_result_of_that_operation_alone(
    shared_server: ZooKeeper, chroot: str, caplog: pytest.LogCaptureFixture
) -> None:
    await asyncio.to_thread(_lock_up, shared_server, chroot, "/mine")
    async with connected(settings_for(shared_server.connect_string + chroot)) as client:
        results = await client.port.write(
            [Create("/a"), SetData("/mine", b"x"), Create("/mine/below"), Create("/b")],
            guard=Check("/", -1),
        )
        assert results == [Written(0, "/a"), ZkError.NO_AUTH, ZkError.NO_AUTH, Written(0, "/b")]
        assert await client.port.exists(["/a", "/b"]) == [True, True]
    (logged,) = [r for r in caplog.records if r.message == "No right to write znodes"]
    assert logged.paths == ["/mine", "/mine/below"]  # type: ignore[attr-defined]


async def test_what_a_quota_does_not_allow_is_the_result_of_that_operation_alone(
    quota_server: ZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(settings_for(quota_server.connect_string)) as client:
        created = await client.port.write(
            [Create("/full"), Create("/zookeeper/quota/full")], guard=Check("/", -1)
        )
        assert created == [Written(0, "/full"), Written(0, "/zookeeper/quota/full")]
        limits = [
            Create(
                "/zookeeper/quota/full/zookeeper_limits", b"count=-1,bytes=-1=;countHardLimit=2"
            ),
            Create("/zookeeper/quota/full/zookeeper_stats", b"count=1,bytes=0"),
        ]
        await client.port.write(limits, guard=Check("/", -1))
        await client.port.write([Create("/full/a")], guard=Check("/", -1))
        results = await client.port.write(
            [Create("/before"), Create("/full/b"), Create("/after")], guard=Check("/", -1)
        )
        assert results == [
            Written(0, "/before"),
            ZkError.QUOTA_EXCEEDED,
            Written(0, "/after"),
        ]
        with pytest.raises(UnexpectedZooKeeperError, match="QUOTAEXCEEDED for /full/b"):
            await client.port.multi([Check("/", -1), Create("/full/b")])
    (logged,) = [r for r in caplog.records if "quota" in r.message]
    assert logged.paths == ["/full/b"]  # type: ignore[attr-defined]


async def test_an_ensemble_loses_its_leader() -> None:
    """The followers close all connections until a follower leads."""
    with ZooKeeperEnsemble(3) as ensemble:
        settings = settings_for(ensemble.connect_string + "/kafka", session_timeout_ms=60_000)
        async with connected(settings) as client:
            session_id = client.session.session_id
            await client.port.multi([Create("/guard"), Create("/e", b"", ephemeral=True)])
            leader = ensemble.leader
            await asyncio.to_thread(leader.kill)
            version = 0
            for _ in range(3):
                results = await client.port.write([SetData("/e", b"x")], guard=Check("/guard", 0))
                assert isinstance(results[0], Written)
                assert results[0].version > version
                version = results[0].version
            await until(lambda: client.session.is_connected)
            assert client.session.session_id == session_id
            assert SUSPENDED in client.states
            assert EXPIRED not in client.states
            assert await client.port.exists(["/e"]) == [True]


async def test_a_session_that_no_thread_can_be_started_for_is_tried_again(
    shared_server: ZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(shared_server.connect_string + "/shortage")
    async with connected(settings) as client:
        session_id, _password = present(client.session.generation().client.client_id)
        with thread_shortage(started_by="zookeeper-session") as refused:
            await asyncio.to_thread(end_session, shared_server.connect_string, session_id)
            await until(lambda: len(refused) > 1)
            assert "can't start new thread" in (client.session.problem or "")
            assert client.session.is_fenced()
            assert client.states == [CONNECTED, SUSPENDED, EXPIRED]
        await client.state(CONNECTED, times=2)
        assert client.session.problem is None
        assert client.session.defect() is None
        await client.port.multi([Create("/node", ephemeral=True)])
    (logged,) = [r for r in caplog.records if r.message.startswith("The ZooKeeper session failed")]
    assert logged.exc_info is not None


async def test_an_error_that_nobody_expects_does_not_keep_a_session_from_being_used(
    shared_server: ZooKeeper, chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its heartbeats would keep it alive, and there would be no other one in this process."""
    failures = [MemoryError("no room")]

    async def fail_once(*arguments: Any) -> None:
        if failures:
            raise failures.pop()
        await ensure_chroot(*arguments)

    monkeypatch.setattr("regent.zookeeper.session.ensure_chroot", fail_once)
    client = Connected(settings_for(shared_server.connect_string + chroot))
    try:
        starting = asyncio.create_task(client.session.start(timeout_s=DEADLINE_S))
        await until(lambda: "no room" in (client.session.problem or ""))
        await starting
        assert client.session.problem is None
        assert client.states == [CONNECTED]
    finally:
        await client.session.close()
