"""Stories about brokers that ask the controller, of the releases in which they do."""

from __future__ import annotations

from regent.controller.broker_requests import AlterPartitionRequest, IsrChange
from tests.simulation.broker import SimulatedBroker
from tests.simulation.isr_change_requests import presume
from tests.simulation.playing import Scenario
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.shutdown_scenarios import SHUTDOWN_SCENARIOS
from tests.simulation.trace import require
from tests.simulation.world import World

LEADERS_ASK = (2, 8)
"""Leaders ask for ISR changes, by names of topics, and say nothing of broker epochs."""
EVERYTHING_IS_ASKED = (3, 5)
"""ISR changes by ids of topics and with broker epochs, and producer ids."""

topics_with_records, fail_over, *_ = SCENARIOS["failover"]


def _of(story: Scenario, protocol: tuple[int, int]) -> Scenario:
    """The same among brokers of a release in which they ask."""
    return story._replace(protocol=protocol, announces=True)


def _ask_for_isrs(world: World) -> None:
    """Broker 3 has returned: leaders have asked to take it in, and the controller has it all."""
    world.brokers[3].stop()
    world.settle()
    world.brokers[3].start()
    world.settle(until=lambda: _is_asked(world))
    world.endpoint.deliver_all()


def _is_asked(world: World) -> bool:
    pending = [
        replica
        for broker in world.brokers.values()
        for replica in broker.replicas.values()
        if replica.pending is not None
    ]
    return bool(pending) and not world.endpoint.is_idle


def _isr_changes(world: World) -> None:
    _ask_for_isrs(world)


def _resignation(world: World) -> None:
    """The controller resigns with requests under way, and is elected again."""
    _ask_for_isrs(world)
    fail_over(world)


def _broken_connections(world: World) -> None:
    """The answers get lost, and the brokers ask again."""
    _ask_for_isrs(world)
    while world.endpoint.break_connection():
        pass


def _disconnection_from_zookeeper(world: World) -> None:
    _ask_for_isrs(world)
    (process,) = world.regents
    process.client.disconnect()
    world.lost_contact(process.client)


def _follower_is_down(world: World) -> None:
    """Leaders ask for broker 3, after the controller has learned that it is down."""
    follower = world.brokers[3]
    follower.stop()
    world.settle()
    for broker in world.brokers.values():
        for tp, replica in broker.replicas.items():
            if broker.is_running and replica.is_leader and tp in follower.logs:
                isr = (*replica.state.isr, follower.broker_id)
                broker.requests.isr_changes.submit(tp, replica, isr)
    world.settle()
    follower.start()


def _leader_fails(world: World) -> None:
    """Who has asked is dead, and another broker leads, when its request is processed."""
    _ask_for_isrs(world)
    for broker in world.brokers.values():
        if any(replica.pending is not None for replica in broker.replicas.values()):
            broker.crash()
            world.start_broker_after(broker, 100)


def _producer_ids(world: World) -> None:
    """All brokers need ids at the same time, and again when the controller has changed."""
    for _ in range(2):
        for broker in world.brokers.values():
            broker.requests.producer_ids.need()
            broker.requests.act()
        world.endpoint.deliver_all()
        fail_over(world)
        world.settle()


def _late_request(world: World) -> None:
    """A leader has asked for something else before broker 3 returned."""
    _ask_for_isrs(world)
    world.settle()
    for broker in world.brokers.values():
        controller = world.endpoint.controller_by_metadata(broker)
        for tp, replica in broker.replicas.items():
            if replica.is_leader and replica.state.partition_epoch and controller is not None:
                epochs = (replica.state.leader_epoch, replica.state.partition_epoch - 1)
                change = IsrChange(
                    tp.topic, tp.partition, epochs[0], (broker.broker_id,), epochs[1]
                )
                request = AlterPartitionRequest(broker.broker_id, broker.epoch, (change,))
                world.endpoint.call(
                    broker, controller, request, answered=lambda _: None, closed=lambda: None
                )


