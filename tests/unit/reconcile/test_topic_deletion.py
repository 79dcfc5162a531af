"""Deleted KafkaTopics: what becomes of their topics, and when they may go."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

import pytest

from regent.admin.commands import Accepted, CreateTopic, DeleteTopic
from regent.controller.view import ClusterView, PartitionHealth, TopicView
from regent.model.topic import topic_id_to_text
from regent.reconcile.plan import FinalizerAction, Plan
from regent.reconcile.request import INACTIVE_GRACE_S
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.request import TopicRequest
from regent.reconcile.topics.transitions import transition_events
from regent.resources.kafka_topic_status import KafkaTopicStatus
from tests.unit.reconcile.requests import (
    ID,
    after,
    attempt,
    claim,
    partition,
    request,
    resource,
    said,
    state,
    status_of,
    topic,
    view,
)

OWNED = {"observedGeneration": 1, "ownership": "Created", "topicId": topic_id_to_text(ID)}


def deleted(
    seen: ClusterView | None = None,
    *,
    status: dict[str, Any] | None = None,
    finalizer: bool = True,
    name: str = "orders",
    generation: int = 2,
    waited_s: float = 0.0,
    others: Any = (),
    attempts: Any = (),
    **spec: Any,
) -> TopicRequest:
    subject = resource(
        name=name,
        deleted=True,
        finalizer=finalizer,
        generation=generation,
        status=OWNED if status is None else status,
        **spec,
    )
    return request(
        subject,
        view(topic()) if seen is None else seen,
        config={},
        waited_s=waited_s,
        others=others,
        attempts=attempts,
    )


def _released(plan: TopicPlan, event: str) -> bool:
    return (
        plan.finalizer is FinalizerAction.REMOVE
        and plan.commands == ()
        and [e.reason for e in plan.events] == [event]
    )


def test_a_topic_stays_if_the_definition_of_its_resource_is_deleted() -> None:
    for policy in ("Delete", "Protect"):
        held = deleted(deletionPolicy=policy)
        assert plan_topic(held).asks_about_definition
        gone = dataclasses.replace(held, goes_with_definition=True)
        assert _released(plan_topic(gone), "TopicRetained")
    begun = dataclasses.replace(deleted(view(topic(deleting=True))), goes_with_definition=True)
    assert _released(plan_topic(begun), "TopicDeletionContinues")


def test_a_topic_that_loses_its_replicas_was_not_changed_by_somebody_else() -> None:
    before = plan_topic(deleted(partitions=2, replicationFactor=2))
    seen = view(topic((1,), (2,), deleting=True))
    after = plan_topic(deleted(seen, partitions=2, replicationFactor=2))
    assert state(before)["Synced"] == "True/AsDeclared"
    assert state(after)["Synced"].startswith("Unknown")
    assert transition_events(status_of(before), status_of(after)) == ()


def test_then_it_is_waited_for() -> None:
    accepted = attempt(DeleteTopic("orders", ID), Accepted(), generation=2)
    assert plan_topic(deleted(attempts=[accepted])).commands == ()
    plan = plan_topic(deleted(view(topic(deleting=True))))
    assert (plan.commands, plan.finalizer) == ((), FinalizerAction.LEAVE)
    assert state(plan)["Reconciling"] == "True/Deleting"


def test_and_then_the_resource_may_go() -> None:
    assert _released(plan_topic(deleted(view())), "TopicDeleted")


@pytest.mark.parametrize(
    ("changes", "event"),
    [
        ({"deletionPolicy": "Retain"}, "TopicRetained"),
        ({"managementPolicy": "Paused"}, "TopicRetained"),
        ({"managementPolicy": "Observe"}, "TopicRetained"),
        ({"managementPolicy": "Observe", "deletionPolicy": "Protect"}, "TopicRetained"),
        ({"adoptionPolicy": "Refuse", "status": {"observedGeneration": 1}}, "TopicRetained"),
        ({"seen": view(topic(topic_id=uuid.UUID(int=78)))}, "TopicRetained"),
        ({"others": [claim(resource(name="owner", uid="u0", status=OWNED))]}, "TopicRetained"),
        (
            {"others": [claim(resource(name="elder", uid="u0"), created="2020-01-01T00:00:00Z")]},
            "TopicHandedOver",
        ),
        ({"others": [claim(resource(name="successor", uid="u9"))]}, "TopicHandedOver"),
    ],
)
def test_what_is_not_clearly_wanted_keeps_the_topic(changes: dict[str, Any], event: str) -> None:
    assert _released(plan_topic(deleted(**changes)), event)


def test_an_heir_that_goes_as_well_is_none() -> None:
    successor = claim(resource(name="successor", uid="u9", deleted=True, finalizer=True))
    assert plan_topic(deleted(others=[successor])).commands == (DeleteTopic("orders", ID),)


@pytest.mark.parametrize(
    "changes",
    [{"deletionPolicy": "Retain"}, {"managementPolicy": "Paused"}],
    ids=["retain", "paused"],
)
def test_what_is_being_deleted_is_not_called_retained(changes: dict[str, Any]) -> None:
    """A deletion cannot be undone: a policy that comes too late must not pretend."""
    begun = plan_topic(deleted(view(topic(deleting=True))))
    accepted = attempt(DeleteTopic("orders", ID), Accepted(), generation=2)
    for late in (
        deleted(view(topic(deleting=True)), **changes),
        deleted(attempts=[accepted], generation=3, **changes),
        deleted(view(active=False), waited_s=31, status=status_of(begun).to_api(), **changes),
    ):
        plan = plan_topic(late)
        assert _released(plan, "TopicDeletionContinues")
        assert plan.events[0].is_warning
        assert "cannot be undone" in plan.events[0].message


@pytest.mark.parametrize("blind", [view(active=False), view(complete=False)])
def test_an_outage_does_not_hide_that_a_deletion_has_begun(blind: ClusterView) -> None:
    """What is said while nobody knows the cluster comes between that and the late policy."""
    begun = plan_topic(deleted(view(topic(deleting=True))))
    status = after(begun)
    for _ in range(2):
        waiting = deleted(blind, waited_s=200, status=status)
        shown = plan_topic(waiting)
        assert shown.finalizer is FinalizerAction.LEAVE
        assert "keep the topic" not in said(shown).message
        status = after(shown)
    late = deleted(blind, waited_s=31, status=status, deletionPolicy="Retain")
    assert _released(plan_topic(late), "TopicDeletionContinues")
    back = deleted(view(topic()), status=status, deletionPolicy="Retain")
    assert _released(plan_topic(back), "TopicRetained"), "a backup of ZooKeeper was restored"


def test_the_brokers_that_are_waited_for_are_named() -> None:
    seen = view(topic(deleting=True, waits_for=(2, 9)))
    message = said(plan_topic(deleted(seen))).message
    assert "waiting for brokers [2, 9] to confirm" in message
    assert "[9] are not alive" in message
    alive = said(plan_topic(deleted(view(topic(deleting=True, waits_for=(2,)))))).message
    assert alive.endswith("waiting for brokers [2] to confirm")


def test_partitions_that_lose_their_leaders_to_the_deletion_are_no_warning() -> None:
    gone = partition(0, (1, 2), isr=(), leader=-1, state=PartitionHealth.OFFLINE)
    going = TopicView("orders", ID, (gone,), is_being_deleted=True)
    plan = plan_topic(deleted(view(going)))
    assert state(plan)["Healthy"] == "Unknown/Unknown"
    healthy = after(plan_topic(request(resource(status=OWNED), view(topic()), config={})))
    assert transition_events(KafkaTopicStatus.model_validate(healthy), status_of(plan)) == ()


def test_a_broker_that_refuses_to_delete_its_replicas_is_named_all_the_same() -> None:
    refused = partition(0, (1, 2), refusals=((1, "KAFKA_STORAGE_ERROR"),))
    going = TopicView("orders", ID, (refused,), is_being_deleted=True)
    plan = plan_topic(deleted(view(going)))
    assert state(plan)["Healthy"] == "False/ReplicasRefused"


def test_a_topic_created_a_moment_ago_is_awaited_and_then_deleted() -> None:
    made = CreateTopic("orders", 2, replication_factor=2, topic_id=ID)
    status = {"ownership": "Creating", "intendedTopicId": topic_id_to_text(ID)}
    subject = resource(deleted=True, finalizer=True, generation=2, status=status)
    accepted = attempt(made, Accepted(), generation=1, retry_in_s=6)
    waiting = plan_topic(request(subject, view(), attempts=[accepted], created=made))
    assert (waiting.commands, waiting.finalizer) == ((), FinalizerAction.LEAVE)
    assert waiting.requeue_after_s == 6
    shown = plan_topic(request(subject, view(topic()), attempts=[accepted], created=made))
    assert shown.commands == (DeleteTopic("orders", ID),)
    # It has shown, and is gone again: there is nothing to wait for.
    delete = attempt(DeleteTopic("orders", ID), Accepted(), generation=2)
    gone = plan_topic(request(subject, view(), attempts=[accepted, delete], created=made))
    assert gone.finalizer is FinalizerAction.REMOVE
    recorded = resource(deleted=True, finalizer=True, generation=2, status=OWNED)
    gone = plan_topic(request(recorded, view(), attempts=[accepted]))
    assert gone.finalizer is FinalizerAction.REMOVE
    never = plan_topic(request(subject, view()))
    assert (never.finalizer, never.events) == (FinalizerAction.REMOVE, ())


class TestProtection:
    @pytest.mark.parametrize("management", ["Managed", "Paused"])
    def test_as_long_as_the_topic_exists(self, management: str) -> None:
        plan = plan_topic(deleted(deletionPolicy="Protect", managementPolicy=management))
        assert (plan.commands, plan.finalizer) == ((), FinalizerAction.LEAVE)
        assert state(plan)["Stalled"] == "True/DeletionProtected"
        assert "set deletionPolicy to Retain" in said(plan).message

    def test_internal_topics_are_never_deleted(self) -> None:
        name = "__consumer_offsets"
        for policy in ("Delete", "Protect", None):
            subject = deleted(view(topic(name=name)), topicName=name, deletionPolicy=policy)
            assert _released(plan_topic(subject), "TopicRetained")


class TestWithoutController:
    def test_time_is_given(self) -> None:
        plan = plan_topic(deleted(view(active=False), waited_s=4))
        assert plan == Plan(requeue_after_s=INACTIVE_GRACE_S - 4)

    def test_then_the_reason_is_shown(self) -> None:
        plan = plan_topic(deleted(view(active=False), waited_s=31))
        assert state(plan)["Reconciling"] == "True/ControllerInactive"
        assert "set deletionPolicy to Retain" in said(plan).message


@pytest.mark.parametrize("topics", [(), (topic(),)], ids=["wholly", "in part"])
def test_a_topic_that_cannot_be_read_is_neither_deleted_nor_gone(
    topics: tuple[TopicView, ...],
) -> None:
    plan = plan_topic(deleted(view(*topics, unreadable={"orders": "not JSON"})))
    assert (plan.commands, plan.finalizer) == ((), FinalizerAction.LEAVE)
    assert state(plan)["Stalled"] == "True/TopicsUnreadable"
    assert "the node of topic orders cannot be read: not JSON" in said(plan).message
