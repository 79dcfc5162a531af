"""A ZooKeeper path without a Kafka cluster, and one whose cluster is exchanged."""

from __future__ import annotations

import pytest

from regent.controller import effects
from regent.controller import events as e
from regent.controller.config import MissingCluster
from regent.controller.kafka_controller import KafkaController
from regent.model.errors import ZooKeeperUnavailableError
from regent.simulation.broker_znodes import encode_cluster_id
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.unit.controller.driving import once, raising
from tests.unit.controller.processes import queues_up_again
from tests.unit.controller.world import CLUSTER, World, active_of

OTHER = "qZQMLEsmQuWQZtfRBUVcQg"
TIMER = "reelect"


def nowhere(**settings: object) -> World:
    """A path that no broker has ever seen."""
    world = World(**settings)
    for path in ("/cluster", "/brokers", "/config", "/admin", paths.CONSUMERS):
        world.delete(path)
    return world


def writes(world: World) -> list[zk_effects.Multi | zk_effects.Write]:
    return [x for x in world.driver.performed if isinstance(x, zk_effects.Multi | zk_effects.Write)]


def contends(world: World) -> bool:
    return any(isinstance(x, effects.Contend) for x in world.driver.performed)


def look_again(world: World, controller: KafkaController) -> None:
    world.process(controller, world.driver.timers[TIMER].event)


class TestMissing:
    def test_nothing_is_written_and_the_reason_is_said_once(self) -> None:
        world = nowhere()
        controller = world.controller()
        world.process(controller, e.SessionEstablished(), e.Eligible())
        for _ in range(3):
            look_again(world, controller)
        assert controller.active is None
        assert writes(world) == []
        assert not contends(world)
        assert "there is no Kafka cluster" in (controller.life.refusal or "")
        assert "missing_cluster" in (controller.life.refusal or "")
        said = [r for r in world.log.records if r.message.startswith("No Kafka cluster found")]
        assert len(said) == 1

    @pytest.mark.parametrize("sign", ["its id", "a broker"])
    def test_as_soon_as_there_is_one_it_is_served(self, sign: str) -> None:
        world = nowhere()
        controller = world.controller()
        world.process(controller, e.SessionEstablished())
        if sign == "its id":
            world.put(paths.CLUSTER_ID, encode_cluster_id(CLUSTER))
        else:
            world.put(paths.BROKER_IDS)
            world.start_broker(1)
        look_again(world, controller)
        assert contends(world)
        assert controller.life.refusal is None
        world.process(controller, e.Eligible())
        assert controller.active is not None

    def test_it_goes_on_looking_though_zookeeper_was_out_of_reach(self) -> None:
        world = World()
        controller = world.controller()
        lost = ZooKeeperUnavailableError("no server")
        world.driver.before = once(zk_effects.Exists, raising(lost))
        world.process(controller, e.SessionEstablished())
        assert not contends(world)
        look_again(world, controller)
        assert contends(world)

    def test_a_cluster_that_is_to_begin_is_created_where_the_settings_say_so(self) -> None:
        world = nowhere(missing_cluster=MissingCluster.CREATE)
        controller = world.controller()
        world.process(controller, e.SessionEstablished(), e.Eligible())
        assert world.exists(paths.BROKER_TOPICS)
        assert active_of(controller).context.cluster.cluster_id is None

    def test_its_id_is_learned_when_the_first_broker_writes_it(self) -> None:
        world = nowhere(missing_cluster=MissingCluster.CREATE)
        controller = world.active_controller()
        world.driver.views.clear()
        world.put(paths.CLUSTER_ID, encode_cluster_id(CLUSTER))
        assert e.ClusterIdChange() in world.deliver(controller)
        assert active_of(controller).context.cluster.cluster_id == CLUSTER
        assert frozenset() in world.driver.views


class TestChanged:
    @pytest.mark.parametrize("change", ["another id", "no id", "garbage"])
    def test_a_running_controller_gives_up_and_says_why(self, change: str) -> None:
        world = World()
        world.start_broker(1)
        controller = world.active_controller()
        if change == "no id":
            world.delete(paths.CLUSTER_ID)
        else:
            data = b"{" if change == "garbage" else encode_cluster_id(OTHER)
            world.put(paths.CLUSTER_ID, data)
        world.deliver(controller)
        assert controller.active is None
        assert world.holder() is None
        assert f"was {CLUSTER}" in (controller.life.refusal or "")
        look_again(world, controller)
        assert controller.active is None

    def test_when_the_id_is_back_so_is_the_controller(self) -> None:
        world = World()
        world.start_broker(1)
        controller = world.active_controller()
        world.put(paths.CLUSTER_ID, encode_cluster_id(OTHER))
        world.deliver(controller)
        world.put(paths.CLUSTER_ID, encode_cluster_id(CLUSTER))
        world.deliver(controller)
        look_again(world, controller)
        assert controller.active is not None
        assert controller.life.refusal is None

    def test_a_replica_that_was_started_for_the_present_cluster_is_let_go_first(self) -> None:
        """The address of ZooKeeper leads elsewhere, and this one was elected there as well."""
        world = World()
        world.start_broker(1)
        controller = world.active_controller()
        world.put(paths.CLUSTER_ID, encode_cluster_id(OTHER))
        world.process(controller, e.NotEligible(), e.SessionEstablished())
        assert not queues_up_again(world)
        world.process(controller, e.Eligible())
        assert queues_up_again(world)
        world.process(controller, e.NotEligible(), e.Eligible())
        assert not queues_up_again(world), "not without a pause"
        look_again(world, controller)
        assert queues_up_again(world)
        assert controller.active is None

    def test_a_replica_that_is_not_elected_says_so_only_until_the_id_is_back(self) -> None:
        world = World()
        world.start_broker(1)
        controller = world.controller()
        world.process(controller, e.SessionEstablished())
        world.put(paths.CLUSTER_ID, encode_cluster_id(OTHER))
        world.deliver(controller)
        look_again(world, controller)
        assert f"was {CLUSTER}" in (controller.life.refusal or "")
        world.put(paths.CLUSTER_ID, encode_cluster_id(CLUSTER))
        look_again(world, controller)
        assert controller.life.refusal is None
        assert world.holder() is None

    def test_a_change_during_a_disconnection_is_found_afterwards(self) -> None:
        """kazoo drops watches without notice."""
        world = World()
        world.start_broker(1)
        controller = world.active_controller()
        world.put(paths.CLUSTER_ID, encode_cluster_id(OTHER))
        world.driver.client.take_events()
        world.process(controller, e.SessionReconnected())
        assert controller.active is None
        assert OTHER in (controller.life.refusal or "")
