"""Reading with watches while others write: no change goes unreported."""

from __future__ import annotations

import asyncio

import pytest

from regent.zk_data.operations import Check, Create, Delete, SetData, WatchedEventType
from sandbox import ZooKeeper
from tests.integration.zookeeper.harness import Connected, connected, settings_for

pytestmark = pytest.mark.integration

NODES = 200
ROUNDS = 40
GUARD = Check("/", -1)


async def change(writer: Connected, paths: list[str]) -> None:
    """Change every node once, and delete every seventh instead, in many small steps.

    A watch reports one event: what was changed first would seldom be reported as deleted.
    """
    for start in range(0, len(paths), 10):
        some = paths[start : start + 10]
        kept = [path for path in some if path not in some[::7]]
        await writer.port.write([SetData(path, b"changed", 0) for path in kept], guard=GUARD)
        await writer.port.write([Delete(path) for path in some[::7]], guard=GUARD)


async def test_what_was_read_is_current_or_its_change_is_reported(shared_server: ZooKeeper) -> None:
    settings = settings_for(shared_server.connect_string + "/concurrent")
    current = changed = 0
    async with connected(settings) as reader, connected(settings) as writer:
        for number in range(ROUNDS):
            paths = [f"/{number}-{i}" for i in range(NODES)]
            await writer.port.write([Create(path) for path in paths], guard=GUARD)
            reading = asyncio.create_task(reader.port.get_data(paths, watch=True))
            await change(writer, paths)
            known = dict(zip(paths, await reading, strict=True))
            await reader.port.exists(["/"])  # what has been reported arrives before this answer
            reported = {event.path: event.type for event in reader.events}
            final = dict(zip(paths, await reader.port.get_data(paths), strict=True))
            for path in paths:
                if known[path] == final[path]:
                    current += 1
                else:
                    changed += 1
                    assert path in reported, f"{path} was {known[path]} and is {final[path]}"
        types = {event.type for event in reader.events}
    print(f"{current} nodes were read when they had changed, {changed} changes were reported")
    assert min(current, changed) > 0
    assert types == {WatchedEventType.NODE_DATA_CHANGED, WatchedEventType.NODE_DELETED}
