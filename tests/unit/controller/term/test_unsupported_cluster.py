"""Brokers that need answers of the controller: a cluster whose brokers cannot ask is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from regent.controller import events as e
from regent.controller.brokers.announcement import (
    refuse_address_of_a_broker,
    refuse_unreachable,
)
from regent.model.cluster import Address, Broker, EndPoint
from regent.model.errors import UnsupportedClusterError
from regent.simulation.broker_znodes import encode_broker
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.controller import encode_controller
from regent.zk_data.operations import Create, SetData
from tests.unit.controller.processes import queues_up_again
from tests.unit.controller.world import World, make_broker

PLAINTEXT = {"PLAINTEXT": Address("regent", 9095)}


def broker(broker_id: int, listeners: dict[str, str], *, version: int = 5) -> Broker:
    endpoints = tuple(
        EndPoint(name, protocol, f"broker-{broker_id}", 9000 + i)
        for i, (name, protocol) in enumerate(listeners.items())
    )
    return Broker(broker_id, 1, endpoints, registration_version=version)


def test_a_single_newer_broker_is_named_with_the_ways_out() -> None:
    with pytest.raises(
        UnsupportedClusterError, match=r"brokers \[2\].*endpoint_port.*protocol\.version=2\.6"
    ):
        refuse_unreachable([make_broker(1), make_broker(2, registration_version=5)], {})


@pytest.mark.parametrize(
    ("listeners", "settings", "reason"),
    [
        ({"A": "PLAINTEXT"}, {}, None),
        ({"A": "PLAINTEXT", "B": "PLAINTEXT"}, {}, None),
        ({"A": "PLAINTEXT", "B": "SSL"}, {}, r"B \(SSL is not served\)"),
        ({"A": "PLAINTEXT", "B": "SSL"}, {"inter_broker_listener": "A"}, None),
        (
            {"A": "PLAINTEXT", "B": "SSL"},
            {"inter_broker_listener": "B"},
            r"B \(SSL is not served\).*endpoint_tls",
        ),
        ({"A": "PLAINTEXT"}, {"inter_broker_listener": "C"}, r"C \(which all of them lack\)"),
        (
            {"A": "PLAINTEXT", "B": "PLAINTEXT"},
            {"announced_listeners": {"A"}},
            r"B \(not in endpoint_announced_listeners\)",
        ),
        (
            {"A": "PLAINTEXT", "B": "PLAINTEXT"},
            {"announced_listeners": {"A"}, "inter_broker_listener": "A"},
            None,
        ),
    ],
)
def test_every_listener_by_which_it_may_be_asked_has_to_be_served_and_announced(
    listeners: dict[str, str], settings: dict[str, Any], reason: str | None
) -> None:
    brokers = [broker(1, listeners)]
    if reason is None:
        refuse_unreachable(brokers, PLAINTEXT, **settings)
        return
    with pytest.raises(UnsupportedClusterError, match=reason):
        refuse_unreachable(brokers, PLAINTEXT, **settings)


def test_a_broker_that_lacks_the_listener_of_the_others_may_ask_by_any_of_its_own() -> None:
    """Brokers that use the listener cannot be controllers: they fail at that broker. So nobody
    would lead if we did not."""
    brokers = [broker(1, {"A": "PLAINTEXT", "C": "SSL"}), broker(2, {"B": "PLAINTEXT"})]
    refuse_unreachable(brokers, PLAINTEXT, inter_broker_listener="A")


def test_a_broker_that_lacks_it_and_cannot_ask_is_to_get_it() -> None:
    brokers = [broker(1, {"A": "PLAINTEXT"}), broker(2, {"B": "SSL"})]
    with pytest.raises(
        UnsupportedClusterError, match=r"Give brokers \[2\] the listener A.*inter_broker_listener"
    ):
        refuse_unreachable(brokers, PLAINTEXT, inter_broker_listener="A")


def test_listeners_of_older_brokers_do_not_count() -> None:
    refuse_unreachable(
        [broker(1, {"A": "PLAINTEXT"}), broker(2, {"B": "SSL"}, version=4)], PLAINTEXT
    )


@pytest.mark.parametrize("version", [1, 5])
@pytest.mark.parametrize("host", ["broker-1", "Broker-1"])
def test_an_address_that_is_a_brokers_is_not_announced(host: str, version: int) -> None:
    """Who asks the controller there would ask the broker, which refuses as it is none."""
    brokers = [broker(1, {"A": "PLAINTEXT", "B": "SSL"}, version=version)]
    with pytest.raises(
        UnsupportedClusterError,
        match=rf"{host}:9001.*broker 1.*listener B.*endpoint_advertised_host",
    ):
        refuse_address_of_a_broker(brokers, [Address("regent", 9095), Address(host, 9001)])


def test_a_broker_may_have_the_same_host_or_the_same_port() -> None:
    brokers = [broker(1, {"A": "PLAINTEXT"})]
    for address in (Address("broker-1", 9095), Address("regent", 9000)):
        refuse_address_of_a_broker(brokers, [address])


@pytest.mark.parametrize("is_of_a_listener", [False, True])
def test_a_cluster_with_a_broker_at_our_address_is_left_alone(is_of_a_listener: bool) -> None:
    (endpoint,) = make_broker(1).endpoints
    address = Address(endpoint.host, endpoint.port)
    world = (
        World(served=PLAINTEXT, listener_addresses={"EXTERNAL": address})
        if is_of_a_listener
        else World(served={"PLAINTEXT": address})
    )
    world.start_broker(1)
    world.elect_rival(1)
    controller = world.controller()
    world.process(controller, e.Startup(), e.Eligible())
    assert controller.active is None
    assert controller.life.refusal is not None
    assert "is that of broker 1" in controller.life.refusal
    assert queues_up_again(world), "another replica may be at another address"


def test_its_controller_is_not_taken_over_and_the_reason_is_told() -> None:
    world = World()
    world.start_broker(1)
    world.start_broker(2, registration_version=5)
    world.elect_rival(1)
    controller = world.controller()
    world.process(controller, e.Startup(), e.Eligible())
    assert controller.active is None
    assert world.holder() == 1
    assert "brokers [2]" in (controller.life.refusal or "")
    assert not any(isinstance(x, zk_effects.Multi) for x in world.driver.performed)


@pytest.mark.parametrize("reason", ["brokers", "a migration", "another Regent"])
def test_one_that_has_let_another_replica_go_first_does_not_say_why_for_ever(reason: str) -> None:
    """The other one is elected when the reason is gone."""
    world = World()
    world.start_broker(1)
    match reason:
        case "brokers":
            world.start_broker(2, registration_version=5)
        case "a migration":
            world.put(paths.MIGRATION, b"{}")
        case _:
            content = encode_controller(4711, 0, election_path="/elsewhere")
            world.put(paths.CONTROLLER, content)
    controller = world.controller()
    world.process(controller, e.SessionEstablished(), e.Eligible(), e.NotEligible())
    for _ in range(3):
        world.process(controller, world.driver.timers["reelect"].event)
        assert controller.life.refusal is not None
    if reason == "brokers":
        world.stop_broker(2)
    else:
        world.delete(paths.MIGRATION if reason == "a migration" else paths.CONTROLLER)
    world.process(controller, world.driver.timers["reelect"].event)
    assert controller.life.refusal is None
    assert controller.active is None


@pytest.mark.parametrize("is_registered_already", [False, True])
def test_a_broker_with_a_listener_that_is_not_served_ends_it(is_registered_already: bool) -> None:
    world = World(served=PLAINTEXT)
    world.start_broker(1, registration_version=5)
    if is_registered_already:
        world.start_broker(2, registration_version=5)
    controller = world.active_controller()
    path = paths.broker_id(2)
    content = encode_broker(broker(2, {"A": "PLAINTEXT", "B": "SSL"}), timestamp_ms=0)
    change = SetData(path, content) if is_registered_already else Create(path, content)
    world.outsider.multi([change])
    world.deliver(controller)
    assert controller.active is None
    assert world.holder() is None
    assert "B (SSL is not served)" in (controller.life.refusal or "")
