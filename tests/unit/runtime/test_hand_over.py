"""A stop while ZooKeeper does not answer: the event in progress is broken off."""

from __future__ import annotations

import asyncio

from regent.admin.commands import DescribeTopicConfigs
from regent.controller.commands import not_controller
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster

COMMANDS = (DescribeTopicConfigs(("t",)),)


def test_stop_breaks_off_an_event_and_answers_commands() -> None:
    with SimulatedCluster(session_timeout_s=600) as cluster, LiveController(cluster) as controller:
        service = controller.service
        cluster.call(controller.connections.disconnect)

        async def stop_meanwhile() -> object:
            asked = asyncio.create_task(service.submit(COMMANDS))
            await asyncio.to_thread(service.stop)
            return await asked

        assert asyncio.run(stop_meanwhile()) == not_controller(COMMANDS)
        assert service.failure is None
