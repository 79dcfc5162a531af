"""The same commands, whoever is the controller: one table of commands and what comes of them, for a
Regent that is the controller and for one that is its client."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    AlterTopicConfig,
    CordonBrokers,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    PartitionResult,
    Reason,
    ReassignTopic,
    Rejected,
)
from regent.controller.commands import Command
from regent.controller.view import ClusterView, TopicView
from regent.model.partition import FoundPartition, ReplicaAssignment, TopicPartition
from regent.protocol.error_codes import (
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from regent.runtime.ports import ControllerPort
from sandbox import wait_until_async
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.unit.steering.client_world import ClientWorld

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPICS: Mapping[str, Sequence[tuple[int, ...]]] = {"t": [(1, 2), (2, 1)], "a.b": [(1,)]}
OTHER = FoundPartition(0, ReplicaAssignment((3, 1)))


class Case(NamedTuple):
    """What comes of a command.

    Attributes:
        reason: Why it is refused; None: it is accepted.
        results: Error codes of partitions.
        shows: What the view shows of the topic some time later.
    """

    command: Command
    reason: Reason | None = None
    results: Mapping[TopicPartition, int] | None = None
    shows: Callable[[TopicView | None], Any] = lambda _: True


def replicas(topic: TopicView | None) -> list[tuple[int, ...]]:
    return [] if topic is None else [p.replicas for p in topic.partitions]


CASES = {
    "create": Case(
        CreateTopic("new", 2, assignment={0: (1, 2), 1: (3, 1)}),
        shows=lambda topic: replicas(topic) == [(1, 2), (3, 1)],
    ),
    "create and place": Case(
        CreateTopic("new", 3, 2),
        shows=lambda topic: [len(each) for each in replicas(topic)] == [2, 2, 2],
    ),
    "only check": Case(
        CreateTopic("new", 1, 1, validate_only=True), shows=lambda topic: topic is None
    ),
    "exists": Case(CreateTopic("t", 1, 1), Reason.TOPIC_ALREADY_EXISTS),
    "name": Case(CreateTopic("t/u", 1, 1), Reason.INVALID_TOPIC_NAME),
    "collision": Case(CreateTopic("a_b", 1, 1), Reason.TOPIC_NAME_COLLISION),
    "too few brokers": Case(CreateTopic("new", 1, 4), Reason.NOT_ENOUGH_BROKERS),
    "no partitions": Case(CreateTopic("new", 0, 1), Reason.INVALID_PARTITIONS),
    "dead broker": Case(CreateTopic("new", 1, assignment={0: (9,)}), Reason.BROKERS_UNAVAILABLE),
    "grow": Case(
        CreatePartitions("t", 3, assignment={2: (3, 1)}),
        shows=lambda topic: replicas(topic) == [(1, 2), (2, 1), (3, 1)],
    ),
    "shrink": Case(CreatePartitions("t", 1), Reason.INVALID_PARTITIONS),
    "grow nothing": Case(CreatePartitions("none", 3), Reason.UNKNOWN_TOPIC),
    "configure": Case(AlterTopicConfig("t", {"retention.ms": "1000"})),
    "configure nothing": Case(
        AlterTopicConfig("none", {"retention.ms": "1"}), Reason.UNKNOWN_TOPIC
    ),
    "read": Case(DescribeTopicConfigs(("t", "none"))),
    "cordon": Case(CordonBrokers((3,))),
    "delete": Case(DeleteTopic("t"), shows=lambda topic: topic is None or topic.is_being_deleted),
    "delete nothing": Case(DeleteTopic("none"), Reason.UNKNOWN_TOPIC),
    "more replicas": Case(
        ReassignTopic("t", {0: (1, 2, 3)}),
        shows=lambda topic: sorted(replicas(topic)[0]) == [1, 2, 3],
    ),
    "replicas of nothing": Case(ReassignTopic("none", {0: (1,)}), Reason.UNKNOWN_TOPIC),
    "replicas of no partition": Case(ReassignTopic("t", {7: (1,)}), Reason.CONCURRENT_CHANGE),
    "replicas on dead brokers": Case(ReassignTopic("t", {0: (1, 9)}), Reason.BROKERS_UNAVAILABLE),
    "replicas twice": Case(ReassignTopic("t", {0: (1, 1)}), Reason.INVALID_REPLICA_ASSIGNMENT),
    "move": Case(
        AlterPartitionReassignments({T0: (3, 2)}),
        results={T0: 0},
        shows=lambda topic: 3 in replicas(topic)[0],
    ),
    "order": Case(
        AlterPartitionReassignments({T0: (2, 1), T1: (2, 1)}),
        results={T0: 0, T1: 0},
        shows=lambda topic: replicas(topic)[0] == (2, 1),
    ),
    "cancel nothing": Case(
        AlterPartitionReassignments({T0: None}), results={T0: NO_REASSIGNMENT_IN_PROGRESS}
    ),
    "move nothing": Case(
        AlterPartitionReassignments({TopicPartition("t", 7): (1,)}),
        results={TopicPartition("t", 7): UNKNOWN_TOPIC_OR_PARTITION},
    ),
    "move to dead brokers": Case(
        AlterPartitionReassignments({T0: (9, 1), T1: (1, 2)}),
        results={T0: INVALID_REPLICA_ASSIGNMENT, T1: 0},
    ),
    "move what has changed": Case(
        AlterPartitionReassignments({T0: (3, 2)}, found={T0: OTHER}),
        results={T0: INVALID_REPLICA_ASSIGNMENT},
    ),
}


class ClientPort:
    """A client as :class:`~regent.runtime.ports.ControllerPort`."""

    def __init__(self, world: ClientWorld) -> None:
        self.submit = lambda commands: world.submit(*commands)
        self._world = world

    @property
    def view(self) -> ClusterView:
        return self._world.view


@contextlib.asynccontextmanager
async def the_controller() -> AsyncIterator[Any]:
    with SimulatedCluster() as cluster:
        for name, assigned in TOPICS.items():
            cluster.create_topic(name, assigned)
        for tp, target in ((T0, (3, 2)), (T0, (2, 1)), (T0, (1, 2, 3)), (T1, (1, 2))):
            cluster.expect_move(tp.topic, tp.partition, target)
        with LiveController(cluster) as controller:
            yield controller


@contextlib.asynccontextmanager
async def a_client() -> AsyncIterator[Any]:
    world = ClientWorld()
    for name, assigned in TOPICS.items():
        world.create_topic(name, *assigned)
    async with world:
        await world.known()
        yield ClientPort(world)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("who", [the_controller, a_client], ids=["controller", "client"])
async def test_a_command_comes_to_the_same(
    who: Callable[[], contextlib.AbstractAsyncContextManager[ControllerPort]], case: Case
) -> None:
    async with who() as controller:
        await wait_until_async(
            lambda: all(name in controller.view.topics for name in TOPICS),
            describe="the topics",
        )
        (outcome,) = await controller.submit([case.command])
        if case.reason is not None:
            assert isinstance(outcome, Rejected), outcome
            assert outcome.reason is case.reason
        else:
            assert isinstance(outcome, Accepted), outcome
        if case.results is not None:
            found: dict[TopicPartition, PartitionResult] = outcome.result  # type: ignore[union-attr]
            assert {tp: each.error_code for tp, each in found.items()} == case.results
        topic = getattr(case.command, "topic", "t")
        await wait_until_async(
            lambda: case.shows(controller.view.topics.get(topic)),
            describe=f"what {type(case.command).__name__} leads to",
        )
