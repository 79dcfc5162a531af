"""Settings that contradict the cluster: it is left alone, for as long as the process lives."""

from __future__ import annotations

import pytest

from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.unit.controller.processes import queues_up_again
from tests.unit.controller.term.test_initial_state import copy_of
from tests.unit.controller.world import CONTROLLER_ID, T0, World


def start(world: World) -> KafkaController:
    controller = world.controller()
    world.process(controller, e.Startup(), e.Eligible())
    world.deliver(controller)
    return controller


def is_elected(world: World) -> bool:
    return any(isinstance(x, zk_effects.Multi) for x in world.driver.performed)


def with_id(controller_id: int, **settings: object) -> World:
    world = World(**settings)
    world.config = world.config.__class__(controller_id, **settings)  # type: ignore[arg-type]
    world.start_broker(1, 2)
    return world


class TestControllerId:
    def refused(self, controller: KafkaController, reason: str) -> bool:
        said = controller.life.refusal or ""
        return controller.active is None and "controller_id" in said and reason in said

    def test_that_of_a_registered_broker_is_refused_before_any_election(self) -> None:
        world = with_id(CONTROLLER_ID)
        world.start_broker(CONTROLLER_ID)
        controller = start(world)
        assert self.refused(controller, "a broker is registered under it")
        assert not is_elected(world)

    def test_another_replica_is_asked_for_at_once_and_again_and_again(self) -> None:
        """It may have another one, and may be started later."""
        world = with_id(CONTROLLER_ID)
        world.start_broker(CONTROLLER_ID)
        controller = start(world)
        assert queues_up_again(world)
        world.process(controller, e.NotEligible(), e.Eligible())
        assert not queues_up_again(world), "not without a pause"
        world.process(controller, world.driver.timers["reelect"].event)
        assert queues_up_again(world)
        assert controller.active is None

    @pytest.mark.parametrize("controller_id", [1, 2, 999, 1000])
    def test_one_that_people_give_to_brokers_is_refused(self, controller_id: int) -> None:
        world = with_id(controller_id)
        world.stop_broker(1, 2)
        assert self.refused(start(world), "ids up to 1000" if controller_id > 2 else "")
        assert not is_elected(world)

    def test_one_that_brokers_have_drawn_is_refused_and_the_next_is_not(self) -> None:
        for controller_id, is_refused in ((1_003, True), (1_004, False)):
            world = with_id(controller_id)
            for _ in range(3):  # each drawing raises the version
                world.put(paths.BROKER_SEQID)
            controller = start(world)
            assert (controller.active is None) is is_refused

    @pytest.mark.parametrize("source", ["ZooKeeper", "a standby's copy"])
    @pytest.mark.parametrize(
        ("replicas", "isr"), [((1, CONTROLLER_ID), (1,)), ((1, 2), (1, CONTROLLER_ID))]
    )
    def test_that_of_a_broker_of_the_past_is_refused(
        self, replicas: tuple[int, ...], isr: tuple[int, ...], source: str
    ) -> None:
        world = with_id(CONTROLLER_ID)
        world.create_topic("t", {0: replicas})
        world.set_state(T0, 1, isr, leader_epoch=5)
        if source != "ZooKeeper":
            world.driver.standby = lambda: copy_of(world)
        controller = start(world)
        assert self.refused(controller, "it is the id of a replica of t-0")
        assert world.holder() is None
        assert world.state_of(T0).leader_epoch == 5

    def test_a_broker_that_registers_under_it_later_ends_it_for_good(self) -> None:
        world = with_id(CONTROLLER_ID)
        controller = start(world)
        assert controller.active is not None
        world.start_broker(CONTROLLER_ID)
        world.deliver(controller)
        assert self.refused(controller, "a broker is registered under it")
        assert world.holder() is None
        world.stop_broker(CONTROLLER_ID)
        world.deliver(controller)
        world.process(controller, e.Reelect(), e.SessionEstablished(), e.Eligible())
        assert self.refused(controller, "a broker is registered under it")
        assert world.holder() is None


class TestInterBrokerProtocol:
    @pytest.mark.parametrize("wanted", [(2, 5), (3, 9)])
    def test_one_that_they_contradict_is_refused_before_anything_depends_on_it(
        self, wanted: tuple[int, int]
    ) -> None:
        world = with_id(CONTROLLER_ID, inter_broker_protocol=wanted)
        world.driver.inter_broker_protocol = (2, 6)
        world.create_topic("t", {0: (1,)})
        controller = start(world)
        assert controller.active is None
        assert "the brokers run 2.6" in (controller.life.refusal or "")
        assert not world.exists(paths.FEATURE)
        assert world.topic("t").topic_id is None
        assert world.holder() is None

    def test_brokers_that_contradict_it_later_end_it(self) -> None:
        world = with_id(CONTROLLER_ID, inter_broker_protocol=(2, 6))
        world.driver.inter_broker_protocol = (2, 6)
        controller = start(world)
        world.process(controller, e.InterBrokerProtocolChanged(1, (2, 5)))
        assert controller.active is None
        assert "the brokers run 2.5" in (controller.life.refusal or "")
