"""The controller as a live broker of UpdateMetadata."""

from __future__ import annotations

from regent.cluster.announced_controller import announced_controller
from regent.controller.brokers.announcement import listeners_not_served
from regent.model.cluster import Address, Broker, EndPoint
from tests.unit.controller.world import CONTROLLER_ID, World

SERVED = {"PLAINTEXT": Address("regent", 9095), "SSL": Address("regent", 9096)}

NO_SUCH_LISTENER = (
    "No broker has a listener of this name: check endpoint_further_listeners and "
    "endpoint_advertised_listeners"
)


def broker(broker_id: int, **listeners: str) -> Broker:
    endpoints = tuple(
        EndPoint(name, protocol, f"broker-{broker_id}", 9000 + i)
        for i, (name, protocol) in enumerate(listeners.items())
    )
    return Broker(broker_id, 1, endpoints)


def test_it_has_every_listener_of_the_brokers_under_the_brokers_names() -> None:
    brokers = {
        1: broker(1, INTERNAL="PLAINTEXT", CLIENTS="SSL"),
        2: broker(2, INTERNAL="PLAINTEXT", OTHERS="PLAINTEXT"),
    }
    announced = announced_controller(7, brokers, SERVED)
    assert announced is not None
    assert announced.broker_id == 7
    assert announced.endpoints == (
        EndPoint("INTERNAL", "PLAINTEXT", "regent", 9095),
        EndPoint("CLIENTS", "SSL", "regent", 9096),
        EndPoint("OTHERS", "PLAINTEXT", "regent", 9095),
    )
    assert listeners_not_served(brokers, SERVED) == {}


def test_a_listener_whose_security_is_not_served_is_left_out_and_named() -> None:
    brokers = {1: broker(1, INTERNAL="SASL_SSL", CLIENTS="PLAINTEXT")}
    announced = announced_controller(7, brokers, SERVED)
    assert announced is not None
    assert [endpoint.listener for endpoint in announced.endpoints] == ["CLIENTS"]
    assert listeners_not_served(brokers, SERVED) == {"INTERNAL": "SASL_SSL"}


def test_a_listener_may_have_an_address_of_its_own() -> None:
    brokers = {1: broker(1, INTERNAL="SSL", EXTERNAL="SSL", OTHER="SASL_SSL")}
    addresses = {"EXTERNAL": Address("kafka.example", 9443), "OTHER": Address("regent", 1)}
    announced = announced_controller(7, brokers, SERVED, addresses=addresses)
    assert announced is not None
    assert announced.endpoints == (
        EndPoint("INTERNAL", "SSL", "regent", 9096),
        EndPoint("EXTERNAL", "SSL", "kafka.example", 9443),
    )


def test_every_list_of_live_brokers_has_it() -> None:
    address = Address("kafka.example", 9443)
    world = World(served=SERVED, listener_addresses={"PLAINTEXT": address})
    world.start_broker(1)
    world.fail_over()
    assert world.driver.sent
    for requests in world.driver.sent:
        assert list(requests.brokers) == [1]
        assert requests.announced is not None
        assert requests.announced.broker_id == CONTROLLER_ID
        assert requests.announced.endpoints == (EndPoint("PLAINTEXT", "PLAINTEXT", *address),)


def test_an_address_for_a_listener_that_no_broker_has_is_reported() -> None:
    address = Address("regent", 9443)
    world = World(served=SERVED, listener_addresses={"PLAINTEXT": address, "EXTERNL": address})
    world.start_broker(1)
    world.fail_over()
    assert world.log.warnings(NO_SUCH_LISTENER) == [{"listeners": ("EXTERNL",)}]


def test_while_no_broker_is_up_nobody_knows_the_listeners() -> None:
    world = World(served=SERVED, listener_addresses={"EXTERNAL": Address("regent", 9443)})
    world.fail_over()
    assert world.log.warnings(NO_SUCH_LISTENER) == []


def test_without_any_it_is_not_announced() -> None:
    assert announced_controller(7, {1: broker(1, INTERNAL="SASL_SSL")}, SERVED) is None
    assert announced_controller(7, {}, SERVED) is None
