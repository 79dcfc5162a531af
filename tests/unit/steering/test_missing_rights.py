"""A cluster that ZooKeeper does not let a client read."""

from __future__ import annotations

import pytest

from regent.zk_data import paths
from tests.unit.steering.client_world import ClientWorld


async def test_it_is_logged_once_with_what_to_do_however_often_it_is_tried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with ClientWorld() as world:
        await world.known()
        port = world.connections.zookeeper
        port.closed = paths.CONTROLLER
        world.elect(2, epoch=8)
        await world.until(lambda: port.refusals > 3)
        said = [r for r in caplog.records if r.message == "The cluster cannot be followed"]
        assert len(said) == 1
        assert "give Regent's ZooKeeper user the rights" in str(world.loop.problem)
