"""BrokerDrains and PartitionReassignments of the same partitions, in any order of changes: whatever
is asked for, they come to rest, and do not move a partition back and forth."""

from __future__ import annotations

from random import Random

import pytest

from regent.reconcile.drains.claims import brokers_to_cordon
from regent.reconcile.drains.claims import claim_of as drain_claim_of
from regent.reconcile.reassignments.claims import moved_partitions
from regent.resources.broker_drain_status import BrokerDrainStatus, DrainPhase
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus
from tests.unit.reconcile.drains.draining import Cluster, Drain
from tests.unit.reconcile.reassignments.jobs import Job

CLUSTER_ID = "cluster-a"
BROKERS = range(1, 7)
RESOURCES_MAX = 3
ROUNDS_MAX = 100
STEPS = 40

FOUGHT = (12, 50, 67, 78)
"""Seeds with which resources moved a partition back and forth once."""


class World:
    """A cluster with resources that people make, change and delete."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        topics = {name: [self._replicas() for _ in range(3)] for name in ("t", "u")}
        self.cluster = Cluster(topics, brokers=len(BROKERS))
        self.drains: list[Drain] = []
        self.jobs: list[Job] = []
        self._names = iter(range(1000))

    def _replicas(self) -> tuple[int, ...]:
        return tuple(self.random.sample(BROKERS, self.random.randint(1, 3)))

    def make_drain(self) -> None:
        self.drains.append(
            Drain(
                self.cluster,
                *self.random.sample(BROKERS, self.random.randint(1, 2)),
                name=f"drain-{next(self._names)}",
                mode=self.random.choice(["Replicas", "Leadership"]),
                concurrency={"total": self.random.randint(1, 3)},
            )
        )

    def make_job(self) -> None:
        wanted = [
            {
                "topic": "t",
                "partition": each.partition,
                "replicas": self.random.sample(BROKERS, len(each.target_replicas)),
            }
            for each in self.cluster.topics["t"]
        ]
        self.jobs.append(
            Job(
                self.cluster,
                name=f"job-{next(self._names)}",
                assignments=wanted[self.random.randint(0, 2) :],
                onDrift=self.random.choice(["Stop", "Skip"]),
                concurrency={
                    "total": self.random.randint(1, 3),
                    "perPartitionOneByOne": self.random.random() < 0.5,
                },
            )
        )

    def step(self) -> None:
        """Something happens."""
        chosen = self.random.choice(self._resources())
        match self.random.randint(0, 9):
            case 0 if len(self.drains) < RESOURCES_MAX:
                self.make_drain()
            case 1 if len(self.jobs) < RESOURCES_MAX:
                self.make_job()
            case 2 | 3:
                ends = ["Undone", "Paused"]
                others = ["Drained"] if isinstance(chosen, Drain) else ["Running", "Cancelled"]
                chosen.change(desiredState=self.random.choice([*ends, *others]))
            case 4 if isinstance(chosen, Drain):  # deleted, and created again
                chosen.status = BrokerDrainStatus()
            case 4 if isinstance(chosen, Job):
                chosen.status = PartitionReassignmentStatus()
            case _ if self.cluster.moving():
                self.cluster.arrive(self.random.choice(sorted(self.cluster.moving())))

    def settle(self) -> None:
        """All are reconciled, in any order, until nothing changes."""
        resources = self._resources()
        for _ in range(ROUNDS_MAX):
            self.random.shuffle(resources)
            changed = [self._round(each) for each in resources]
            if not any(changed):
                return
        raise AssertionError(f"no end: {self.cluster.asked[-4:]}")

    def _resources(self) -> list[Drain | Job]:
        return [*self.drains, *self.jobs]

    def _round(self, resource: Drain | Job) -> bool:
        drains = {each.name: drain_claim_of(each.resource) for each in self.drains}
        jobs = {each.name: each.claim for each in self.jobs}
        moved = moved_partitions((c for c in jobs.values() if c), cluster_id=CLUSTER_ID)
        for drain in self.drains:
            drain.others = [c for name, c in drains.items() if c and name != drain.name]
            drain.moved_by_others = moved
        for job in self.jobs:
            job.others = [c for name, c in jobs.items() if c and name != job.name]
        cordons = (claim for claim in drains.values() if claim)
        self.cluster.cordoned = brokers_to_cordon(cordons, cluster_id=CLUSTER_ID)
        return resource.round()

    def assert_drained_are_drained(self) -> None:
        for drain in self.drains:
            brokers = frozenset(drain.spec["brokers"])
            if not drain.is_in(DrainPhase.DRAINED):
                continue
            for each in (p for topic in self.cluster.topics.values() for p in topic):
                led = frozenset((each.leader, each.replicas[0]))
                left = led if drain.spec["mode"] == "Leadership" else frozenset(each.replicas)
                assert brokers.isdisjoint(left), (drain.name, each)


@pytest.mark.parametrize("seed", [*range(6), *FOUGHT])
def test_they_come_to_rest_whatever_is_asked_for(seed: int) -> None:
    world = World(seed)
    factors = {name: [len(r) for r in world.cluster.replicas(name)] for name in ("t", "u")}
    world.make_drain()
    world.make_job()
    for _ in range(STEPS):
        world.settle()
        world.assert_drained_are_drained()
        world.step()
    while True:
        world.settle()
        moving = sorted(world.cluster.moving())
        if not moving:
            break
        world.cluster.arrive(world.random.choice(moving))
    world.assert_drained_are_drained()
    for name, before in factors.items():
        assert [len(r) for r in world.cluster.replicas(name)] == before
