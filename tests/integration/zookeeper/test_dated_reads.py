"""Nodes with the times of their creation and last change, for people."""

from __future__ import annotations

import time

import pytest

from regent.zk_data.operations import Create, SetData
from sandbox import ZooKeeper
from tests.integration.zookeeper.harness import connected, settings_for

pytestmark = pytest.mark.integration


async def test_nodes_come_with_their_times(shared_server: ZooKeeper) -> None:
    async with connected(settings_for(shared_server.connect_string + "/dated")) as client:
        began_ms = time.time() * 1000 - 1
        await client.port.multi([Create("/a", b"1"), Create("/b", b"2")])
        await client.port.multi([SetData("/a", b"3")])
        a, missing, b = await client.port.get_dated(["/a", "/missing", "/b"])
        assert missing is None
        assert a is not None
        assert b is not None
        assert [a.node, b.node] == await client.port.get_data(["/a", "/b"])
        assert (a.node.data, a.node.version) == (b"3", 1)
        assert b.created_ms == b.modified_ms == a.created_ms
        assert began_ms <= a.created_ms <= a.modified_ms <= time.time() * 1000
        assert client.events == []
