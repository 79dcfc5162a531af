"""Stories in which a take-over loads the standby's cache."""

from __future__ import annotations

from regent.controller import events as e
from regent.model.partition import ReplicaAssignment
from regent.zk_data import paths
from regent.zk_data.operations import SetData
from regent.zk_data.topics import TopicZNode, decode_topic, encode_topic
from tests.simulation.playing import Scenario
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.shutdown_scenarios import SHUTDOWN_SCENARIOS
from tests.simulation.world import World


def _resign(world: World) -> None:
    (process,) = world.regents
    process.put(e.NotEligible())
    world.settle()


def _take_over(world: World) -> None:
    (process,) = world.regents
    process.put(e.Eligible())


def _grow_by_hand(world: World, topic: str) -> None:
    node = world.zookeeper.get(paths.topic(topic))
    assert node is not None
    znode = decode_topic(topic, node.data)
    more = {len(znode.assignments): ReplicaAssignment((2, 3))}
    grown = TopicZNode(znode.topic_id, znode.assignments | more)
    world.workload.multi(SetData(paths.topic(topic), encode_topic(grown)))


def _changes_unread(world: World) -> None:
    """The cache has observed it all, and read none of it, when the election is answered."""
    _resign(world)
    world.workload.create_topic("c", {0: (1, 2), 1: (2, 3)})
    _grow_by_hand(world, "a")
    world.brokers[3].stop()
    _take_over(world)


def _changes_without_a_connection(world: World) -> None:
    """No watch reports what has happened meanwhile."""
    _resign(world)
    (process,) = world.regents
    process.client.disconnect()
    world.lost_contact(process.client)
    _grow_by_hand(world, "a")
    world.settle()
    _take_over(world)


def _growth_afterwards(world: World) -> None:
    """Of a topic that this process has never read as a controller: the cache leaves no watches for
    it."""
    _resign(world)
    world.workload.create_topic("c", {0: (1, 2)})
    world.settle()
    _take_over(world)
    world.settle()
    _grow_by_hand(world, "c")


_TOPICS = SCENARIOS["failover"].prepare

STANDBY_SCENARIOS: dict[str, Scenario] = {
    "a take-over amid changes": Scenario(_TOPICS, _changes_unread),
    "a take-over after a lost connection": Scenario(_TOPICS, _changes_without_a_connection),
    "growth after a take-over": Scenario(_TOPICS, _growth_afterwards),
}
STANDBY_SCENARIOS |= {
    f"{name}, from the cache": (SCENARIOS | SHUTDOWN_SCENARIOS)[name]
    for name in (
        "failover",
        "failover with a broker down",
        "a failover while a broker stops",
        "a registration, and a hand-over",
        "deletion of what cannot be read",
        "topics lose their ids unseen",
    )
}
STANDBY_SCENARIOS = {
    name: scenario._replace(warm_standby=True) for name, scenario in STANDBY_SCENARIOS.items()
}
