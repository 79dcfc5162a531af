"""Resources that are being deleted, and that somebody else's finalizer keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from regent.reconcile.drains.kind import BROKER_DRAIN
from regent.reconcile.drains.planning import plan_drain
from regent.reconcile.drains.unreadable import UnreadableRequest as UnreadableDrainRequest
from regent.reconcile.drains.unreadable import plan_unreadable as plan_unreadable_drain
from regent.reconcile.plan import FinalizerAction, Plan
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.unreadable import UnreadableRequest as UnreadableTopicRequest
from regent.reconcile.topics.unreadable import plan_unreadable as plan_unreadable_topic
from regent.resources.broker_drain import UnreadableDrain
from regent.resources.kafka_topic import FINALIZER, UnreadableTopic, parse_kafka_topic
from tests.unit.reconcile.drains.draining import Cluster, Drain
from tests.unit.reconcile.reassignments import reassigning
from tests.unit.reconcile.requests import NOW, OWNED, request, resource, state, status_of, view

HOLDER = "example.com/hold"


def topic(*finalizers: str) -> Plan[Any]:
    subject = resource(deleted=True, status=OWNED)
    metadata = subject.metadata.model_copy(update={"finalizers": finalizers})
    return plan_topic(
        request(subject.model_copy(update={"metadata": metadata}), view(), config=None)
    )


def unreadable_topic(*finalizers: str) -> Plan[Any]:
    found = parse_kafka_topic(body(finalizers, partitions="many"))
    assert isinstance(found, UnreadableTopic)
    return plan_unreadable_topic(UnreadableTopicRequest(found, NOW))


def drain(*finalizers: str) -> Plan[Any]:
    subject = Drain(Cluster({"t": [(1, 2)]}), 3)
    subject.finish()
    assert subject.truth()["Drained"].startswith("True")
    subject.deleted, subject.finalizers = True, finalizers
    return plan_drain(subject.request())


def unreadable_drain(*finalizers: str) -> Plan[Any]:
    found = BROKER_DRAIN.parse(body(finalizers, brokers="all"))
    assert isinstance(found, UnreadableDrain)
    return plan_unreadable_drain(UnreadableDrainRequest(found, NOW))


def reassignment(*finalizers: str, **status: Any) -> Plan[Any]:
    subject = reassigning.resource(replicationFactor={"orders": 2}, status=status)
    changes = {"finalizers": finalizers, "deletion_timestamp": "2026-05-01T11:00:00Z"}
    metadata = subject.metadata.model_copy(update=changes)
    changed = subject.model_copy(update={"metadata": metadata})
    return plan_reassignment(reassigning.request(changed, view()))


def body(finalizers: tuple[str, ...], **spec: Any) -> dict[str, Any]:
    metadata = {
        "name": "orders",
        "namespace": "shop",
        "uid": "u1",
        "generation": 2,
        "deletionTimestamp": "2026-05-01T11:00:00Z",
        "finalizers": list(finalizers),
    }
    return {"metadata": metadata, "spec": spec, "status": {}}


every_kind = pytest.mark.parametrize(
    "planned", [topic, unreadable_topic, drain, unreadable_drain, reassignment]
)


@every_kind
def test_while_somebody_else_keeps_it_nothing_is_known_any_more(
    planned: Callable[..., Plan[Any]],
) -> None:
    plan = planned(HOLDER)
    assert plan.commands == ()
    conditions = state(plan)
    assert conditions.pop("Ready") == "False/BeingDeleted"
    assert conditions.pop("Reconciling") == "True/BeingDeleted"
    assert conditions.pop("Stalled") == "False/NotStalled"
    assert set(conditions.values()) == {"Unknown/Unknown"}
    assert HOLDER in status_of(plan).conditions[0].message


@every_kind
def test_regents_finalizer_goes_first_whoever_has_put_it_there(
    planned: Callable[..., Plan[Any]],
) -> None:
    plan = planned(FINALIZER, HOLDER)
    assert (plan.finalizer, plan.status) == (FinalizerAction.REMOVE, None)
    held = state(Plan(status=plan.status_if_held))
    assert held.pop("Ready") == "False/WriteRefused"
    assert held.pop("Reconciling") == "True/WriteRefused"
    assert held.pop("Stalled") == "False/NotStalled"
    assert set(held.values()) == {"Unknown/Unknown"}


@every_kind
def test_one_that_nobody_keeps_needs_no_status(planned: Callable[..., Plan[Any]]) -> None:
    assert planned() == Plan()


def test_a_reassignment_that_was_completed_stays_so() -> None:
    finished = {"phase": "Completed", "finishedAt": "2026-05-01T10:30:00Z"}
    assert reassignment(HOLDER, **finished) == Plan()
    assert reassignment(FINALIZER, **finished).finalizer is FinalizerAction.REMOVE
