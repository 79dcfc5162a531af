"""Reading with watches while others write: no change goes unreported."""

from __future__ import annotations

import asyncio

import pytest

from regent.zk_data.operations import Check, Create, Delete, SetData, WatchedEventType, ZNode
from sandbox import ZooKeeper
from tests.integration.zookeeper.harness import connected, settings_for

pytestmark = pytest.mark.integration

NODES = 400
ROUNDS = 40
GUARD = Check("/", -1)


async def test_what_was_read_is_current_or_its_change_is_reported(shared_server: ZooKeeper) -> None:
    settings = settings_for(shared_server.connect_string + "/concurrent")
    paths = [f"/n{i}" for i in range(NODES)]
    async with connected(settings) as reader, connected(settings) as writer:
        await writer.port.write([Create(path, b"0") for path in paths], guard=GUARD)
        known: dict[str, ZNode | None] = {}
        reported: set[str] = set()
        started = 0

        async def write() -> None:
            for number in range(ROUNDS * 4):
                changed = paths[number % 7 :: 11]
                await writer.port.write(
                    [SetData(path, b"%d" % number) for path in changed], guard=GUARD
                )
                gone = paths[number % 5 :: 97]
                await writer.port.write([Delete(path) for path in gone], guard=GUARD)
                await writer.port.write([Create(path) for path in gone], guard=GUARD)

        writing = asyncio.create_task(write())
        for _ in range(ROUNDS):
            started = len(reader.events)
            known = dict(zip(paths, await reader.port.get_data(paths, watch=True), strict=True))
            reported = {event.path for event in reader.events[started:]}
        await writing
        await reader.port.exists(["/"])  # what was reported before this answer has arrived
        reported |= {event.path for event in reader.events[started:]}
        final = dict(zip(paths, await writer.port.get_data(paths), strict=True))
        unreported = [
            path
            for path in paths
            if known[path] is not None and known[path] != final[path] and path not in reported
        ]
        assert unreported == []
        assert len(reader.events) > NODES
        assert {event.type for event in reader.events} == {
            WatchedEventType.NODE_DATA_CHANGED,
            WatchedEventType.NODE_DELETED,
        }
