"""Stories about brokers that are stopped in order."""

from __future__ import annotations

from tests.simulation.playing import Scenario
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.world import World

topics_with_records, fail_over, *_ = SCENARIOS["failover"]


def _begin(
    world: World, *broker_ids: int, is_given_up: bool = False, is_slow: bool = False
) -> None:
    """Brokers are stopped, and the controller has what they ask."""
    for broker_id in broker_ids:
        broker = world.brokers[broker_id]
        world.orderly_stops.begin(broker, is_given_up=is_given_up, is_slow=is_slow)
    world.endpoint.deliver_all()


def _one(world: World) -> None:
    _begin(world, 1)


def _slowly(world: World) -> None:
    """Its session outlives it."""
    _begin(world, 1, is_slow=True)


def _two(world: World) -> None:
    _begin(world, 1, 2)


def _all(world: World) -> None:
    _begin(world, *world.brokers)


def _dies_meanwhile(world: World) -> None:
    _begin(world, 1)
    world.brokers[1].crash()
    world.start_broker_after(world.brokers[1], 100)


def _leader_dies_meanwhile(world: World) -> None:
    """Broker 2 leads what broker 1 has just left."""
    _begin(world, 1, is_given_up=True)
    world.brokers[2].crash()
    world.start_broker_after(world.brokers[2], 8_000)


def _given_up(world: World) -> None:
    _begin(world, 1, is_given_up=True)


def _failover_meanwhile(world: World) -> None:
    """Regent changes between two requests; broker 1 lives long enough to be seen by both."""
    _begin(world, 1, is_given_up=True)
    fail_over(world)


def _last_in_sync(world: World) -> None:
    """Broker 1 alone has everything, and is to stop."""
    topics_with_records(world)
    world.settle()
    for broker_id in (2, 3):
        world.brokers[broker_id].stop()
        world.settle()


def _until_others_return(world: World) -> None:
    _begin(world, 1, is_given_up=True)
    for broker_id in (2, 3):
        world.start_broker_after(world.brokers[broker_id], 2_000)


SHUTDOWN_SCENARIOS: dict[str, Scenario] = {
    "a broker stops in order": Scenario(topics_with_records, _one),
    "a broker stops slowly": Scenario(topics_with_records, _slowly),
    "two brokers stop in order": Scenario(topics_with_records, _two),
    "all brokers stop in order": Scenario(topics_with_records, _all),
    "a broker dies while it stops": Scenario(topics_with_records, _dies_meanwhile),
    "a leader dies while another broker stops": Scenario(
        topics_with_records, _leader_dies_meanwhile
    ),
    "a broker stops, and lives on": Scenario(topics_with_records, _given_up),
    "a failover while a broker stops": Scenario(topics_with_records, _failover_meanwhile),
    "the last in sync stops": Scenario(_last_in_sync, _until_others_return),
}