def _removal_in_vain(world: World) -> None:
    """A leader is refused a follower that is down, and gets a higher leader epoch, in which it asks
    for the removal of another one. Then the refusal arrives, and takes that away. Right after that
    there is another controller."""
    world.brokers[3].stop()
    world.settle()
    leader, tp, replica = next(
        (broker, tp, replica)
        for broker in world.brokers.values()
        for tp, replica in broker.replicas.items()
        if replica.is_leader and tp in world.brokers[3].logs and len(replica.state.isr) > 1
    )
    isr, former = replica.state.isr, replica.state.leader_epoch
    changes = leader.requests.isr_changes
    changes.submit(tp, replica, (*isr, 3))
    leader.requests.act()
    world.endpoint.deliver_all()
    with world.endpoint.held_back():
        world.settle(until=lambda: leader.replicas[tp].state.leader_epoch > former)
        if leader.replicas[tp].state.leader_epoch > former:
            changes.submit(tp, leader.replicas[tp], (leader.broker_id,))
    world.settle(until=lambda: changes.is_idle)
    fail_over(world)
    world.start_broker_after(world.brokers[3], 20_000)


def upgrade(world: World, broker: SimulatedBroker, protocol: tuple[int, int]) -> None:
    """One step of a rolling upgrade: a broker is stopped in order, and returns as a newer one."""
    broker.upgrade_to = protocol
    world.orderly_stops.begin(broker)
    world.settle(until=lambda: broker.protocol == protocol)
    world.settle()
    require(broker.is_running, f"{broker} has not returned")


def _one_is_upgraded(world: World) -> None:
    topics_with_records(world)
    world.settle()
    upgrade(world, world.brokers[1], EVERYTHING_IS_ASKED)


def _another_is_upgraded(world: World) -> None:
    """Leaders of both kinds change ISRs."""
    upgrade(world, world.brokers[2], EVERYTHING_IS_ASKED)


def _presumption(world: World) -> None:
    """Every broker asks for each partition that it does not lead."""
    for broker in world.brokers.values():
        for tp in world.safety.partitions:
            presume(world, broker, tp)


ENDPOINT_SCENARIOS: dict[str, Scenario] = {
    f"{name}, {style}": _of(Scenario(topics_with_records, tell), protocol)
    for name, tell in {
        "ISR changes": _isr_changes,
        "ISR changes, and the controller resigns": _resignation,
        "ISR changes whose answers get lost": _broken_connections,
        "ISR changes, and the controller is disconnected": _disconnection_from_zookeeper,
        "ISR changes, and the leader fails": _leader_fails,
        "leaders ask for a follower that is down": _follower_is_down,
    }.items()
    for style, protocol in (
        ("by names", LEADERS_ASK),
        ("with broker epochs", EVERYTHING_IS_ASKED),
    )
}
ENDPOINT_SCENARIOS |= {
    "a broker asks for a partition that another one leads": _of(
        Scenario(topics_with_records, _presumption), LEADERS_ASK
    ),
    "a removal is lost with the controller": _of(
        Scenario(topics_with_records, _removal_in_vain), LEADERS_ASK
    ),
    "a request of before an ISR change arrives late": _of(
        Scenario(topics_with_records, _late_request), LEADERS_ASK
    ),
    "producer ids": _of(Scenario(topics_with_records, _producer_ids), EVERYTHING_IS_ASKED),
    "in the middle of a rolling upgrade": Scenario(
        _one_is_upgraded, _another_is_upgraded, announces=True
    ),
}
ENDPOINT_SCENARIOS |= {
    f"{name}, where leaders ask": _of(SHUTDOWN_SCENARIOS[name], LEADERS_ASK)
    for name in (
        "a broker stops in order",
        "two brokers stop in order",
        "a failover while a broker stops",
        "the last in sync stops",
    )
}
ENDPOINT_SCENARIOS |= {
    f"{name}, where leaders ask": _of(SCENARIOS[name], EVERYTHING_IS_ASKED)
    for name in (
        "reassignment",
        "a broker crashes and returns",
        "a topic again while a broker is away",
        "a log directory of leaders fails",
        "a broker refuses for a while",
        "a disconnection",
        "unclean election is allowed",
    )
}
