"""The verdict of kstatus, which Flux and others use, on a KafkaTopic in each phase."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from regent.admin.commands import Accepted, CreateTopic
from regent.controller.view import ClusterView, PartitionHealth, TopicView
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.reconcile.topics.planning import plan_topic
from regent.resources.kafka_topic import KafkaTopic
from tests.support.kstatus import KStatus, kstatus
from tests.unit.reconcile.requests import (
    ID,
    SPARE_ID,
    attempt,
    claim,
    owned,
    partition,
    request,
    resource,
    said,
    status_of,
    topic,
    view,
)


@dataclass(frozen=True)
class Phase:
    """A moment in the life of a KafkaTopic.

    Attributes:
        known: What else is known; see :func:`request`.
    """

    expected: KStatus
    reason: str
    subject: KafkaTopic
    seen: ClusterView
    known: dict[str, Any] = field(default_factory=dict)


CREATION = CreateTopic("orders", 2, replication_factor=2, topic_id=SPARE_ID)
GROWING = TopicView(
    "orders", ID, (partition(0, (1, 2, 3), (1, 2), adding=(3,)), partition(1, (2, 1)))
)
LEADERLESS = TopicView(
    "orders",
    ID,
    (partition(0, (1, 2), (1,), leader=-1, state=PartitionHealth.OFFLINE), partition(1, (2, 1))),
)
READ: dict[str, Any] = {"config": {}}
P = KStatus.IN_PROGRESS

PHASES = {
    "to be created": Phase(P, "Creating", resource(), view()),
    "created a moment ago": Phase(
        P,
        "Creating",
        resource(),
        view(),
        {"attempts": [attempt(CREATION, Accepted())], "created": CREATION},
    ),
    "too few brokers": Phase(P, "NotEnoughBrokers", resource(), view(brokers=1)),
    "left to brokers": Phase(P, "LeftToBrokers", resource(topicName="__consumer_offsets"), view()),
    "defaults unknown": Phase(P, "BrokerDefaultsUnknown", resource(replicas=None), view()),
    "as declared": Phase(KStatus.CURRENT, "AsDeclared", owned(), view(topic()), READ),
    "nothing declared": Phase(
        KStatus.CURRENT, "AsDeclared", owned(partitions=None, replicas=None), view(topic()), READ
    ),
    "partitions to be added": Phase(P, "Changing", owned(partitions=4), view(topic()), READ),
    "configuration to be changed": Phase(
        P, "Changing", owned(config={"retention.ms": 5}), view(topic()), READ
    ),
    "replicas to be added": Phase(P, "ReplicasChanging", owned(replicas=3), view(topic()), READ),
    "replicas being added": Phase(P, "ReplicasChanging", owned(replicas=3), view(GROWING), READ),
    "replicas below min ISR": Phase(
        KStatus.FAILED,
        "ReplicasMismatch",
        owned(replicas=1),
        view(topic()),
        {"config": {"min.insync.replicas": "2"}},
    ),
    "replicas elsewhere": Phase(
        KStatus.FAILED,
        "ReplicaAssignmentMismatch",
        owned(replicaAssignment=[[1, 2], [3, 1]]),
        view(topic()),
        READ,
    ),
    "fewer partitions declared": Phase(
        KStatus.FAILED, "PartitionsDecrease", owned(partitions=1), view(topic()), READ
    ),
    "impossible": Phase(KStatus.FAILED, "InvalidConfig", resource(config={"nonsense": 1}), view()),
    "not allowed": Phase(
        KStatus.FAILED, "TopicNameNotAllowed", resource(), view(), {"rules": ["other=*"]}
    ),
    "of another cluster": Phase(
        KStatus.FAILED, "OtherCluster", resource(clusterId="cluster-b"), view()
    ),
    "in conflict": Phase(
        KStatus.FAILED,
        "ResourceConflict",
        resource(),
        view(topic()),
        {
            **READ,
            "others": [
                claim(resource(name="elder", topicName="orders", uid="u0"), created="2020-01-01")
            ],
        },
    ),
    "to be adopted by somebody": Phase(
        KStatus.FAILED, "AdoptionPreview", resource(adoptionPolicy="Preview"), view(topic()), READ
    ),
    "not to be adopted": Phase(
        KStatus.FAILED, "AdoptionRefused", resource(adoptionPolicy="Refuse"), view(topic()), READ
    ),
    "paused": Phase(
        KStatus.CURRENT, "Paused", owned(managementPolicy="Paused"), view(topic()), READ
    ),
    "observed": Phase(
        KStatus.CURRENT, "Observed", resource(managementPolicy="Observe"), view(topic()), READ
    ),
    "observed and not there": Phase(
        KStatus.FAILED, "TopicNotFound", resource(managementPolicy="Observe"), view()
    ),
    "deleted by somebody else": Phase(KStatus.FAILED, "TopicDeletedExternally", owned(), view()),
    "without a leader": Phase(P, "PartitionsLeaderless", owned(), view(LEADERLESS), READ),
    "behind a topic that goes": Phase(
        P, "TopicMarkedForDeletion", resource(), view(topic(deleting=True)), READ
    ),
    "being loaded": Phase(P, "ClusterLoading", resource(), view(complete=False)),
    "without a controller": Phase(
        P, "ControllerInactive", resource(), view(active=False), {"waited_s": 60.0}
    ),
    "being deleted": Phase(
        KStatus.TERMINATING, "Deleting", owned(deleted=True), view(topic()), READ
    ),
    "protected": Phase(
        KStatus.TERMINATING,
        "DeletionProtected",
        owned(deleted=True, deletionPolicy="Protect"),
        view(topic()),
        READ,
    ),
}


@pytest.mark.parametrize("name", PHASES)
def test_every_phase_is_understood(name: str) -> None:
    phase = PHASES[name]
    plan = plan_topic(request(phase.subject, phase.seen, **phase.known))
    assert said(plan).reason == phase.reason
    # Without a condition Ready an object is taken for current.
    assert [c.type for c in status_of(plan).conditions] == list(KAFKA_TOPIC.kind.conditions)
    assert status_of(plan).observed_generation == phase.subject.metadata.generation
    status = status_of(plan).to_api()
    metadata = phase.subject.metadata
    body = {"metadata": metadata.model_dump(by_alias=True), "status": status}
    assert kstatus(body) is phase.expected
    newer = {"metadata": {**body["metadata"], "generation": metadata.generation + 1}}
    assert kstatus({**body, **newer}) in (KStatus.IN_PROGRESS, KStatus.TERMINATING)


@pytest.mark.parametrize(("isr", "is_alive"), [((1,), True), ((9,), False)])
def test_a_topic_waits_for_no_broker_that_is_alive(isr: tuple[int, ...], is_alive: bool) -> None:
    """What keeps such a partition from a leader is something else, such as a missing right."""
    lost = partition(0, (isr[0], 2), isr, leader=-1, state=PartitionHealth.OFFLINE)
    seen = view(TopicView("orders", ID, (lost, partition(1, (2, 1)))))
    plan = plan_topic(request(owned(), seen, **READ))
    (ready,) = [c for c in status_of(plan).conditions if c.type == "Ready"]
    assert ("No leader elected" in ready.message) is is_alive
