"""Random histories: foreign tools, crashes between any two steps, a resource that must not adopt.

Whatever happens, it never changes or deletes a topic that it did not create, and never creates one
in the place of a topic that somebody else deleted.
"""

from __future__ import annotations

import dataclasses
import itertools
import uuid
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from regent.admin.commands import (
    Accepted,
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    Outcome,
    Reason,
    Rejected,
    ResourceCommand,
)
from regent.reconcile.plan import FinalizerAction
from regent.reconcile.request import Attempt
from regent.reconcile.topics.claims import claim_of
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.request import TopicRequest
from tests.support.present import present
from tests.unit.reconcile.requests import MONOTONIC_S, NOW, resource, topic, view

STEPS = st.lists(
    st.sampled_from(
        (
            "look",
            "look and crash before the command",
            "look and crash after the command",
            "time passes",
            "foreign creation",
            "foreign deletion",
            "resource deleted",
        )
    ),
    max_size=12,
)


@dataclasses.dataclass
class Topic:
    """The topic of the cluster. ``is_own``: the resource's own command created it."""

    topic_id: uuid.UUID | None
    is_own: bool


class History:
    """A cluster, a stored resource, and a process that forgets everything when it crashes."""

    def __init__(self, *, has_ids: bool, policy: str = "Refuse") -> None:
        self.has_ids = has_ids
        self.policy = policy
        self.topic: Topic | None = None
        self.status: dict[str, Any] = {}
        self.finalizer = False
        self.is_deleted = False
        self.is_gone = False
        self.lost = False
        self._now_s = MONOTONIC_S
        self._numbers = itertools.count(1)
        self._forget()

    def step(self, name: str) -> None:
        match name:
            case "look":
                self.look()
            case "look and crash before the command":
                self.look(crash="before")
            case "look and crash after the command":
                self.look(crash="after")
            case "time passes":
                self._now_s += 60
            case "foreign creation":
                self._create_by_a_tool()
            case "foreign deletion" if self.topic is not None:
                self._delete_by_a_tool(self.topic)
            case "resource deleted":
                self.is_deleted = True

    def _create_by_a_tool(self) -> None:
        if not self.has_ids:
            self.look()  # else nobody could tell it from the topic that it follows
        if self.topic is None:
            self.topic = Topic(self._new_id(), is_own=False)

    def _delete_by_a_tool(self, deleted: Topic) -> None:
        was_seen = self.status.get("ownership") == "Created"
        if deleted.is_own and not was_seen and not self.has_ids:
            return  # without ids nobody could tell it from a topic that takes its place
        self.topic = None
        self.lost = self.lost or (deleted.is_own and was_seen)

    def look(self, crash: str = "") -> None:
        """As the reconciler does: store, send and think again, until nothing is left to send."""
        for _ in range(6):
            if self.is_gone:
                return None
            plan = plan_topic(self._request())
            if plan.finalizer is FinalizerAction.ADD:
                self.finalizer = True
                continue
            if plan.status_first:
                self._store(plan)
                if crash == "before":
                    return self._forget()
                continue
            if not plan.commands:
                return self._finish(plan)
            for command in plan.commands:
                self._note(command, self._carry_out(command))
            is_change = any(not isinstance(c, DescribeTopicConfigs) for c in plan.commands)
            if crash == "after" and is_change:
                return self._forget()
        return None

    def _finish(self, plan: TopicPlan) -> None:
        self._store(plan)
        if plan.finalizer is FinalizerAction.REMOVE:
            self.finalizer = False
        self.is_gone = self.is_deleted and not self.finalizer

    def _store(self, plan: TopicPlan) -> None:
        if plan.status is not None:
            self.status = plan.status.to_api()

    def _forget(self) -> None:
        self._attempts: list[Attempt] = []
        self._created: CreateTopic | None = None
        self._config: dict[str, str] | None = None
        self._spare = uuid.uuid5(uuid.NAMESPACE_DNS, f"spare {next(self._numbers)}")

    def _new_id(self) -> uuid.UUID | None:
        number = next(self._numbers)
        return uuid.uuid5(uuid.NAMESPACE_DNS, f"foreign {number}") if self.has_ids else None

    def _request(self) -> TopicRequest:
        subject = resource(
            adoptionPolicy=self.policy,
            deletionPolicy="Delete",
            config={"retention.ms": 1},
            status=self.status,
            finalizer=self.finalizer,
            deleted=self.is_deleted,
        )
        if self.status.get("ownership") not in (None, "Creating"):
            self._created = None
        self._attempts = [a for a in self._attempts if a.retry_at > self._now_s]
        own = claim_of(subject)
        topics = () if self.topic is None else (topic(topic_id=self.topic.topic_id),)
        return TopicRequest(
            resource=subject,
            view=view(*topics),
            config=self._config if self.topic is not None else None,
            claims=() if own is None else (own,),
            spare_topic_id=self._spare,
            seen_at=MONOTONIC_S,
            monotonic_s=self._now_s,
            now=NOW,
            attempts=tuple(self._attempts),
            created=self._created,
        )

    def _carry_out(self, command: ResourceCommand) -> Outcome:
        match command:
            case DescribeTopicConfigs():
                self._config = {}
            case CreateTopic():
                assert not self.lost, "a topic is created in the place of a lost one"
                if self.topic is not None:
                    return Rejected(Reason.TOPIC_ALREADY_EXISTS, "exists", "topic")
                self.topic = Topic(command.topic_id if self.has_ids else None, is_own=True)
                self._config = dict(command.config)
            case AlterTopicConfig() | CreatePartitions() | DeleteTopic():
                assert self.topic is not None
                assert self.topic.is_own, f"a foreign topic is changed: {command}"
                if isinstance(command, DeleteTopic):
                    self.topic = None
        return Accepted()

    def _note(self, command: ResourceCommand, outcome: Outcome) -> None:
        if isinstance(command, DescribeTopicConfigs):
            return
        if isinstance(command, CreateTopic) and isinstance(outcome, Accepted):
            self._created = command
            self._spare = uuid.uuid5(uuid.NAMESPACE_DNS, f"spare {next(self._numbers)}")
        self._attempts.append(Attempt(command, outcome, 1, 5, {}, retry_at=self._now_s + 10))


@settings(max_examples=300, deadline=None)
@given(steps=STEPS, has_ids=st.booleans())
def test_what_is_foreign_stays_untouched_and_what_is_lost_stays_lost(
    steps: list[str], has_ids: bool
) -> None:
    history = History(has_ids=has_ids)
    for step in steps:
        history.step(step)


@settings(max_examples=200, deadline=None)
@given(
    crashes=st.lists(
        st.sampled_from(
            ("look and crash before the command", "look and crash after the command", "look")
        ),
        max_size=6,
    ),
    policy=st.sampled_from(("Refuse", "Adopt")),
)
def test_where_topics_have_ids_no_crash_costs_the_ownership(
    crashes: list[str], policy: str
) -> None:
    history = History(has_ids=True, policy=policy)
    for step in crashes:
        history.step(step)
    history.step("time passes")
    history.look()
    assert present(history.topic).is_own
    assert history.status["ownership"] == "Created"
