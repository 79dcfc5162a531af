"""To whom a topic belongs: conflicts, adoption, management policies."""

from __future__ import annotations

import dataclasses

import pytest

from regent.admin.commands import AlterTopicConfig
from regent.reconcile.plan import FinalizerAction
from regent.reconcile.topics.planning import plan_topic
from regent.resources.kafka_topic_status import Ownership
from tests.unit.reconcile.requests import (
    OWNED,
    claim,
    owned,
    request,
    resource,
    said,
    state,
    status_of,
    topic,
    view,
)


class TestConflict:
    def test_who_may_be_gone_is_not_said_to_have_to_be_deleted(self) -> None:
        """Its namespace cannot be read any more."""
        other = claim(resource(name="elder", uid="u0"), created="2026-05-01T09:00:00Z")
        loser = request(resource(), view(topic()), config={}, others=[other])
        assert "delete one of the two" in said(plan_topic(loser)).message
        loser = dataclasses.replace(loser, unreadable_namespaces={other.namespace})
        message = said(plan_topic(loser)).message
        assert "delete one of the two" not in message
        assert "take it off the list of namespaces and restart Regent" in message

    def test_the_loser_lets_go_of_everything(self) -> None:
        other = claim(resource(name="owner", uid="u0", status=OWNED))
        plan = plan_topic(request(owned(), view(topic()), config={}, others=[other]))
        assert plan.finalizer is FinalizerAction.REMOVE
        assert status_of(plan).ownership is None

    @pytest.mark.parametrize(("uid", "wins"), [("u0", False), ("u2", True)])
    def test_the_uid_decides_a_tie(self, uid: str, wins: bool) -> None:
        other = claim(resource(name="twin", uid=uid))
        plan = plan_topic(request(resource(), view(topic()), config={}, others=[other]))
        assert (state(plan)["Ready"] == "True/AsDeclared") is wins

    def test_an_observer_never_loses(self) -> None:
        other = claim(resource(name="elder", uid="u0"))
        subject = resource(managementPolicy="Observe")
        plan = plan_topic(request(subject, view(topic()), config={}, claims=[other]))
        assert state(plan)["Ready"] == "True/Observed"


class TestAdoption:
    def test_an_existing_topic_is_taken_over(self) -> None:
        plan = plan_topic(request(resource(config={"flush.ms": 1}), view(topic()), config={}))
        assert plan.commands == (AlterTopicConfig("orders", {"flush.ms": "1"}),)
        assert [event.reason for event in plan.events] == ["TopicAdopted"]
        assert status_of(plan).ownership is Ownership.ADOPTED

    def test_a_preview_shows_the_difference(self) -> None:
        subject = resource(adoptionPolicy="Preview", partitions=3, config={"flush.ms": 1})
        plan = plan_topic(request(subject, view(topic()), config={"retention.ms": "9"}))
        assert (plan.commands, plan.finalizer) == ((), FinalizerAction.LEAVE)
        assert state(plan)["Stalled"] == "True/AdoptionPreview"
        assert said(plan).message.endswith(
            "partitions is 2 instead of 3; config[flush.ms] is unset instead of 1"
        )


class TestManagement:
    @pytest.mark.parametrize("policy", ["Paused", "Observe"])
    def test_differences_are_shown_and_nothing_is_written(self, policy: str) -> None:
        subject = resource(managementPolicy=policy, partitions=3)
        plan = plan_topic(request(subject, view(topic()), config={}))
        assert plan.commands == ()
        assert plan.finalizer is FinalizerAction.LEAVE
        assert said(plan).status.value == "True"
        assert state(plan)["Synced"] == "False/Drifted"
        assert len(status_of(plan).drift) == 1
