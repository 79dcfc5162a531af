"""A topic that somebody else deletes: loud, and not created again without being asked for."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from regent.admin.commands import AlterTopicConfig, CreateTopic
from regent.controller.view import ClusterView, TopicView
from regent.model.topic import topic_id_to_text
from regent.reconcile.plan import FinalizerAction
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.transitions import transition_events
from regent.resources.conditions import rfc3339
from regent.resources.kafka_topic import KafkaTopic
from regent.resources.kafka_topic_status import Ownership
from tests.support.present import present
from tests.unit.reconcile.requests import (
    ID,
    NOW,
    SPARE_ID,
    after,
    request,
    resource,
    said,
    state,
    status_of,
    topic,
    view,
)

OTHER_ID = uuid.UUID(int=78)
OWNED = {
    "observedGeneration": 1,
    "ownership": "Created",
    "topicId": topic_id_to_text(ID),
    "clusterId": "cluster-a",
    "managedConfig": ["retention.ms"],
}

WITHOUT_OWNERSHIP = {key: value for key, value in OWNED.items() if key != "ownership"}


def owned(**changes: Any) -> KafkaTopic:
    status = {**OWNED, **changes.pop("status", {})}
    return resource(finalizer=True, status=status, **changes)


def look(subject: KafkaTopic, seen: ClusterView) -> TopicPlan:
    return plan_topic(request(subject, seen, config={}))


def reported(subject: KafkaTopic, plan: TopicPlan) -> list[tuple[str, bool]]:
    """What the transition of the status tells: reasons, and whether they are warnings."""
    events = transition_events(subject.status, status_of(plan))
    return [(event.reason, event.is_warning) for event in events]


def lost(**changes: Any) -> KafkaTopic:
    """The resource after its topic was found missing."""
    return owned(status=after(look(owned(), view())), **changes)


class TestAlert:
    @pytest.mark.parametrize("ownership", ["Created", "Adopted"])
    def test_the_topic_is_not_created_again(self, ownership: str) -> None:
        subject = owned(status={"ownership": ownership})
        plan = look(subject, view())
        assert plan.commands == ()
        assert plan.finalizer is FinalizerAction.LEAVE
        assert state(plan) == {
            "Ready": "False/TopicDeletedExternally",
            "Reconciling": "False/Idle",
            "Stalled": "True/TopicDeletedExternally",
            "Synced": "False/TopicNotFound",
            "Healthy": "Unknown/Unknown",
        }
        assert "set onForeignDeletion to Recreate" in said(plan).message
        assert topic_id_to_text(ID) in said(plan).message
        assert status_of(plan).ownership is Ownership.LOST
        assert present(status_of(plan).last_foreign_deletion).to_api() == {
            "topicId": topic_id_to_text(ID),
            "detectedAt": rfc3339(NOW),
        }

    def test_it_is_reported_once_as_a_warning(self) -> None:
        subject = owned()
        plan = look(subject, view())
        assert reported(subject, plan) == [("TopicDeletedExternally", True)]
        again = lost()
        assert reported(again, look(again, view())) == []
        assert state(look(again, view()))["Stalled"] == "True/TopicDeletedExternally"

    def test_it_is_reported_as_soon_as_somebody_marks_the_topic(self) -> None:
        subject = owned()
        plan = look(subject, view(topic(deleting=True)))
        assert reported(subject, plan) == [("TopicDeletedExternally", True)]
        assert state(plan)["Stalled"] == "True/TopicDeletedExternally"
        gone = owned(status=after(plan))
        assert reported(gone, look(gone, view())) == []

    def test_paused_says_so_too(self) -> None:
        subject = owned(managementPolicy="Paused", onForeignDeletion="Recreate")
        plan = look(subject, view())
        assert plan.commands == ()
        assert state(plan)["Stalled"] == "True/TopicDeletedExternally"
        assert reported(subject, plan) == [("TopicDeletedExternally", True)]

    def test_a_resource_that_only_observes_from_now_on_reports_it_and_lets_go(self) -> None:
        subject = owned(managementPolicy="Observe")
        plan = look(subject, view())
        assert reported(subject, plan) == [
            ("TopicDeletedExternally", True),
            ("TopicNotFound", True),
        ]
        assert plan.finalizer is FinalizerAction.REMOVE
        assert status_of(plan).ownership is None


class TestRecreate:
    def test_it_is_reported_and_stored_before_the_topic_is_created_with_a_new_id(self) -> None:
        subject = owned(onForeignDeletion="Recreate")
        plan = look(subject, view())
        assert plan.status_first
        (command,) = plan.commands
        assert isinstance(command, CreateTopic)
        assert command.topic_id == SPARE_ID
        assert reported(subject, plan) == [("TopicDeletedExternally", True)]
        assert status_of(plan).ownership is Ownership.CREATING

    def test_while_it_is_being_deleted_it_is_waited_for(self) -> None:
        subject = owned(onForeignDeletion="Recreate")
        plan = look(subject, view(topic(deleting=True)))
        assert plan.commands == ()
        assert state(plan)["Reconciling"] == "True/TopicMarkedForDeletion"
        assert reported(subject, plan) == [("TopicDeletedExternally", True)]


class TestCreatedAgainBySomebodyElse:
    def test_without_an_id_the_transaction_that_created_it_tells(self) -> None:
        subject = owned(status={"topicId": None, "topicCzxid": "0x2a"})
        plan = look(subject, view(topic(topic_id=None, czxid=0x2B)))
        assert reported(subject, plan) == [("TopicRecreatedExternally", True)]
        assert status_of(plan).ownership is Ownership.ADOPTED
        assert status_of(plan).topic_czxid == "0x2b"
        assert present(status_of(plan).last_foreign_deletion).recreated_as == "cZxid 0x2b"
        (event,) = transition_events(subject.status, status_of(plan))
        assert "created another one of that name (cZxid 0x2b);" in event.message

    @pytest.mark.parametrize(
        ("recorded", "topic_id", "czxid"),
        [
            ({"topicId": None, "topicCzxid": "0x2a"}, None, 0x2A),
            ({"topicId": None, "topicCzxid": None}, None, 0x2B),
            ({"topicId": None, "topicCzxid": "0x2a"}, ID, 0x2A),
            ({"topicCzxid": "0x2a"}, None, 0x2A),
            ({"topicCzxid": "0x2a"}, ID, 0x2B),
        ],
        ids=[
            "the same",
            "a status of before",
            "given an id",
            "its id was removed",
            "a copied node",
        ],
    )
    def test_a_topic_that_is_still_the_same_is_not_reported(
        self, recorded: dict[str, Any], topic_id: uuid.UUID | None, czxid: int
    ) -> None:
        subject = owned(status=recorded)
        plan = look(subject, view(topic(topic_id=topic_id, czxid=czxid)))
        assert reported(subject, plan) == []
        assert status_of(plan).ownership is Ownership.CREATED
        assert status_of(plan).topic_czxid == hex(czxid)

    def test_the_adoption_policy_decides(self) -> None:
        seen = view(topic(topic_id=OTHER_ID))
        adopted = look(owned(config={"flush.ms": 1}), seen)
        assert adopted.commands == (AlterTopicConfig("orders", {"flush.ms": "1"}),)
        assert status_of(adopted).ownership is Ownership.ADOPTED
        refused = look(owned(adoptionPolicy="Refuse"), seen)
        assert refused.commands == ()
        assert state(refused)["Stalled"] == "True/AdoptionRefused"

    @pytest.mark.parametrize(
        "spec", [{"adoptionPolicy": "Refuse"}, {"managementPolicy": "Paused"}], ids=str
    )
    def test_if_that_one_vanishes_too_nothing_is_created(self, spec: dict[str, str]) -> None:
        seen = look(owned(**spec), view(topic(topic_id=OTHER_ID)))
        assert status_of(seen).ownership is Ownership.LOST
        subject = owned(status=after(seen), adoptionPolicy="Refuse")
        plan = look(subject, view())
        assert plan.commands == ()
        assert state(plan)["Stalled"] == "True/TopicDeletedExternally"

    def test_what_comes_back_without_ids_is_foreign_after_a_loss(self) -> None:
        gone = owned(status=after(look(owned(status={"topicId": None}), view())))
        subject = owned(status=after(look(gone, view())), adoptionPolicy="Refuse")
        plan = look(subject, view(topic(topic_id=None)))
        assert state(plan)["Stalled"] == "True/AdoptionRefused"

    def test_what_comes_back_with_its_id_was_never_gone(self) -> None:
        plan = look(lost(adoptionPolicy="Refuse"), view(topic()))
        assert state(plan)["Ready"] == "True/AsDeclared"


@pytest.mark.parametrize("topics", [(), (topic((1, 2)),)], ids=["wholly", "in part"])
@pytest.mark.parametrize("policy", ["Alert", "Recreate"])
def test_a_topic_that_cannot_be_read_is_not_lost_and_nothing_is_done(
    policy: str, topics: tuple[TopicView, ...]
) -> None:
    subject = owned(onForeignDeletion=policy)
    plan = look(subject, view(*topics, unreadable={"orders": "not JSON"}))
    assert (plan.commands, plan.finalizer) == ((), FinalizerAction.LEAVE)
    assert status_of(plan).ownership is Ownership.CREATED
    assert status_of(plan).last_foreign_deletion is None
    assert state(plan) == {
        "Ready": "False/TopicsUnreadable",
        "Reconciling": "False/Idle",
        "Stalled": "True/TopicsUnreadable",
        "Synced": "Unknown/Unknown",
        "Healthy": "Unknown/Unknown",
    }


def test_a_topic_that_nobody_owns_is_not_created_over_one_that_cannot_be_read() -> None:
    plan = look(resource(), view(unreadable={"orders": "not JSON"}))
    assert plan.commands == ()
    assert state(plan)["Stalled"] == "True/TopicsUnreadable"


class TestOneWhoseOwnershipIsMissing:
    """Somebody has edited the status, or an admission policy changes what is written to it."""

    @pytest.mark.parametrize("known", [{}, {"topicId": None, "topicCzxid": "0x2a"}])
    def test_holder_of_the_finalizer_has_owned_the_topic_of_the_status(
        self, known: dict[str, Any]
    ) -> None:
        subject = resource(finalizer=True, status={**WITHOUT_OWNERSHIP, **known})
        plan = look(subject, view())
        assert plan.commands == ()
        assert reported(subject, plan) == [("TopicDeletedExternally", True)]
        status = {key: value for key, value in after(plan).items() if key != "ownership"}
        again = look(resource(finalizer=True, status=status), view())
        assert again.commands == ()
        assert state(again)["Stalled"] == "True/TopicDeletedExternally"

    @pytest.mark.parametrize(
        "changes",
        [
            {"finalizer": False},
            {"adoptionPolicy": "Refuse"},
            {"managementPolicy": "Observe"},
        ],
    )
    def test_topic_is_not_lost_when_it_may_belong_to_others(self, changes: dict[str, Any]) -> None:
        plan = look(resource(**{"finalizer": True, "status": WITHOUT_OWNERSHIP, **changes}), view())
        assert status_of(plan).last_foreign_deletion is None

    def test_another_topic_of_that_name_is_reported(self) -> None:
        subject = resource(finalizer=True, status=WITHOUT_OWNERSHIP)
        plan = look(subject, view(topic(topic_id=OTHER_ID)))
        assert reported(subject, plan)[0] == ("TopicRecreatedExternally", True)


class TestOneThatNoStatusRecords:
    """This process has created it, and the API server refuses its status: a right is missing, or an
    admission policy is against it."""

    MADE = CreateTopic("orders", 2, replication_factor=2, topic_id=ID)
    WITHOUT_ID = CreateTopic("orders", 2, replication_factor=2)

    def _look(
        self, seen: ClusterView, *, made: CreateTopic = MADE, known: TopicView, **changes: Any
    ) -> tuple[KafkaTopic, TopicPlan]:
        subject = resource(finalizer=True, **changes)
        looked = request(subject, seen, config={}, created=made, created_as=known)
        return subject, plan_topic(looked)

    def test_on_request_it_is_created_with_another_id_once_the_loss_is_stored(self) -> None:
        _, plan = self._look(view(), known=topic(), onForeignDeletion="Recreate")
        (command,) = plan.commands
        assert isinstance(command, CreateTopic)
        assert command.topic_id == SPARE_ID
        assert plan.status_first

    def test_another_one_of_that_name_is_reported_and_nobody_deletes_it(self) -> None:
        known, other = topic(topic_id=None, czxid=0x2A), topic(topic_id=None, czxid=0x2B)
        subject, plan = self._look(view(other), made=self.WITHOUT_ID, known=known)
        assert reported(subject, plan) == [("TopicRecreatedExternally", True)]
        assert status_of(plan).ownership is Ownership.ADOPTED
        _, end = self._look(view(other), made=self.WITHOUT_ID, known=known, deleted=True)
        assert end.commands == ()
        assert end.finalizer is FinalizerAction.REMOVE
        assert [event.reason for event in end.events] == ["TopicRetained"]
