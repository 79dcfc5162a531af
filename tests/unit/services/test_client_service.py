"""Client mode as the process sees it: which settings it takes, what its probes say."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from regent.admin.commands import DescribeTopicConfigs
from regent.app import client_service
from regent.controller.commands import not_controller
from regent.controller.config import ControllerConfig
from regent.model.errors import ConfigurationError
from regent.services.client_service import ClientService
from regent.settings.loading import load_settings
from regent.status.endpoint import _Status
from regent.zk_data import paths
from regent.zk_data.operations import Delete
from tests.support.waiting import wait_for
from tests.unit.steering.client_world import ClientWorld, Connections, Controller

COMMANDS = (DescribeTopicConfigs(("t",)),)


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"without_kubernetes": True}, "without_kubernetes"), ({"endpoint_port": 9092}, "9092")],
)
def test_what_only_a_controller_has_is_refused(setting: dict[str, object], message: str) -> None:
    settings = load_settings({"zookeeper": "zk:2181", "mode": "client", **setting})
    with pytest.raises(ConfigurationError, match=message):
        client_service(settings)


def test_without_zookeeper_it_is_alive_and_not_ready() -> None:
    service = client_service(load_settings({"zookeeper": "127.0.0.1:1", "mode": "client"}))
    service.start()
    try:
        assert service.liveness_problem() is None
        assert str(service.readiness_problem()).startswith("no ZooKeeper session")
        assert service.why_inactive() == "no ZooKeeper session"
        assert not service.view.may_act
        assert service.status()["mode"] == "client"
    finally:
        service.stop()
    assert service.failure is None
    assert service.liveness_problem() == "the client thread has ended"


async def test_a_service_that_does_not_run_answers_commands() -> None:
    service = client_service(load_settings({"zookeeper": "127.0.0.1:1", "mode": "client"}))
    assert await service.submit(COMMANDS) == not_controller(COMMANDS)


def test_it_is_ready_once_the_cluster_is_read_and_says_who_is_the_controller() -> None:
    world = ClientWorld()
    world.create_topic("t", (1, 2))
    loops: list[asyncio.AbstractEventLoop] = []
    connections: list[Connections] = []

    def connect(listener: Any) -> Any:
        loops.append(asyncio.get_running_loop())
        connections.append(Connections(world.server.connect(), listener, has_watches=True))
        return connections[-1]

    service = ClientService(
        config=ControllerConfig(1_000_000_001),
        connect=connect,
        admin=lambda: Controller(world.server),
    )
    changes: list[frozenset[str] | None] = []
    service.subscribe(changes.append)
    service.start()
    try:
        wait_for(lambda: service.readiness_problem() is None, "it to be ready")
        status = service.status()
        assert (status["activeControllerId"], status["controllerEpoch"]) == (1, 7)
        assert status["clusterId"] == "one"
        msgspec.convert(status, type=_Status)  # `regent status` shows it
        assert service.remark() is None
        # In the service's thread: its watch would wake nobody from here.
        loops[0].call_soon_threadsafe(world.admin.multi, [Delete(paths.CONTROLLER)])
        wait_for(service.remark, "it to say that nobody is the controller")
        assert None in changes
        assert service.liveness_problem() is None
        connections[0].what_has_ended = "the thread zookeeper-session was ended"
        assert service.liveness_problem() == "the thread zookeeper-session was ended"
    finally:
        service.stop()
