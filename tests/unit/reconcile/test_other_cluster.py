"""A resource whose status speaks of another Kafka cluster."""

from __future__ import annotations

from typing import Any

import pytest

from regent.admin.commands import CreateTopic
from regent.model.topic import topic_id_to_text
from regent.reconcile.plan import FinalizerAction
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.planning import plan_topic
from regent.resources.kafka_topic_status import DeletionPolicy, Ownership
from tests.unit.reconcile.requests import (
    ID,
    after,
    request,
    resource,
    said,
    state,
    status_of,
    topic,
    view,
)

ELSEWHERE = {
    "observedGeneration": 1,
    "clusterId": "cluster-b",
    "ownership": "Created",
    "topicId": topic_id_to_text(ID),
    "controllerEpoch": 99,
    "managedConfig": ["retention.ms"],
}


def look(*topics: Any, cluster_id: str | None = "cluster-a", **changes: Any) -> TopicPlan:
    changes = {"status": ELSEWHERE, "finalizer": True, **changes}
    seen = view(*topics, cluster_id=cluster_id)
    return plan_topic(request(resource(**changes), seen, config={"retention.ms": "1"}))


@pytest.mark.parametrize("topics", [(), (topic(),)], ids=["absent", "of the same name"])
def test_nothing_is_done_in_the_other_cluster(topics: tuple[Any, ...]) -> None:
    plan = look(*topics)
    assert plan.commands == ()
    assert plan.finalizer is FinalizerAction.LEAVE
    assert state(plan) == {
        "Ready": "False/OtherCluster",
        "Reconciling": "False/Idle",
        "Stalled": "True/OtherCluster",
        "Synced": "Unknown/Unknown",
        "Healthy": "Unknown/Unknown",
    }
    for word in ("cluster-a", "cluster-b", "clusterId"):
        assert word in said(plan).message
    assert status_of(plan).cluster_id == "cluster-b"
    assert status_of(plan).controller_epoch == 99
    assert status_of(plan).ownership is Ownership.CREATED
    assert status_of(plan).last_foreign_deletion is None


@pytest.mark.parametrize("policy", [None, "Delete", "Retain"])
@pytest.mark.parametrize("topics", [(), (topic(),)], ids=["absent", "of the same name"])
def test_the_deletion_leaves_both_topics_alone(policy: str | None, topics: tuple[Any, ...]) -> None:
    plan = look(*topics, deleted=True, deletionPolicy=policy)
    assert plan.commands == ()
    assert plan.finalizer is FinalizerAction.REMOVE
    (event,) = plan.events
    assert event.reason == "TopicRetained"
    assert "cluster-b" in event.message


@pytest.mark.parametrize("topics", [(), (topic(),)], ids=["absent", "of the same name"])
def test_a_deletion_that_has_begun_there_is_not_called_retained(topics: tuple[Any, ...]) -> None:
    """The resource was given to another cluster's Regent while a broker was waited for."""
    there = view(topic(deleting=True), cluster_id="cluster-b")
    deleting = resource(status=ELSEWHERE, finalizer=True, deleted=True, deletionPolicy="Delete")
    begun = plan_topic(request(deleting, there, config={}))
    plan = look(*topics, status=after(begun), deleted=True, deletionPolicy="Delete")
    assert plan.finalizer is FinalizerAction.REMOVE
    assert plan.commands == ()
    (event,) = plan.events
    assert event.reason == "TopicDeletionContinues"
    assert "cannot be undone" in event.message


def test_naming_the_new_cluster_begins_anew_there() -> None:
    plan = look(clusterId="cluster-a", onForeignDeletion="Alert")
    assert isinstance(plan.commands[0], CreateTopic)
    assert status_of(plan).cluster_id == "cluster-a"
    assert status_of(plan).controller_epoch == 5
    assert status_of(plan).topic_id is None


def test_and_a_topic_that_is_there_already_is_an_existing_one() -> None:
    plan = look(topic(), clusterId="cluster-a", adoptionPolicy="Refuse")
    assert state(plan)["Stalled"] == "True/AdoptionRefused"
    adopted = look(topic(), clusterId="cluster-a")
    assert adopted.commands == ()
    assert status_of(adopted).ownership is Ownership.ADOPTED
    assert status_of(adopted).managed_config == ()


@pytest.mark.parametrize("status", [{}, {**ELSEWHERE, "clusterId": "cluster-a"}])
def test_a_resource_for_another_cluster_is_not_carried_out(status: dict[str, Any]) -> None:
    plan = look(topic(), clusterId="cluster-b", status=status)
    assert plan.commands == ()
    assert state(plan)["Stalled"] == "True/OtherCluster"
    gone = look(topic(), clusterId="cluster-b", status=status, deleted=True)
    assert gone.commands == ()
    assert [event.reason for event in gone.events] == ["TopicRetained"]


def test_while_the_cluster_is_not_known_nothing_is_concluded() -> None:
    plan = look(cluster_id=None)
    assert plan.commands == ()
    assert state(plan)["Reconciling"] == "True/ClusterLoading"
    assert (status_of(plan).cluster_id, status_of(plan).controller_epoch) == ("cluster-b", 99)
    gone = look(cluster_id=None, deleted=True)
    assert (gone.commands, gone.finalizer) == ((), FinalizerAction.LEAVE)


@pytest.mark.parametrize("deleted", [False, True])
def test_the_policy_that_is_shown_is_the_one_that_is_followed(deleted: bool) -> None:
    plan = look(deletionPolicy="Protect", deleted=deleted)
    assert plan.finalizer is FinalizerAction.LEAVE
    assert status_of(plan).deletion_policy is DeletionPolicy.PROTECT
