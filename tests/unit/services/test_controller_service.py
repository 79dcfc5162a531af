"""Commands from other threads: all are answered, and nobody can disturb the controller."""

from __future__ import annotations

import asyncio
import logging
import threading
from http import HTTPStatus
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from regent.admin.commands import DescribeTopicConfigs
from regent.connections.real_connections import real_connections
from regent.controller import events as e
from regent.controller.commands import not_controller
from regent.controller.config import ControllerConfig
from regent.model.cluster import Address
from regent.model.partition import TopicPartition
from regent.network.settings import ChannelSettings
from regent.observability.http import JsonAnswer
from regent.observability.metrics import EventMetrics
from regent.runtime.command_reply import is_given_up
from regent.runtime.standby_reader import StandbyReader
from regent.services import controller_loop, controller_service
from regent.services.controller_service import ControllerService
from regent.zookeeper.settings import ZooKeeperSettings
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.waiting import wait_for

COMMANDS = (DescribeTopicConfigs(("t",)),)


@pytest.fixture
def service() -> ControllerService:
    """Never started: its answers are given by the test."""
    return ControllerService(
        config=ControllerConfig(1_000_000_001),
        connect=real_connections(
            controller_id=1_000_000_001,
            zookeeper=ZooKeeperSettings(hosts=("127.0.0.1:1",)),
            election_path="/regent/election",
            channels=ChannelSettings(),
        ),
        metrics=EventMetrics(CollectorRegistry()),
    )


