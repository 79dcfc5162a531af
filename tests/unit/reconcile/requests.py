"""Requests for the tables of the reconcile tests: a resource, a cluster, and what is known."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from regent.admin.commands import CreateTopic, Outcome, ResourceCommand
from regent.controller.view import ClusterView, PartitionHealth, PartitionView, TopicView
from regent.model.cluster import Broker
from regent.model.topic import topic_id_to_text
from regent.model.topic_name_rules import TopicNameRules
from regent.reconcile.plan import Plan
from regent.reconcile.request import Absence, Attempt, ObservedStatus
from regent.reconcile.topics.claims import Claim, claim_of
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.request import TopicIdentity, TopicRequest, first_topic_id
from regent.resources.conditions import Condition, ConditionType, find_condition
from regent.resources.kafka_topic import FINALIZER, KafkaTopic, parse_kafka_topic
from regent.resources.resource_status import unobserved_status

StatusT = TypeVar("StatusT", bound=ObservedStatus)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
MONOTONIC_S = 1000.0
"""The present, by the two clocks."""
ID = uuid.UUID(int=77)
SPARE_ID = uuid.UUID(int=123)
"""The id that a new topic gets, unless it is the first one of a resource that adopts."""
FIRST_ID = first_topic_id("u1", cluster_id="cluster-a")
"""The id that this one gets."""

OWNED = {
    "observedGeneration": 1,
    "ownership": "Created",
    "topicId": topic_id_to_text(ID),
}
"""The status of a resource whose topic it has created."""

READY = {
    "Ready": "True/AsDeclared",
    "Reconciling": "False/Idle",
    "Stalled": "False/NotStalled",
    "Synced": "True/AsDeclared",
    "Healthy": "True/AllInSync",
}
"""The conditions of a resource whose topic is as declared, and healthy."""


def resource(
    *,
    name: str = "orders",
    uid: str = "u1",
    generation: int = 1,
    finalizer: bool = False,
    deleted: bool = False,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> KafkaTopic:
    """A KafkaTopic with 2 partitions and 2 replicas unless said otherwise."""
    shape = {} if "replicaAssignment" in spec else {"replicas": 2}
    body = {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": uid,
            "generation": generation,
            "creationTimestamp": "2026-05-01T10:00:00Z",
            "finalizers": [FINALIZER] if finalizer else [],
            **({"deletionTimestamp": "2026-05-01T11:00:00Z"} if deleted else {}),
        },
        "spec": {"partitions": 2, **shape, **spec},
        "status": status or unobserved_status(KafkaTopic.kind.conditions),
    }
    parsed = parse_kafka_topic(body)
    assert isinstance(parsed, KafkaTopic)
    return parsed


def topic(
    *replicas: tuple[int, ...],
    name: str = "orders",
    topic_id: uuid.UUID | None = ID,
    deleting: bool = False,
    waits_for: tuple[int, ...] = (),
    czxid: int = 0,
) -> TopicView:
    """A healthy topic with these replicas by partition; (1, 2) and (2, 1) by default."""
    return TopicView(
        name,
        topic_id,
        tuple(partition(i, r) for i, r in enumerate(replicas or ((1, 2), (2, 1)))),
        is_being_deleted=deleting,
        deletion_waits_for=waits_for,
        czxid=czxid,
    )


def partition(
    index: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...] | None = None,
    *,
    leader: int | None = None,
    state: str = PartitionHealth.ONLINE,
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
    refusals: tuple[tuple[int, str], ...] = (),
    uninformed: tuple[int, ...] = (),
    on_failed_dirs: tuple[int, ...] = (),
) -> PartitionView:
    in_sync = replicas if isr is None else isr
    return PartitionView(
        index,
        state,
        replicas,
        in_sync[0] if leader is None else leader,
        0,
        in_sync,
        adding,
        removing,
        refusals,
        uninformed=uninformed,
        on_failed_dirs=on_failed_dirs,
    )


def view(
    *topics: TopicView,
    brokers: int = 3,
    active: bool = True,
    complete: bool = True,
    epoch: int = 5,
    cluster_id: str | None = "cluster-a",
    unreadable: Mapping[str, str] | None = None,
) -> ClusterView:
    return ClusterView(
        is_active=active,
        is_complete=complete and active,
        controller_id=1,
        controller_epoch=epoch,
        brokers={i: Broker(i, i, ()) for i in range(1, brokers + 1)},
        topics={t.name: t for t in topics},
        unreadable_topics=unreadable or {},
        cluster_id=cluster_id,
    )


def claim(of: KafkaTopic, *, created: str | None = None) -> Claim:
    made = claim_of(of)
    assert made is not None
    return made if created is None else dataclasses.replace(made, created=created)


def request(
    subject: KafkaTopic | None = None,
    seen: ClusterView | None = None,
    *,
    config: Mapping[str, str] | None = None,
    others: Sequence[Claim] = (),
    claims: Sequence[Claim] | None = None,
    attempts: Sequence[Attempt] = (),
    created: CreateTopic | None = None,
    created_as: TopicView | None = None,
    waited_s: float = 0.0,
    absence: Absence | None = None,
    rules: Sequence[str] = (),
) -> TopicRequest:
    subject = resource() if subject is None else subject
    own = claim_of(subject)
    return TopicRequest(
        resource=subject,
        view=view() if seen is None else seen,
        config=config,
        claims=(*(() if own is None else (own,)), *others) if claims is None else tuple(claims),
        attempts=tuple(attempts),
        created=created,
        created_as=None if created_as is None else TopicIdentity.of(created_as),
        spare_topic_id=SPARE_ID,
        seen_at=MONOTONIC_S - waited_s,
        monotonic_s=MONOTONIC_S,
        now=NOW,
        absence=Absence(for_s=waited_s) if absence is None else absence,
        name_rules=TopicNameRules.parse(rules),
    )


def attempt(
    command: ResourceCommand,
    outcome: Outcome,
    *,
    retry_in_s: float = 10.0,
    generation: int = 1,
    epoch: int = 5,
    brokers: Mapping[int, Broker] | None = None,
    twins: tuple[str, ...] = (),
) -> Attempt:
    """A command that was sent with the view of :func:`request`, unless other brokers are given."""
    return Attempt(
        command,
        outcome,
        generation,
        epoch,
        view().brokers if brokers is None else brokers,
        twins=twins,
        retry_at=MONOTONIC_S + retry_in_s,
    )


def status_of(plan: Plan[StatusT]) -> StatusT:
    """The status that a plan shows."""
    assert plan.status is not None
    return plan.status


def state(plan: Plan[StatusT]) -> dict[str, str]:
    """Conditions of a plan as ``Type: Status/Reason``, in short."""
    return {c.type: f"{c.status.value}/{c.reason}" for c in status_of(plan).conditions}


def said(plan: Plan[StatusT], type_: ConditionType = ConditionType.READY) -> Condition:
    """A condition of a plan."""
    condition = find_condition(status_of(plan).conditions, type_)
    assert condition is not None
    return condition


def created(plan: TopicPlan) -> CreateTopic:
    """The only command of a plan, which creates a topic."""
    (command,) = plan.commands
    assert isinstance(command, CreateTopic)
    return command


def after(plan: TopicPlan, **changes: Any) -> dict[str, Any]:
    """The status of a plan as the API would hold it, for the next request."""
    return {**status_of(plan).to_api(), **changes}


def owned(**changes: Any) -> KafkaTopic:
    """A resource that has created its topic."""
    status = {**OWNED, **changes.pop("status", {})}
    return resource(finalizer=True, status=status, **changes)
