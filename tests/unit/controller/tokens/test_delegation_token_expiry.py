"""Expired delegation tokens go from ZooKeeper, and brokers are notified of each (KIP-48)."""

from __future__ import annotations

import pytest

from regent.controller.kafka_controller import KafkaController
from regent.controller.tokens.delegation_token_expiry import FIRST_CHECK_MS, REMOVED_AT_A_TIME
from regent.model.errors import RegentError, UnexpectedZooKeeperError, ZooKeeperUnavailableError
from regent.zk_data import effects as zk_effects
from tests.support.broker_znodes import encode_delegation_token
from tests.unit.controller.driving import once, raising
from tests.unit.controller.processes import denying
from tests.unit.controller.world import World

TOKENS, CHANGES = "/delegation_token/tokens", "/delegation_token/token_changes"
TIMER = "delegation token expiry"
HOUR_MS = 3_600_000
NOT_REMOVED = "Delegation token not removed, tried again by the next check"


def cluster(**settings: object) -> tuple[World, KafkaController]:
    """Brokers that accept tokens, and a controller whose first check is due."""
    world = World(**settings)
    world.start_broker(1, 2)
    world.put(TOKENS)
    world.put(CHANGES)
    return world, world.active_controller()


def issue(world: World, token_id: str, *, expires_in_ms: int, ends_in_ms: int = HOUR_MS) -> None:
    now = world.driver.now_ms
    content = encode_delegation_token(
        token_id, issued_ms=0, expiry_ms=now + expires_in_ms, max_ms=now + ends_in_ms
    )
    world.put(f"{TOKENS}/{token_id}", content)


def check(world: World, controller: KafkaController) -> None:
    """The timer fires, and what that has enqueued is processed."""
    world.process(controller, world.driver.timers.pop(TIMER).event)
    while world.driver.enqueued:
        world.process(controller, world.driver.enqueued.pop(0))


def left(world: World) -> list[str]:
    return sorted(world.zookeeper.children(TOKENS))


def notified(world: World) -> list[str]:
    """Token ids of the notifications, in their order."""
    changes = sorted(world.zookeeper.children(CHANGES))
    assert all(change.startswith("token_change_") for change in changes)
    nodes = [world.zookeeper.get(f"{CHANGES}/{change}") for change in changes]
    return [node.data.decode() for node in nodes if node is not None]


def test_what_has_expired_or_lived_long_enough_is_removed_and_notified() -> None:
    world, controller = cluster()
    issue(world, "expired", expires_in_ms=-1)
    issue(world, "ended", expires_in_ms=HOUR_MS, ends_in_ms=-1)
    issue(world, "alive", expires_in_ms=1)
    issue(world, "just-now", expires_in_ms=0)
    check(world, controller)
    assert left(world) == ["alive", "just-now"]
    assert notified(world) == ["ended", "expired"]


def test_the_first_check_follows_the_election_and_the_next_in_the_interval_of_kafka() -> None:
    world, controller = cluster()
    assert world.driver.timers[TIMER].after_ms == FIRST_CHECK_MS
    check(world, controller)
    assert world.driver.timers[TIMER].after_ms == HOUR_MS
    world, controller = cluster(delegation_token_expiry_check_interval_ms=17)
    check(world, controller)
    assert world.driver.timers[TIMER].after_ms == 17


def test_brokers_that_accept_no_tokens_have_no_such_nodes() -> None:
    world = World()
    world.start_broker(1)
    controller = world.active_controller()
    check(world, controller)
    assert not world.exists("/delegation_token")
    assert controller.active is not None
    assert world.log.errors(NOT_REMOVED) == []


def test_it_can_be_switched_off() -> None:
    world, _ = cluster(delegation_token_expiry_check_interval_ms=None)
    assert TIMER not in world.driver.timers


def test_a_token_that_is_renewed_at_the_same_moment_stays() -> None:
    world, controller = cluster()
    issue(world, "renewed", expires_in_ms=-1)
    issue(world, "z-expired", expires_in_ms=-1)
    world.driver.before = once(
        zk_effects.Multi, lambda: issue(world, "renewed", expires_in_ms=HOUR_MS)
    )
    check(world, controller)
    assert left(world) == ["renewed"]
    assert notified(world) == ["z-expired"]
    assert world.log.errors(NOT_REMOVED) == []


@pytest.mark.parametrize(
    "error",
    [UnexpectedZooKeeperError("NOAUTH", TOKENS), ZooKeeperUnavailableError("connection lost")],
)
def test_what_zookeeper_refuses_is_left_to_the_next_check(error: RegentError) -> None:
    world, controller = cluster()
    issue(world, "expired", expires_in_ms=-1)
    world.driver.before = once(zk_effects.Multi, raising(error))
    check(world, controller)
    assert (left(world), notified(world)) == (["expired"], [])
    assert controller.active is not None
    (fields,) = world.log.errors(NOT_REMOVED)
    assert fields["token"] == "expired"
    check(world, controller)
    assert (left(world), notified(world)) == ([], ["expired"])


def test_no_token_goes_without_its_notification() -> None:
    world, controller = cluster()
    issue(world, "expired", expires_in_ms=-1)
    world.delete(CHANGES)
    check(world, controller)
    assert left(world) == ["expired"]
    assert len(world.log.errors(NOT_REMOVED)) == 1
    assert controller.active is not None


def test_a_successor_is_not_disturbed() -> None:
    world, controller = cluster()
    issue(world, "expired", expires_in_ms=-1)
    world.driver.before = once(zk_effects.Multi, world.elect_rival)
    check(world, controller)
    assert left(world) == ["expired"]
    assert controller.active is None


def test_what_does_not_decode_or_may_not_be_read_stays_and_keeps_no_other() -> None:
    world, controller = cluster()
    world.put(f"{TOKENS}/malformed", b"{")
    world.put(f"{TOKENS}/of-the-future", b'{"version":4,"expiryTimestamp":1,"maxTimestamp":1}')
    issue(world, "expired", expires_in_ms=-1)
    check(world, controller)
    assert left(world) == ["malformed", "of-the-future"]
    (fields,) = world.log.errors("Malformed delegation tokens left alone")
    assert fields["tokens"] == 2
    assert controller.active is not None


def test_nodes_that_are_closed_to_us_are_no_reason_to_give_the_controller_up() -> None:
    world, controller = cluster()
    world.driver.before = denying(TOKENS, zk_effects.ReadChildren)
    check(world, controller)
    assert controller.active is not None
    assert TIMER in world.driver.timers


def test_many_are_removed_in_several_events() -> None:
    world, controller = cluster()
    for number in range(2 * REMOVED_AT_A_TIME + 1):
        issue(world, f"{number:04}", expires_in_ms=-1)
    event = world.driver.timers.pop(TIMER).event
    world.process(controller, event)
    assert len(left(world)) == REMOVED_AT_A_TIME + 1
    assert world.driver.enqueued.pop() == event
    world.process(controller, event)
    world.process(controller, *world.driver.enqueued)
    assert left(world) == []
    assert world.driver.timers[TIMER].after_ms == HOUR_MS
