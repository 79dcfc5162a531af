"""Names that are not resolved, beside those that are."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from regent.network.lookup_loop import LookupLoop
from sandbox.waiting import DEADLINE_S
from tests.support.thread_shortage import thread_shortage

HANGING = 40
"""More than asyncio has threads of its own."""


class NameServers:
    """Do not answer for names below "invalid" until they are let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answer = threading.Event()
        self.asked: list[str] = []
        self._resolve = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def _look_up(self, host: str, *arguments: Any) -> Any:
        self.asked.append(host)
        if host.endswith(".invalid"):
            self.answer.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return self._resolve(host, *arguments)


@pytest.fixture
def name_servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServers]:
    servers = NameServers(monkeypatch)
    yield servers
    servers.answer.set()


def run(story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=LookupLoop) as runner:
        runner.run(asyncio.wait_for(story, DEADLINE_S))


def test_names_that_are_not_resolved_hold_nothing_up(name_servers: NameServers) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        hanging = [
            asyncio.create_task(loop.getaddrinfo(f"broker-{number}.invalid", 9092))
            for number in range(HANGING)
        ]
        try:
            found = await loop.getaddrinfo("localhost", 9092, type=socket.SOCK_STREAM)
            assert {address[1] for *_, address in found} == {9092}
            assert await asyncio.to_thread(lambda: "done") == "done"
        finally:
            name_servers.answer.set()
        failed = await asyncio.gather(*hanging, return_exceptions=True)
        assert {type(each) for each in failed} == {socket.gaierror}

    run(story())


def test_attempts_share_lookup(name_servers: NameServers, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        attempts = [
            asyncio.create_task(loop.getaddrinfo("broker.invalid", 9092)) for _ in range(HANGING)
        ]
        await loop.getaddrinfo("localhost", 9092)
        for attempt in attempts[1:]:
            attempt.cancel()
        await asyncio.wait(attempts[1:])
        assert not attempts[0].done()
        name_servers.answer.set()
        with pytest.raises(socket.gaierror):
            await attempts[0]

    run(story())
    assert name_servers.asked.count("broker.invalid") == 1
    assert not caplog.records


def test_loop_ends_in_lookup(name_servers: NameServers, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        hanging = asyncio.create_task(loop.getaddrinfo("broker.invalid", 9092))
        await loop.getaddrinfo("localhost", 9092)
        hanging.cancel()

    run(story())
    name_servers.answer.set()
    for thread in threading.enumerate():
        if thread.name.startswith("lookup"):
            thread.join()
    assert not caplog.records


def test_a_lookup_that_no_thread_can_be_started_for_is_one_that_failed() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        with thread_shortage(), pytest.raises(OSError, match="can't start new thread"):
            await loop.getaddrinfo("localhost", 9092)
        assert await loop.getaddrinfo("localhost", 9092)

    run(story())


def test_a_loop_that_has_used_threads_ends_where_none_can_be_started() -> None:
    with thread_shortage(left=1), asyncio.Runner(loop_factory=LookupLoop) as runner:
        assert runner.run(asyncio.to_thread(lambda: "done")) == "done"
