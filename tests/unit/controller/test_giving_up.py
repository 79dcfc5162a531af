"""A controller that fails, or is stopped, gives the cluster to the brokers' own controllers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.model.errors import (
    SessionExpiredError,
    UnexpectedZooKeeperError,
    ZooKeeperUnavailableError,
)
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.unit.controller.closed_client import ClosedClient, Right, take_rights
from tests.unit.controller.driving import once, raising
from tests.unit.controller.processes import (
    TIMER,
    channel_failed,
    epoch,
    led_cluster,
    queues_up_again,
)
from tests.unit.controller.world import CONTROLLER_ID, World, active_of


@pytest.fixture
def world() -> World:
    return led_cluster()


class TestFailures:
    def fail(self, world: World, controller: KafkaController) -> int:
        """Something unexpected happens while a broker change is processed. Returns the wait."""
        error = UnexpectedZooKeeperError("NOAUTH", "/brokers/ids")
        world.driver.before = once(zk_effects.ReadChildren, raising(error))
        world.process(controller, e.BrokerChange())
        world.driver.before = lambda _: None
        return world.driver.timers[TIMER].after_ms

    def test_a_failure_gives_the_controller_to_the_brokers(self, world: World) -> None:
        controller = world.active_controller()
        self.fail(world, controller)
        assert controller.active is None
        assert world.holder() is None
        (reported,) = world.log.errors("Event failed, giving the controller up")
        assert reported["event"] == "BrokerChange"

    def test_it_waits_even_though_the_place_is_free(self, world: World) -> None:
        controller = world.active_controller()
        self.fail(world, controller)
        world.process(controller, e.Reelect())
        wait = self.fail(world, controller)
        assert e.ControllerChange() in world.deliver(controller)
        world.process(controller, e.Eligible())
        assert controller.active is None
        world.elect_rival(2)
        world.deliver(controller)
        assert world.driver.timers[TIMER].after_ms == wait
        world.process(controller, world.driver.timers[TIMER].event)
        assert controller.active is not None

    def test_the_wait_doubles_up_to_its_bound(self, world: World) -> None:
        controller = world.active_controller()
        waits = []
        for _ in range(8):
            waits.append(self.fail(world, controller))
            world.process(controller, e.Reelect())
        assert waits == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]

    def test_its_reason_is_shown_until_an_attempt_succeeds(self, world: World) -> None:
        controller = world.active_controller()
        self.fail(world, controller)
        error = UnexpectedZooKeeperError("NOAUTH", "/controller")
        world.driver.before = once(zk_effects.ReadData, raising(error))
        world.process(controller, e.Reelect())
        assert "NOAUTH for /controller" in (controller.life.refusal or "")
        world.elect_rival(2)
        world.deliver(controller)
        assert "NOAUTH for /controller" in (controller.life.refusal or "")
        world.process(controller, e.Reelect())
        assert controller.active is not None
        assert controller.life.refusal is None

    def test_only_a_defect_is_logged_with_a_traceback(self, world: World) -> None:
        controller = world.active_controller()
        self.fail(world, controller)
        world.process(controller, e.Reelect())
        world.process(controller, e.LeaderAndIsrResponseReceived(("no answer",)))  # type: ignore[arg-type]
        known, defect = world.log.errors("Event failed, giving the controller up")
        assert "exception" not in known
        assert "exception" in defect
        assert "AttributeError" in (controller.life.refusal or "")

    def test_another_replica_is_next_after_a_second_defect(self, world: World) -> None:
        """It may have what this one lacks, such as memory."""
        controller = world.active_controller()
        defects = []
        for _ in range(3):
            world.process(controller, e.LeaderAndIsrResponseReceived(("no answer",)))  # type: ignore[arg-type]
            defects.append(queues_up_again(world))
            world.process(controller, e.Reelect())
        assert defects == [False, True, True]

    def test_what_zookeeper_refuses_is_no_reason_to_let_another_replica_try(
        self, world: World
    ) -> None:
        controller = world.active_controller()
        for _ in range(3):
            self.retry_and_fail(world, controller)
        assert not queues_up_again(world)

    def test_a_failure_long_ago_is_forgiven(self, world: World) -> None:
        controller = world.active_controller()
        assert [self.fail(world, controller), self.retry_and_fail(world, controller)] == [
            1_000,
            2_000,
        ]
        world.driver.now_ms += 600_001
        assert self.retry_and_fail(world, controller) == 1_000

    def retry_and_fail(self, world: World, controller: KafkaController) -> int:
        world.process(controller, e.Reelect())
        return self.fail(world, controller)

    def test_a_channel_of_a_former_term_or_of_a_former_life_of_its_broker_is_no_failure(
        self, world: World
    ) -> None:
        controller = world.active_controller()
        former_term = channel_failed(controller)
        world.process(controller, e.NotEligible(), e.Eligible())
        world.process(controller, former_term)
        former_life = channel_failed(controller)
        world.bounce_broker(1)
        world.deliver(controller)
        world.process(controller, former_life)
        world.stop_broker(1)
        world.deliver(controller)
        world.process(controller, former_life)
        assert epoch(controller) == 2
        assert world.log.errors("Event failed, giving the controller up") == []

    def test_a_protocol_version_that_was_learned_in_a_former_term_is_not_taken_over(
        self, world: World
    ) -> None:
        controller = world.active_controller()
        world.process(controller, e.NotEligible(), e.Eligible())
        world.process(controller, e.InterBrokerProtocolChanged(1, (2, 4)))
        assert active_of(controller).context.cluster.inter_broker_protocol == (3, 9)


class TestLeftBehind:
    """A controller that loses ZooKeeper, or needs a higher epoch, resigns, and leaves
    ``/controller`` for its own next election. Its session may well live on."""

    def resign(self, world: World) -> KafkaController:
        controller = world.active_controller()
        lost = ZooKeeperUnavailableError("no answer in time")
        world.driver.before = once(zk_effects.ReadChildren, raising(lost))
        world.process(controller, e.BrokerChange())
        assert controller.active is None
        assert world.holder() == CONTROLLER_ID
        return controller

    def test_an_election_that_fails_gives_it_to_the_brokers(self, world: World) -> None:
        controller = self.resign(world)
        closed = UnexpectedZooKeeperError("NOAUTH", "/controller_epoch")
        world.driver.before = once(zk_effects.Multi, raising(closed))
        world.process(controller, world.driver.timers[TIMER].event)
        assert world.holder() is None

    def test_another_replica_or_a_broker_gets_it(self, world: World) -> None:
        controller = self.resign(world)
        world.process(controller, e.NotEligible())
        assert world.holder() is None


class TestMissingRights:
    """Regent may not read ``/controller_epoch``, so what it gives up cannot be fenced. The session
    goes on, and with it ``/controller``: no broker takes over as long as the node is there."""

    @pytest.fixture
    def client(self, world: World) -> ClosedClient:
        return take_rights(world)

    def fail(
        self, world: World, controller: KafkaController, client: ClosedClient, *others: str
    ) -> None:
        """Its rights on the epoch are taken, and to delete below the other nodes."""
        client.missing.add((paths.CONTROLLER_EPOCH, Right.READ))
        client.missing.update((parent, Right.DELETE) for parent in others)
        world.process(controller, channel_failed(controller))
        assert controller.active is None

    def test_what_our_session_holds_is_deleted_without_the_fence(
        self, world: World, client: ClosedClient
    ) -> None:
        controller = world.active_controller()
        self.fail(world, controller, client)
        assert world.holder() is None
        (reported,) = world.log.warnings("Controller released without a check of the epoch")
        assert "NOAUTH for /controller_epoch" in str(reported["reason"])

    def test_what_another_session_holds_is_left_alone(
        self, world: World, client: ClosedClient
    ) -> None:
        """Even if it has our id."""
        controller = world.active_controller()
        world.elect_rival(CONTROLLER_ID)
        self.fail(world, controller, client)
        assert world.holder() == CONTROLLER_ID
        assert world.log.warnings("Controller node not deleted") == []

    @pytest.mark.parametrize("is_eligible", [True, False])
    def test_what_cannot_be_deleted_at_all_is_tried_again(
        self, world: World, client: ClosedClient, *, is_eligible: bool
    ) -> None:
        controller = world.active_controller()
        self.fail(world, controller, client, "/")
        if not is_eligible:
            world.process(controller, e.NotEligible())
        for _ in range(2):
            world.process(controller, world.driver.timers.pop(TIMER).event)
            assert world.holder() == CONTROLLER_ID
        client.missing.discard(("/", Right.DELETE))
        world.process(controller, world.driver.timers.pop(TIMER).event)
        assert world.holder() is None


class TestHandingBack:
    @pytest.mark.parametrize("make", [e.Shutdown, lambda reply: e.NotEligible()])
    def test_the_node_is_deleted_and_not_taken_again(
        self, world: World, make: Callable[[object], e.ControllerEvent]
    ) -> None:
        controller = world.active_controller()
        world.process(controller, make("token"))
        assert controller.active is None
        assert world.holder() is None
        assert world.driver.resignations == 1
        world.deliver(controller)
        world.process(controller, e.Reelect(), e.ControllerChange())
        assert controller.active is None

    def test_a_shutdown_is_answered_though_zookeeper_is_gone(self, world: World) -> None:
        controller = world.active_controller()
        world.driver.before = once(zk_effects.Multi, raising(SessionExpiredError("gone")))
        world.process(controller, e.Shutdown("token"))
        assert [a.reply_to for a in world.driver.answers] == ["token"]
        assert controller.active is None

    def test_what_a_lost_connection_kept_from_being_deleted_is_deleted_when_it_is_back(
        self, world: World
    ) -> None:
        controller = world.active_controller()
        world.driver.before = once(zk_effects.Multi, raising(ZooKeeperUnavailableError("lost")))
        world.process(controller, e.NotEligible())
        assert world.holder() == CONTROLLER_ID
        world.process(controller, e.SessionReconnected())
        assert world.holder() is None
        assert controller.active is None
