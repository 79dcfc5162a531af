"""The controller's own registration: for older brokers, while it leads, and never as a broker."""

from __future__ import annotations

import json

import pytest

from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.controller.term import cluster_loading
from regent.model.cluster import Address, EndPoint
from regent.model.topic_config import BrokerFacts
from regent.simulation.broker_znodes import encode_broker
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.brokers import decode_broker
from regent.zk_data.operations import Create
from tests.unit.controller.driving import once
from tests.unit.controller.processes import denying
from tests.unit.controller.world import CONTROLLER_ID, World, active_of, make_broker

SERVED = {"PLAINTEXT": Address("regent", 9095)}
OWN = paths.broker_id(CONTROLLER_ID)
OLD, NEW = ((2, 8),), ((3, 0), (3, 1))


def learn(
    world: World,
    controller: KafkaController,
    broker_id: int,
    versions: tuple[tuple[int, int], ...],
    *,
    has_answered: bool = True,
) -> None:
    """A broker answers what it runs; that, and what follows from it, is processed."""
    broker_epoch = active_of(controller).context.cluster.brokers[broker_id].epoch
    facts = BrokerFacts(broker_id=broker_id, versions=versions, has_answered=has_answered)
    world.process(controller, e.BrokerFactsLearned(broker_epoch, facts))
    world.deliver(controller)


def registered(world: World, *, served: bool = True) -> KafkaController:
    """A controller of a broker 2.8, which has said so."""
    world.start_broker(1, 2)
    controller = world.active_controller()
    learn(world, controller, 1, OLD)
    assert world.exists(OWN) is served
    return controller


def test_it_has_the_brokers_listeners_and_lives_as_long_as_the_session() -> None:
    world = World(served=SERVED)
    registered(world)
    node = world.node(OWN)
    assert node.ephemeral_owner
    found = decode_broker(CONTROLLER_ID, node)
    assert found.endpoints == (EndPoint("PLAINTEXT", "PLAINTEXT", "regent", 9095),)
    content = json.loads(node.data)
    assert (content["version"], content["host"], content["port"]) == (4, "regent", 9095)
    assert (content["jmx_port"], content["timestamp"]) == (-1, str(world.driver.now_ms))


def test_a_node_of_somebody_else_in_its_place_that_may_not_be_read_costs_no_controller() -> None:
    world = World(served=SERVED)
    world.put(OWN, b"")
    world.driver.before = denying(OWN, zk_effects.ReadData)
    controller = registered(world)
    assert controller.active is not None
    world.process(controller, e.NotEligible())
    assert world.holder() is None
    assert world.exists(OWN)


@pytest.mark.parametrize(("versions", "has_answered"), [(NEW, True), (OLD, False)])
def test_brokers_that_look_elsewhere_or_have_not_answered_need_none(
    versions: tuple[tuple[int, int], ...], has_answered: bool
) -> None:
    world = World(served=SERVED)
    world.start_broker(1)
    controller = world.active_controller()
    learn(world, controller, 1, versions, has_answered=has_answered)
    assert not world.exists(OWN)


def test_it_is_no_broker() -> None:
    world = World(served=SERVED)
    controller = registered(world)
    assert list(active_of(controller).context.cluster.brokers) == [1, 2]
    assert list(world.run(cluster_loading.read_brokers(world.log))) == [1, 2]
    assert controller.life.refusal is None


def test_once_the_last_older_broker_is_upgraded_it_goes() -> None:
    world = World(served=SERVED)
    controller = registered(world)
    learn(world, controller, 2, NEW)
    world.bounce_broker(1)
    world.deliver(controller)
    learn(world, controller, 1, NEW)
    assert not world.exists(OWN)


def test_an_older_broker_that_is_down_keeps_it() -> None:
    world = World(served=SERVED)
    world.create_topic("t", {0: (1, 2)})
    controller = registered(world)
    learn(world, controller, 2, NEW)
    world.stop_broker(1)
    world.deliver(controller)
    assert world.exists(OWN)


def test_it_follows_the_listeners_of_the_brokers() -> None:
    world = World(served=SERVED)
    controller = registered(world)
    broker = make_broker(3)
    other = EndPoint("OTHER", "PLAINTEXT", "broker-3", 9093)
    content = encode_broker(type(broker)(3, 1, (*broker.endpoints, other)), timestamp_ms=0)
    world.outsider.multi([Create(paths.broker_id(3), content, ephemeral=True)])
    world.deliver(controller)
    node = world.node(OWN)
    listeners = [each.listener for each in decode_broker(CONTROLLER_ID, node).endpoints]
    assert listeners == ["PLAINTEXT", "OTHER"]


def test_if_somebody_deletes_it_it_comes_back() -> None:
    world = World(served=SERVED)
    controller = registered(world)
    world.delete(OWN)
    world.deliver(controller)
    assert world.exists(OWN)


def test_it_is_written_under_the_fence() -> None:
    world = World(served=SERVED)
    world.start_broker(1)
    controller = world.active_controller()
    world.elect_rival(9)
    learn(world, controller, 1, OLD)
    assert not world.exists(OWN)
    assert controller.active is None


def test_it_goes_together_with_the_controller() -> None:
    world = World(served=SERVED)
    controller = registered(world)
    world.driver.performed.clear()
    world.process(controller, e.NotEligible())
    assert not world.exists(OWN)
    assert world.holder() is None
    (released,) = [x for x in world.driver.performed if isinstance(x, zk_effects.Multi)]
    assert [each.path for each in released.operations] == [
        paths.CONTROLLER_EPOCH,
        OWN,
        paths.CONTROLLER,
    ]


def test_if_somebody_else_deletes_it_at_that_moment_the_controller_is_handed_over() -> None:
    world = World(served=SERVED)
    controller = registered(world)
    world.driver.before = once(zk_effects.Multi, lambda: world.delete(OWN))
    world.process(controller, e.NotEligible())
    assert world.holder() is None
