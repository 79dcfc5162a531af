"""Whose topic it is: what a stored intent proves, and which of several resources counts."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from regent.admin.commands import Accepted, CreateTopic, DeleteTopic
from regent.controller.view import PartitionHealth, TopicView
from regent.model.topic import topic_id_to_text
from regent.reconcile.plan import FinalizerAction
from regent.reconcile.topics.claims import claim_of
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.request import TopicRequest, first_topic_id
from regent.resources.kafka_topic_status import DeletionPolicy, Ownership
from tests.unit.reconcile.requests import (
    FIRST_ID,
    ID,
    SPARE_ID,
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

FOREIGN_ID = uuid.UUID(int=78)
CREATING = {"ownership": "Creating", "intendedTopicId": topic_id_to_text(ID)}
OWNED = {"ownership": "Created", "topicId": topic_id_to_text(ID), "clusterId": "cluster-a"}
OLDER, OLDEST = "2026-05-01T09:00:00Z", "2026-05-01T08:00:00Z"


def _intending(policy: str = "Refuse", **changes: Any) -> Any:
    return resource(adoptionPolicy=policy, finalizer=True, status=CREATING, **changes)


class TestIntent:
    def test_the_id_is_stored_before_the_command_is_sent(self) -> None:
        plan = plan_topic(request(resource(adoptionPolicy="Refuse")))
        assert plan.status_first
        assert status_of(plan).intended_topic_id == topic_id_to_text(SPARE_ID)
        (command,) = plan.commands
        assert isinstance(command, CreateTopic)
        assert command.topic_id == SPARE_ID

    @pytest.mark.parametrize("policy", ["Refuse", "Preview"])
    def test_the_topic_with_the_intended_id_is_its_own(self, policy: str) -> None:
        plan = plan_topic(request(_intending(policy), view(topic()), config={}))
        assert state(plan)["Ready"] == "True/AsDeclared"
        assert status_of(plan).ownership is Ownership.CREATED
        assert status_of(plan).intended_topic_id is None

    @pytest.mark.parametrize(
        ("policy", "reason"), [("Refuse", "AdoptionRefused"), ("Preview", "AdoptionPreview")]
    )
    @pytest.mark.parametrize("topic_id", [FOREIGN_ID, None], ids=["another id", "no ids"])
    def test_any_other_topic_is_foreign(
        self, policy: str, reason: str, topic_id: uuid.UUID | None
    ) -> None:
        seen = view(topic(topic_id=topic_id))
        plan = plan_topic(request(_intending(policy, partitions=3), seen, config={}))
        assert plan.commands == ()
        assert plan.finalizer is FinalizerAction.REMOVE
        assert state(plan)["Stalled"] == f"True/{reason}"
        assert status_of(plan).ownership is None
        assert status_of(plan).intended_topic_id is None

    @pytest.mark.parametrize("topic_id", [ID, None], ids=["with ids", "without"])
    def test_what_this_process_has_created_is_its_own(self, topic_id: uuid.UUID | None) -> None:
        made = CreateTopic("orders", 2, replication_factor=2, topic_id=ID)
        seen = view(topic(topic_id=topic_id))
        plan = plan_topic(request(_intending(), seen, config={}, created=made))
        assert status_of(plan).ownership is Ownership.CREATED

    def test_a_changed_resource_does_not_create_a_topic_that_is_about_to_show(self) -> None:
        made = CreateTopic("orders", 2, replication_factor=2, topic_id=ID)
        accepted = attempt(made, Accepted(), generation=1, retry_in_s=4)
        subject = _intending(partitions=3, generation=2)
        plan = plan_topic(request(subject, attempts=[accepted], created=made))
        assert plan.commands == ()
        assert plan.requeue_after_s == 4
        assert state(plan)["Reconciling"] == "True/Creating"
        assert status_of(plan).ownership is Ownership.CREATING


class TestFirstTopic:
    """With the policy Adopt, the id of the first topic says that the resource has created it."""

    MADE = CreateTopic("orders", 2, replication_factor=2, topic_id=FIRST_ID)

    def _creating(self, *topics: TopicView, retry_in_s: float = 4, **changes: Any) -> TopicRequest:
        return request(
            resource(finalizer=True, **changes),
            view(*topics),
            config={},
            attempts=[attempt(self.MADE, Accepted(), retry_in_s=retry_in_s)],
            created=self.MADE,
        )

    def test_its_id_follows_from_the_resource_and_the_cluster(self) -> None:
        ids = [
            first_topic_id(uid, cluster_id=cluster_id)
            for uid, cluster_id in (("u1", "cluster-a"), ("u2", "cluster-a"), ("u1", "cluster-b"))
        ]
        assert len(set(ids)) == 3
        assert str(ids[0]) == "550d745f-db44-5957-a082-cda425d5c9cc", "it must never change"

    @pytest.mark.parametrize(
        "changes",
        [
            {"status": {"observedGeneration": 1}},
            {"status": {"clusterId": "cluster-b"}, "clusterId": "cluster-a"},
        ],
        ids=["a status", "moved from another cluster"],
    )
    def test_an_id_that_was_drawn_is_stored_first(self, changes: dict[str, Any]) -> None:
        """A crash comes before a status shows the topic."""
        plan = plan_topic(request(resource(finalizer=True, **changes)))
        assert plan.status_first
        stored = resource(finalizer=True, **changes | {"status": after(plan)})
        again = plan_topic(request(stored))
        assert (again.commands, again.status_first) == (plan.commands, False)
        crashed = plan_topic(request(stored, view(topic(topic_id=SPARE_ID)), config={}))
        assert status_of(crashed).ownership is Ownership.CREATED
        assert status_of(crashed).deletion_policy is DeletionPolicy.DELETE

    def test_nothing_is_said_while_it_is_about_to_show(self) -> None:
        plan = plan_topic(self._creating())
        assert (plan.status, plan.commands, plan.requeue_after_s) == (None, (), 4)

    def test_nothing_is_said_while_it_waits_for_its_first_leaders(self) -> None:
        born = partition(0, (1, 2), (), leader=-1, state=PartitionHealth.NEW)
        unborn = TopicView("orders", FIRST_ID, (born, partition(1, (2, 1))))
        plan = plan_topic(self._creating(unborn))
        assert (plan.status, plan.commands, plan.requeue_after_s) == (None, (), 4)
        late = plan_topic(self._creating(unborn, retry_in_s=0))
        assert state(late)["Reconciling"] == "True/Creating"

    def test_after_a_crash_a_resource_that_was_deleted_deletes_it(self) -> None:
        gone = resource(finalizer=True, deleted=True)
        plan = plan_topic(request(gone, view(topic(topic_id=FIRST_ID)), config={}))
        assert plan.commands == (DeleteTopic("orders", FIRST_ID),)

    @pytest.mark.parametrize(
        ("status", "topic_id"),
        [
            ({}, FOREIGN_ID),
            ({}, None),
            ({"observedGeneration": 1, "topicId": topic_id_to_text(FIRST_ID)}, FIRST_ID),
        ],
        ids=["another id", "no ids", "it was released"],
    )
    def test_any_other_topic_is_adopted(
        self, status: dict[str, Any], topic_id: uuid.UUID | None
    ) -> None:
        subject = resource(finalizer=True, status=status)
        plan = plan_topic(request(subject, view(topic(topic_id=topic_id)), config={}))
        assert status_of(plan).ownership is Ownership.ADOPTED


class TestPrecedence:
    """The one that owns the topic counts, only then the older one."""

    def _other(self, **changes: Any) -> Any:
        changes = {"name": "elder", "uid": "u0", **changes}
        return claim(resource(**changes), created=OLDER)

    def _wins(self, subject: Any, other: Any, *topics: Any) -> bool:
        plan = plan_topic(request(subject, view(*topics), config={}, others=[other]))
        return state(plan)["Stalled"] != "True/ResourceConflict"

    @pytest.mark.parametrize(
        "evidence",
        [
            {"status": OWNED},
            {"status": {**OWNED, "ownership": "Adopted"}},
            {"status": {**OWNED, "topicId": None}},
            {"finalizer": True},
            {"status": {"ownership": "Creating", "intendedTopicId": topic_id_to_text(ID)}},
        ],
        ids=["created", "adopted", "without an id", "finalizer", "intent"],
    )
    def test_the_owner_wins_over_an_older_one(self, evidence: dict[str, Any]) -> None:
        assert self._wins(resource(**evidence), self._other(), topic())
        assert not self._wins(resource(), self._other(**evidence), topic())

    def test_the_matching_id_decides_between_two_records(self) -> None:
        other = {**OWNED, "topicId": topic_id_to_text(FOREIGN_ID)}
        assert self._wins(resource(status=OWNED), self._other(status=other), topic())

    @pytest.mark.parametrize(
        "elsewhere",
        [{"status": {"clusterId": "cluster-b"}}, {"clusterId": "cluster-b"}],
        ids=["by its status", "by its spec"],
    )
    def test_a_resource_of_another_cluster_neither_wins_nor_inherits(
        self, elsewhere: dict[str, Any]
    ) -> None:
        other = self._other(**elsewhere)
        assert self._wins(resource(), other)
        assert self._wins(resource(), other, topic())
        going = resource(deleted=True, finalizer=True, status=OWNED)
        plan = plan_topic(request(going, view(topic()), config={}, others=[other]))
        assert plan.commands == (DeleteTopic("orders", ID),)

    def test_a_resource_that_was_moved_to_this_cluster_claims_its_topic(self) -> None:
        moved = self._other(clusterId="cluster-a", status={**OWNED, "clusterId": "cluster-b"})
        assert not self._wins(resource(), moved)

    def test_an_observer_that_becomes_managed_does_not_take_the_topic(self) -> None:
        assert claim_of(resource(managementPolicy="Observe")) is None
        turned = resource(name="watcher", uid="u0", status={"observedGeneration": 1})
        owner = claim(resource(name="owner", uid="u9", status=OWNED, finalizer=True))
        plan = plan_topic(request(turned, view(topic()), config={}, others=[owner]))
        assert state(plan)["Stalled"] == "True/ResourceConflict"

    def test_what_was_released_keeps_nobody_from_the_topic(self) -> None:
        """A deleted resource that the finalizer of somebody else keeps in existence."""
        assert claim_of(resource(uid="u2", deleted=True, status=OWNED)) is None
        assert claim_of(resource(uid="u2", deleted=True, finalizer=True, status=OWNED)) is not None


class TestDeletionPolicy:
    """Without an explicit policy a resource deletes what it created, and nothing else."""

    def _status(self, ownership: str) -> dict[str, Any]:
        return {"ownership": ownership, "topicId": topic_id_to_text(ID), "clusterId": "cluster-a"}

    @pytest.mark.parametrize(
        ("ownership", "declared", "effective", "finalizer"),
        [
            ("Created", None, DeletionPolicy.DELETE, FinalizerAction.ADD),
            ("Adopted", None, DeletionPolicy.RETAIN, FinalizerAction.LEAVE),
            ("Adopted", "Delete", DeletionPolicy.DELETE, FinalizerAction.ADD),
            ("Adopted", "Protect", DeletionPolicy.PROTECT, FinalizerAction.ADD),
            ("Created", "Retain", DeletionPolicy.RETAIN, FinalizerAction.LEAVE),
        ],
    )
    def test_the_effective_policy_is_shown(
        self,
        ownership: str,
        declared: str | None,
        effective: DeletionPolicy,
        finalizer: FinalizerAction,
    ) -> None:
        subject = resource(status=self._status(ownership), deletionPolicy=declared)
        plan = plan_topic(request(subject, view(topic()), config={}))
        assert status_of(plan).deletion_policy is effective
        assert plan.finalizer is finalizer

    @pytest.mark.parametrize("declared", [None, "Delete", "Protect"])
    def test_an_internal_topic_is_retained_without_a_finalizer(self, declared: str | None) -> None:
        name = "__consumer_offsets"
        subject = resource(topicName=name, status=self._status("Created"), deletionPolicy=declared)
        plan = plan_topic(request(subject, view(topic(name=name)), config={}))
        assert plan.finalizer is FinalizerAction.LEAVE
        assert status_of(plan).deletion_policy is DeletionPolicy.RETAIN
        assert "never deleted" in said(plan).message
