"""A cluster of values for the tests of BrokerDrains, and a drain that is reconciled over it."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from regent.admin.commands import (
    UNTHROTTLED,
    Accepted,
    AlterPartitionReassignments,
    DescribeTopicConfigs,
    ElectLeaders,
    Outcome,
    ResourceCommand,
)
from regent.controller.reassignment.algebra import completed, reassign_to
from regent.controller.view import ClusterView, PartitionView, TopicView
from regent.model.cluster import Broker
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.model.topic_config import BrokerFacts
from regent.reconcile.drains.claims import DrainClaim, brokers_to_cordon, claim_of
from regent.reconcile.drains.planning import DrainPlan, plan_drain
from regent.reconcile.drains.request import DrainRequest
from regent.reconcile.request import Absence, Attempt
from regent.resources.broker_drain import BrokerDrain, parse_broker_drain
from regent.resources.broker_drain_status import BrokerDrainStatus, DrainPhase
from regent.resources.conditions import ConditionStatus, ConditionType, find_condition
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus
from tests.support.present import present
from tests.unit.reconcile.requests import MONOTONIC_S, NOW, partition

Replicas = tuple[int, ...]


class Cluster:
    """Brokers 1, 2, ... and topics, changed by commands as the controller would change them.

    Attributes:
        is_client: Whether a broker is the controller.
        is_complete: Whether the controller has read the cluster.
        unanswered: Brokers that have not answered, each with the batch; topics are of batch 0.
        asked: Replicas that were asked for, in order.
        rates: To how many bytes a second what was asked for is throttled, by command.
    """

    def __init__(
        self,
        topics: Mapping[str, Sequence[Replicas]],
        *,
        brokers: int = 4,
        racks: Sequence[str | None] = (),
    ) -> None:
        self.brokers = {
            i: Broker(i, i, (), rack=racks[i - 1] if racks else None) for i in range(1, brokers + 1)
        }
        self.topics: dict[str, list[PartitionView]] = {}
        self.deleting: set[str] = set()
        self.unreadable: dict[str, str] = {}
        self.cordoned: tuple[int, ...] = ()
        self.unreached: tuple[int, ...] = ()
        self.silent: tuple[int, ...] = ()
        self.unanswered: dict[int, int] = {}
        self.is_client = False
        self.is_complete = True
        self.configs: dict[str, dict[str, str]] = {}
        self.asked: list[tuple[TopicPartition, Replicas]] = []
        self.sizes: list[int] = []
        self.rates: list[int | None] = []
        self._czxids: dict[str, int] = {}
        for name, replicas in topics.items():
            self.create(name, *replicas)

    def create(self, name: str, *replicas: Replicas) -> None:
        self._czxids[name] = len(self._czxids) + 1
        self.topics[name] = [partition(i, each) for i, each in enumerate(replicas)]
        self.configs[name] = {}

    def put(self, name: str, changed: PartitionView) -> None:
        self.topics[name][changed.partition] = changed

    def stop(self, broker_id: int) -> None:
        """A broker crashes: it leaves the ISRs, and others lead."""
        del self.brokers[broker_id]
        for name, partitions in self.topics.items():
            for each in tuple(partitions):
                isr = tuple(b for b in each.isr if b != broker_id)
                leader = each.leader if each.leader != broker_id else (*isr, -1)[0]
                changed = msgspec.structs.replace(each, isr=isr or each.isr, leader=leader)
                self.put(name, changed)

    def replicas(self, name: str) -> list[Replicas]:
        return [each.replicas for each in self.topics[name]]

    def on(self, *brokers: int) -> int:
        """How many replicas are on brokers."""
        return sum(
            b in each.replicas for topic in self.topics.values() for each in topic for b in brokers
        )

    @property
    def view(self) -> ClusterView:
        return ClusterView(
            is_active=not self.is_client,
            is_client=self.is_client,
            is_complete=self.is_complete,
            controller_id=1,
            controller_epoch=5,
            brokers=dict(self.brokers),
            topics={
                name: TopicView(
                    name,
                    None,
                    tuple(partitions),
                    is_being_deleted=name in self.deleting,
                    czxid=self._czxids[name],
                )
                for name, partitions in self.topics.items()
            },
            unreadable_topics=dict(self.unreadable),
            unreached=self.unreached,
            silent=self.silent,
            unanswered=self.unanswered,
            cluster_id="cluster-a",
            cordoned=self.cordoned,
            broker_facts=tuple(
                BrokerFacts(broker_id=b, settings={"min.insync.replicas": "1"})
                for b in self.brokers
            ),
        )

    def carry_out(self, command: ResourceCommand) -> None:
        if isinstance(command, AlterPartitionReassignments):
            self.sizes.append(len(command.targets))
            self.rates.append(command.throttle)
            for tp, target in command.targets.items():
                assert target is not None
                self.asked.append((tp, target))
                each = self.topics[tp.topic][tp.partition]
                rate = None if command.throttle == UNTHROTTLED else command.throttle
                each = msgspec.structs.replace(each, throttle=rate)
                self.put(tp.topic, each)
                before = ReplicaAssignment(
                    each.replicas, each.adding_replicas, each.removing_replicas
                )
                self._assign(tp, reassign_to(before, target))
        elif isinstance(command, ElectLeaders):
            for tp in command.partitions or ():
                each = self.topics[tp.topic][tp.partition]
                assert each.replicas[0] in each.isr
                self.put(tp.topic, msgspec.structs.replace(each, leader=each.replicas[0]))
        else:
            assert isinstance(command, DescribeTopicConfigs)

    def _assign(self, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
        each = self.topics[tp.topic][tp.partition]
        self.put(
            tp.topic,
            msgspec.structs.replace(
                each,
                replicas=assignment.replicas,
                adding_replicas=assignment.adding_replicas,
                removing_replicas=assignment.removing_replicas,
                throttle=each.throttle if assignment.adding_replicas else None,
            ),
        )

    def moving(self) -> dict[TopicPartition, PartitionView]:
        return {
            TopicPartition(name, each.partition): each
            for name, partitions in self.topics.items()
            for each in partitions
            if each.adding_replicas or each.removing_replicas
        }

    def arrive(self, tp: TopicPartition) -> None:
        """The new replicas are in sync, the others go."""
        each = self.topics[tp.topic][tp.partition]
        done = completed(
            ReplicaAssignment(each.replicas, each.adding_replicas, each.removing_replicas)
        )
        leader = each.leader if each.leader in done.replicas else done.replicas[0]
        self.put(tp.topic, partition(tp.partition, done.replicas, leader=leader))


class Settling(ABC):
    """A resource that is reconciled over a cluster, round by round.

    Attributes:
        status: The one that was stored last.
    """

    cluster: Cluster
    status: BrokerDrainStatus | PartitionReassignmentStatus

    @abstractmethod
    def round(self) -> bool:
        """One round of a reconciliation; whether it has changed anything."""

    def settle(self) -> None:
        """Reconcile until nothing changes; what is on its way stays there."""
        for _ in range(50):
            if not self.round():
                return
        raise AssertionError(f"no end: {self.status}")

    def finish(self) -> None:
        """Reconcile, and have everything arrive, until nothing changes."""
        for _ in range(200):
            self.settle()
            moving = tuple(self.cluster.moving())
            if not moving:
                return
            self.cluster.arrive(moving[0])
        raise AssertionError(f"no end: {self.status}")

    def truth(self) -> dict[str, str]:
        """Conditions as ``Type: Status/Reason``."""
        return {c.type: f"{c.status.value}/{c.reason}" for c in self.status.conditions}


class Drain(Settling):
    """A BrokerDrain with the status that was stored last. Nothing else is remembered of it."""

    def __init__(self, cluster: Cluster, *brokers: int, name: str = "drain", **spec: Any) -> None:
        self.cluster = cluster
        self.name = name
        self.generation = 1
        self.spec: dict[str, Any] = {"brokers": list(brokers), **spec}
        self.status: BrokerDrainStatus = BrokerDrainStatus()
        self.others: list[DrainClaim] = []
        self.moved_by_others: dict[TopicPartition, str] = {}
        self.after_s = 0.0
        self.deleted = False
        self.finalizers: tuple[str, ...] = ()
        self.absence = Absence()

    @property
    def resource(self) -> BrokerDrain:
        deletion = {"deletionTimestamp": "2026-05-01T11:00:00Z"} if self.deleted else {}
        parsed = parse_broker_drain(
            {
                "metadata": {
                    "name": self.name,
                    "namespace": "ops",
                    "uid": f"uid-{self.name}",
                    "generation": self.generation,
                    "creationTimestamp": "2026-05-01T10:00:00Z",
                    "finalizers": self.finalizers,
                    **deletion,
                },
                "spec": self.spec,
                "status": self.status.to_api(),
            }
        )
        assert isinstance(parsed, BrokerDrain), parsed
        return parsed

    @property
    def claims(self) -> tuple[DrainClaim, ...]:
        own = claim_of(self.resource)
        return (*(() if own is None else (own,)), *self.others)

    def request(self, attempts: Sequence[Attempt] = ()) -> DrainRequest:
        resource, view = self.resource, self.cluster.view
        brokers = frozenset(resource.spec.brokers)
        return DrainRequest(
            resource=resource,
            view=view,
            hosted_topics=tuple(
                name
                for name, topic in view.topics.items()
                if any(not brokers.isdisjoint(each.replicas) for each in topic.partitions)
            ),
            configs=self.cluster.configs,
            moving=self.cluster.moving(),
            sent={},
            refused={},
            moved_by_others=self.moved_by_others,
            claims=tuple(each for each in self.claims if not brokers.isdisjoint(each.brokers)),
            seen_at=MONOTONIC_S,
            monotonic_s=MONOTONIC_S,
            now=NOW + timedelta(seconds=self.after_s),
            attempts=tuple(attempts),
            absence=self.absence,
        )

    def plan(self) -> DrainPlan:
        return plan_drain(self.request())

    def change(self, **spec: Any) -> None:
        self.spec |= spec
        self.generation += 1

    def round(self) -> bool:
        """One round of a reconciliation; whether it has changed anything. Each one starts from what
        is stored: as after a crash."""
        self.cluster.cordoned = brokers_to_cordon(self.claims, cluster_id="cluster-a")
        plan = self.plan()
        for command in () if plan.status_first else plan.commands:
            self.cluster.carry_out(command)
        if plan.status is None or plan.status == self.status:
            return bool(plan.commands)
        self.status = plan.status
        return True

    def is_in(self, phase: DrainPhase) -> bool:
        return self.status.phase is phase

    def holds(self, type_: ConditionType) -> bool:
        found = present(find_condition(self.status.conditions, type_))
        return found.status is ConditionStatus.TRUE

    @property
    def message(self) -> str:
        found = present(find_condition(self.status.conditions, ConditionType.READY))
        return found.message

    @property
    def blockers(self) -> dict[str, str]:
        """Reasons by partition."""
        return {f"{b.topic}-{b.partition}": b.reason for b in self.status.blockers}


def accepted(command: ResourceCommand, outcome: Outcome | None = None) -> Attempt:
    """A command that was sent a moment ago."""
    return Attempt(command, outcome or Accepted(), 1, 5, {}, retry_at=MONOTONIC_S + 10)


def older(claim: DrainClaim, **changes: Any) -> DrainClaim:
    """The claim of another drain that was created before."""
    other = {"name": "older", "uid": "uid-older", "created": "2026-04-01T10:00:00Z"}
    return dataclasses.replace(claim, **{**other, **changes})
