from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kazoo.exceptions import ConnectionDropped

from regent.zookeeper.answering import Batch, GiveUp, HeartbeatSink, Slot, post
from tests.support.event_loop import until_idle


async def test_a_batch_is_delivered_when_all_answers_are_there() -> None:
    future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
    heard: list[str] = []
    batch = Batch(3, future, on_contact=lambda: heard.append("heard"))
    slots = [Slot(batch, index) for index in range(3)]
    error = OSError("lost")
    slots[2].set("c")
    slots[0].set_exception(error)
    await until_idle()
    assert not future.done()
    slots[1].set(None)
    assert await future == [error, None, "c"]
    assert heard == ["heard", "heard"]  # an exception may be kazoo's own


async def test_only_the_first_answer_counts() -> None:
    future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
    batch = Batch(2, future, on_contact=lambda: None)
    Slot(batch, 0).set("first")
    Slot(batch, 0).set("second")
    Slot(batch, 1).set("other")
    Slot(batch, 1).set_exception(OSError())
    assert await future == ["first", "other"]


async def test_a_batch_of_nothing_is_answered() -> None:
    future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
    Batch(0, future, on_contact=lambda: None)
    assert await future == []


async def test_nobody_waits_for_an_abandoned_batch() -> None:
    future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
    batch = Batch(1, future, on_contact=lambda: None)
    future.cancel()
    Slot(batch, 0).set("late")
    await until_idle()
    assert future.cancelled()


def test_a_closed_loop_hears_nothing() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    post(loop, print, "nobody prints this")


def test_only_an_answered_heartbeat_proves_contact() -> None:
    proven: list[float] = []
    HeartbeatSink(proven.append, 1.5).set("/")
    HeartbeatSink(proven.append, 2.5).set_exception(OSError())
    assert proven == [1.5]


def test_giving_up_ends_the_connection() -> None:
    with pytest.raises(ConnectionDropped, match=r"no answer for 9\.1 s"):
        GiveUp(9.06).serialize()