class Controller:
    """Stands for the controller's thread: takes the event, answers when told to."""

    def __init__(self, service: ControllerService, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[e.CommandsReceived] = []
        self.arrived = asyncio.Event()
        monkeypatch.setattr(service, "_loop", asyncio.get_running_loop())
        monkeypatch.setattr(service, "_put", self._put)

    def _put(self, event: e.CommandsReceived) -> None:
        self.events.append(event)
        self.arrived.set()

    def answer(self) -> list[BaseException]:
        """Answer everything in a thread of its own. Returns what that raised."""
        raised: list[BaseException] = []

        def respond() -> None:
            try:
                for event in self.events:
                    event.reply_to(not_controller(event.commands))
            except BaseException as error:  # noqa: BLE001 - handed to the test
                raised.append(error)

        thread = threading.Thread(target=respond)
        thread.start()
        thread.join()
        return raised


async def test_whoever_stops_waiting_gives_up_the_commands_and_leaves_the_future_to_be_answered(
    service: ControllerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a cancellation between the controller's look and its answer ends its thread."""
    controller = Controller(service, monkeypatch)
    waiting = asyncio.create_task(service.submit(COMMANDS))
    await controller.arrived.wait()
    (event,) = controller.events
    (future,) = service._pending
    assert not is_given_up(event.reply_to)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert is_given_up(event.reply_to)
    assert not future.cancelled()
    assert controller.answer() == []
    assert future.result() == not_controller(COMMANDS)
    assert not service._pending


def test_one_that_is_not_started_yet_is_alive_and_not_ready(service: ControllerService) -> None:
    """The probes answer a moment before the controller's thread begins."""
    assert service.liveness_problem() is None
    assert service.readiness_problem() == "no ZooKeeper session"
    service.stop()
    assert not service.has_ended


def test_what_keeps_it_out_of_the_election_is_shown() -> None:
    with SimulatedCluster() as cluster, LiveController(cluster, contends=False) as controller:
        service = controller.service
        wait_for(lambda: service.readiness_problem() is None, "a session")
        controller.connections.why_not_elected = "the path is closed"
        assert service.readiness_problem() == "the path is closed"
        assert service.status()["refusal"] == "the path is closed"


def test_a_thread_that_an_error_has_ended_is_a_reason_for_a_restart() -> None:
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        service = controller.service
        assert service.liveness_problem() is None
        controller.connections.what_has_ended = "the thread zookeeper-session was ended"
        assert service.liveness_problem() == "the thread zookeeper-session was ended"
        assert service.readiness_problem() == "the thread zookeeper-session was ended"


def test_what_keeps_it_from_zookeeper_is_shown_but_goes_into_no_resource() -> None:
    """It may be another reason for each server that is tried."""
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        service, connections = controller.service, controller.connections
        connections.why_not_connected = "connection refused"
        cluster.call(connections.disconnect)
        wait_for(service.why_inactive, "the session to be fenced")
        assert service.readiness_problem() == "no ZooKeeper session: connection refused"
        assert service.why_inactive() == "no ZooKeeper session"


def standby_of(service: ControllerService) -> dict[str, Any]:
    shown: Any = service.status()["warmStandby"]
    return dict(shown)


def test_a_standby_is_ready_once_its_cache_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    load, may_load = StandbyReader.load, asyncio.Event()

    # An event wakes nobody from another thread than that which waits for it.
    loops: list[asyncio.AbstractEventLoop] = []

    async def load_later(reader: StandbyReader) -> None:
        loops.append(asyncio.get_running_loop())
        await may_load.wait()
        await load(reader)

    monkeypatch.setattr(StandbyReader, "load", load_later)
    with (
        SimulatedCluster() as cluster,
        LiveController(cluster, contends=False, warm_standby=True) as controller,
    ):
        service = controller.service
        wait_for(lambda: service.has_session, "a session")
        assert service.readiness_problem() == (
            "the standby's cache is being loaded for the first time"
        )
        assert service.why_inactive() is None
        # One that leads is ready without a cache.
        controller.begin_term()
        assert service.readiness_problem() is None
        controller.lose_term()
        assert service.readiness_problem() is not None
        loops[0].call_soon_threadsafe(may_load.set)
        wait_for(lambda: service.readiness_problem() is None, "the cache")
        # From now on a cache that has to be loaded again is no reason.
        loops[0].call_soon_threadsafe(may_load.clear)
        cluster.call(controller.connections.disconnect)
        cluster.call(controller.connections.reconnect)
        wait_for(lambda: service.has_session, "a session")
        assert service.readiness_problem() is None
        loops[0].call_soon_threadsafe(may_load.set)


def test_a_term_begins_with_the_standbys_cache(caplog: pytest.LogCaptureFixture) -> None:
    with (
        SimulatedCluster() as cluster,
        LiveController(cluster, contends=False, warm_standby=True) as controller,
        caplog.at_level(logging.INFO),
    ):
        cluster.create_topic("t", [(1, 2), (2, 1)])
        service = controller.service
        wait_for(
            lambda: standby_of(service),
            "the cache to be current",
            until=lambda shown: (shown["phase"], shown["partitions"]) == ("current", 2),
        )
        controller.begin_term()
        assert service.standby is not None
        assert (service.standby.copies, service.standby.differences) == (1, 0)
        assert set(controller.view.topics) == {"t"}
        cluster.create_topic("u", [(1,)])
        cluster.assign("t", [(1, 2), (2, 1), (1,)])
        wait_for(
            lambda: {name: len(t.partitions) for name, t in controller.view.topics.items()},
            "watches that report growth and new topics",
            until=lambda topics: topics == {"t": 3, "u": 1},
        )
    (record,) = [r for r in caplog.records if r.message == "Controller failover completed"]
    assert record.__dict__["topics_from"] == "standby"


def test_uninformed_broker_is_shown_until_informed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_loop, "UNINFORMED_CHECK_S", 0.01)
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        cluster.create_topic("t", [(1, 2), (2, 1)])

        def shown(expected: list[tuple[int, ...]]) -> None:
            wait_for(
                lambda: controller.view.topics.get("t"),
                f"{expected} to be shown",
                until=lambda t: bool(t) and [p.uninformed for p in t.partitions] == expected,
            )

        shown([(), ()])
        controller.connections.out_of_reach = {2: frozenset([TopicPartition("t", 1)])}
        shown([(), (2,)])
        assert controller.service.unreached_broker_count == 1
        controller.connections.out_of_reach = {}
        shown([(), ()])
        assert controller.service.unreached_broker_count == 0


def test_numbers_are_not_taken_in_the_middle_of_an_event() -> None:
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        service = controller.service
        wait_for(lambda: service.gauges.active_broker_count == 3, "numbers")
        parts = service._parts
        assert parts is not None

        def fire_while(busy_since: float | None) -> bool:
            """Whether numbers are taken."""
            before, parts.manager.busy_since = parts.gauges, busy_since
            parts._take_due_numbers()
            parts.manager.busy_since = None
            return parts.gauges is not before

        assert not cluster.call(fire_while, 1.0)
        cluster.stop_broker(1)
        wait_for(
            lambda: service.gauges.active_broker_count == 2, "the numbers after the next event"
        )
        assert cluster.call(fire_while, None)


class TestStateChanges:
    """Asked from another thread, answered by the controller's."""

    def test_a_controller_tells_what_it_knows_of_a_topic(self) -> None:
        with SimulatedCluster() as cluster, LiveController(cluster) as live:
            cluster.create_topic("t", [(1, 2), (2, 1)])
            wait_for(lambda: "t" in live.view.topics, "the topic to be known")
            answer = asyncio.run(live.service.state_changes("t", 1))
            assert answer.status == HTTPStatus.OK
            assert answer.body["isActive"]
            assert answer.body["controllerId"] == live.view.controller_id
            partitions: Any = answer.body["partitions"]
            (change,) = partitions[0]["changes"]
            assert change["cause"]["kind"] == "topic-created"
            assert change["kind"] == "first-leader"
            assert asyncio.run(live.service.state_changes("u", None)).status == HTTPStatus.NOT_FOUND

    def test_question_waits_for_a_busy_controller_and_can_be_given_up(self) -> None:
        with SimulatedCluster() as cluster, LiveController(cluster) as live:
            loop, held = live.service._loop, threading.Event()
            assert loop is not None
            loop.call_soon_threadsafe(held.wait)

            async def ask() -> JsonAnswer:
                return await asyncio.wait_for(live.service.state_changes("t", None), 0.05)

            try:
                with pytest.raises(TimeoutError):
                    asyncio.run(ask())
            finally:
                held.set()
            assert asyncio.run(live.service.state_changes("t", None)).body["isActive"]

    def test_question_waits_after_a_costly_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A topic of thousands of partitions takes long, and anybody may ask again and again."""
        monkeypatch.setattr(controller_service, "REST_FACTOR", 1e9)
        with SimulatedCluster() as cluster, LiveController(cluster) as live:

            async def ask() -> JsonAnswer:
                return await asyncio.wait_for(live.service.state_changes("t", None), 0.05)

            assert asyncio.run(live.service.state_changes("t", None)).body["isActive"]
            with pytest.raises(TimeoutError):
                asyncio.run(ask())

    def test_who_is_not_the_controller_says_so(self, service: ControllerService) -> None:
        answer = asyncio.run(service.state_changes("t", None))
        assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE
        assert answer.body["problem"] == "this Regent is not the controller"
        assert not answer.body["isActive"]


def test_a_listener_of_brokers_that_is_not_served_is_shown_though_it_leads() -> None:
    served = {"SSL": Address("regent", 9095)}
    with SimulatedCluster() as cluster, LiveController(cluster, served=served) as controller:
        service = controller.service
        assert service.readiness_problem() is None
        remark = wait_for(service.remark, "the brokers to be known")
        assert "PLAINTEXT (PLAINTEXT)" in remark
        assert service.status()["endpoint"] == {
            "served": {"SSL": "regent:9095"},
            "servedListeners": {},
            "listenersNotServed": {"PLAINTEXT": "PLAINTEXT"},
            "problem": None,
            "refusedPeers": [],
        }
