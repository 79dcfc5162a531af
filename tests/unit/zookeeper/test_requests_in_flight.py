"""What waits for answers of ZooKeeper, and what does not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from regent.zk_data import paths
from regent.zk_data.controller import checks_of_controller
from regent.zk_data.operations import SetData
from regent.zookeeper.client import KazooZooKeeper
from regent.zookeeper.generation import BATCHES_IN_FLIGHT, Generation
from regent.zookeeper.multi_read import GET_DATA, MultiRead
from regent.zookeeper.multi_write import MultiWrite
from regent.zookeeper.session import ZooKeeperSession
from regent.zookeeper.settings import ZooKeeperSettings
from tests.support.event_loop import until_idle


async def test_controller_check_does_not_wait_for_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ZooKeeperSettings(hosts=("a:1",))
    session = ZooKeeperSession(settings)
    port = KazooZooKeeper(session, on_watch=lambda _: None)
    generation = Generation(settings, loop=asyncio.get_running_loop(), listener=session)
    session._generation = generation
    generation._connected.set()
    sent: list[object] = []
    monkeypatch.setattr(generation.client, "_call", lambda request, _: sent.append(request))
    reads = [generation.call([MultiRead(["/"], GET_DATA)]) for _ in range(BATCHES_IN_FLIGHT + 1)]
    asked: list[Coroutine[Any, Any, object]] = [
        *reads,
        port.multi([SetData(paths.CONTROLLER, b"")]),
        port.multi(checks_of_controller(1)),
    ]
    tasks = [asyncio.ensure_future(each) for each in asked]
    await until_idle()
    assert [type(request) for request in sent] == [MultiRead] * BATCHES_IN_FLIGHT + [MultiWrite]
    assert sent[-1].operations == checks_of_controller(1)  # type: ignore[attr-defined]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
