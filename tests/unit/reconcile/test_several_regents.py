"""Resources while another Regent is the controller: of another Lease, or of the same one."""

from __future__ import annotations

import dataclasses

import pytest

from regent.model.active_regent import ActiveRegent, ServedResources
from regent.reconcile.drains import unreadable as unreadable_drains
from regent.reconcile.drains.planning import plan_drain
from regent.reconcile.other_regent import looks_after
from regent.reconcile.plan import FinalizerAction, Plan
from regent.reconcile.reassignments import unreadable as unreadable_reassignments
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.request import INACTIVE_GRACE_S, Absence
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.request import TopicRequest
from regent.reconcile.topics.unreadable import UnreadableRequest as UnreadableTopicRequest
from regent.reconcile.topics.unreadable import plan_unreadable as plan_unreadable_topic
from regent.resources.broker_drain import UnreadableDrain, parse_broker_drain
from regent.resources.conditions import ConditionType, find_condition
from regent.resources.kafka_topic import KafkaTopic, UnreadableTopic, parse_kafka_topic
from regent.resources.partition_reassignment import (
    UnreadableReassignment,
    parse_partition_reassignment,
)
from tests.support.present import present
from tests.unit.reconcile.drains.draining import Cluster, Drain
from tests.unit.reconcile.reassignments import reassigning
from tests.unit.reconcile.requests import (
    NOW,
    after,
    owned,
    request,
    resource,
    said,
    state,
    status_of,
    topic,
    view,
)

OWN = "web/regent"
OTHER = ActiveRegent(7, ServedResources("kafka/regent"))
ELSEWHERE = ActiveRegent(7, ServedResources("kafka/regent", ("bank", "mail")))
EARLIER = ActiveRegent(7)
LONG = 500.0


def absence(regent: ActiveRegent | None, *, for_s: float = LONG, why: str | None = None) -> Absence:
    """As an observer with the Lease OWN has it for a resource in namespace ``shop``."""
    return Absence(
        for_s=for_s,
        unknown_after_s=120.0,
        reason=why,
        regent=regent,
        lease=OWN,
        is_looked_after=looks_after(regent, {"metadata": {"namespace": "shop"}}, lease=OWN),
    )


def seen(of: KafkaTopic, regent: ActiveRegent | None, *, waited_s: float = LONG) -> TopicRequest:
    return request(of, view(active=False), waited_s=waited_s, absence=absence(regent))


def ready() -> KafkaTopic:
    """A resource that the controller calls Ready."""
    return resource(status=after(plan_topic(request(resource(), view(topic()), config={}))))


class TestWhoLooksAfterAResource:
    @pytest.mark.parametrize(
        ("regent", "expected"),
        [
            (None, False),
            (ActiveRegent(7, ServedResources(None)), False),
            (ActiveRegent(7, ServedResources(OWN)), False),
            (ActiveRegent(7, ServedResources("kafka/regent")), True),
            (ActiveRegent(7, ServedResources("kafka/regent", ("bank", "shop"))), True),
            (ActiveRegent(7, ServedResources("kafka/regent", ("bank",))), False),
            (ActiveRegent(7, ServedResources("kafka/regent", (), "east")), False),
            (ActiveRegent(7, ServedResources("kafka/regent", (), "east", is_default=True)), True),
            (ActiveRegent(7), True),
        ],
    )
    def test_one_that_names_no_cluster(self, regent: ActiveRegent | None, expected: bool) -> None:
        body = {"metadata": {"namespace": "shop"}, "spec": {}}
        assert looks_after(regent, body, lease=OWN) is expected

    def test_a_client_leaves_nothing_to_one_that_does_not_say(self) -> None:
        body = {"metadata": {"namespace": "shop"}, "spec": {}}
        assert not looks_after(EARLIER, body, lease=OWN, can_serve=True)
        assert looks_after(OTHER, body, lease=OWN, can_serve=True)

    @pytest.mark.parametrize(("cluster", "expected"), [("east", True), ("west", False)])
    def test_one_that_names_a_cluster(self, cluster: str, expected: bool) -> None:
        body = {"metadata": {"namespace": "shop"}, "spec": {"clusterRef": {"name": cluster}}}
        regent = ActiveRegent(7, ServedResources("kafka/regent", (), "east"))
        assert looks_after(regent, body, lease=OWN) is expected


class TestTheControllerServesIt:
    @pytest.mark.parametrize("regent", [OTHER, EARLIER])
    def test_what_it_has_answered_stays_for_however_long(self, regent: ActiveRegent) -> None:
        assert plan_topic(seen(ready(), regent)) == Plan()

    def test_an_answer_that_cannot_be_read_here_is_one(self) -> None:
        later = resource(status={"observedGeneration": 1, "conditions": "in another form"})
        assert plan_topic(seen(later, OTHER)) == Plan()

    def test_what_it_has_not_answered_waits_for_it(self) -> None:
        waiting = seen(resource(), OTHER, waited_s=INACTIVE_GRACE_S + 1)
        assert plan_topic(waiting) == Plan(requeue_after_s=120.0 - INACTIVE_GRACE_S - 1)

    def test_then_the_status_says_who_is_to_answer(self) -> None:
        plan = plan_topic(seen(resource(), OTHER, waited_s=120.0))
        assert state(plan)["Ready"] == "Unknown/NotAnswered"
        assert plan.finalizer is FinalizerAction.LEAVE
        message = said(plan).message
        assert "Regent replica 7 with the Lease kafka/regent is the controller" in message
        assert "has not answered it for 120 s" in message
        assert "/readyz" in message

    def test_what_observers_have_said_is_no_answer(self) -> None:
        unknown = plan_topic(seen(ready(), None))
        assert state(unknown)["Ready"] == "Unknown/ControllerInactive"
        subject = resource(status=after(unknown))
        assert state(plan_topic(seen(subject, OTHER)))["Ready"] == "Unknown/NotAnswered"

    @pytest.mark.parametrize("policy", ["Delete", "Retain"])
    @pytest.mark.parametrize("regent", [OTHER, EARLIER])
    def test_it_alone_lets_resources_go(self, regent: ActiveRegent, policy: str) -> None:
        deleted = owned(deleted=True, generation=2, deletionPolicy=policy)
        plan = plan_topic(seen(deleted, regent))
        assert plan.finalizer is FinalizerAction.LEAVE
        assert state(plan)["Ready"] == "Unknown/NotAnswered"


class TestTheControllerDoesNotServeIt:
    @pytest.mark.parametrize(
        ("regent", "words"),
        [
            (ELSEWHERE, ["with the Lease kafka/regent", "only namespaces bank, mail", OWN]),
            (ActiveRegent(7, ServedResources("kafka/regent", (), "east")), ["names east"]),
            (ActiveRegent(7, ServedResources(None)), ["without_kubernetes"]),
            (ActiveRegent(7, ServedResources(OWN)), [f"does not keep the Lease {OWN}"]),
        ],
    )
    def test_the_status_says_whom_it_serves_instead(
        self, regent: ActiveRegent, words: list[str]
    ) -> None:
        plan = plan_topic(seen(ready(), regent))
        assert state(plan)["Ready"] == "Unknown/ControllerInactive"
        message = said(plan).message
        assert [word for word in ("Regent replica 7", *words) if word not in message] == []

    @pytest.mark.parametrize("policy", ["Delete", "Retain"])
    def test_a_change_of_controllers_lets_nothing_go(self, policy: str) -> None:
        deleted = owned(deleted=True, generation=2, deletionPolicy=policy)
        between = dataclasses.replace(seen(deleted, None), absence=absence(None, for_s=10.0))
        assert plan_topic(between) == Plan(requeue_after_s=INACTIVE_GRACE_S - 10.0)

    @pytest.mark.parametrize("regent", [ELSEWHERE, ActiveRegent(7, ServedResources(OWN)), None])
    def test_what_policy_releases_goes(self, regent: ActiveRegent | None) -> None:
        deleted = owned(deleted=True, generation=2, deletionPolicy="Retain")
        assert plan_topic(seen(deleted, regent)).finalizer is FinalizerAction.REMOVE


class TestOtherKinds:
    """With and without a controller here: in client mode the view is complete."""

    def test_a_reassignment_that_is_answered_is_left_alone(self) -> None:
        seen = view(topic())
        new = reassigning.resource(assignments=reassigning.assign((1, 2), (2, 3)))
        answered = reassigning.begun(new, seen)
        for cluster in (view(active=False), seen):
            plan = plan_reassignment(reassigning.request(answered, cluster, absence=absence(OTHER)))
            assert plan == Plan()

    def test_a_reassignment_without_an_answer_says_so(self) -> None:
        new = reassigning.resource(assignments=reassigning.assign((1, 2)))
        asked = reassigning.request(new, view(active=False), absence=absence(OTHER))
        asked = dataclasses.replace(asked, seen_at=asked.monotonic_s - LONG)
        plan = plan_reassignment(asked)
        assert state(plan)["Ready"] == "Unknown/NotAnswered"
        assert plan.commands == ()

    def test_a_drain_that_is_answered_is_left_alone(self) -> None:
        drain = Drain(Cluster({"t": [(1, 2)] * 3}), 1)
        drain.settle()
        drain.absence = absence(OTHER)
        assert plan_drain(drain.request()) == Plan()

    def test_a_drain_without_an_answer_says_so(self) -> None:
        drain = Drain(Cluster({"t": [(1, 2)] * 3}), 1)
        drain.absence = absence(OTHER)
        asked = dataclasses.replace(drain.request(), seen_at=-LONG)
        plan = plan_drain(asked)
        ready = present(find_condition(status_of(plan).conditions, ConditionType.READY))
        assert (ready.status, ready.reason) == ("Unknown", "NotAnswered")
        assert plan.commands == ()

    def test_what_only_the_other_one_can_read_is_left_alone(self) -> None:
        body = {"metadata": {"name": "r", "namespace": "shop"}, "spec": {"brokers": "all"}}
        drain = parse_broker_drain(body)
        assert isinstance(drain, UnreadableDrain)
        left_drain = unreadable_drains.UnreadableRequest(drain, NOW, is_looked_after=True)
        assert unreadable_drains.plan_unreadable(left_drain) == Plan()
        move = parse_partition_reassignment(body)
        assert isinstance(move, UnreadableReassignment)
        left_move = unreadable_reassignments.UnreadableRequest(move, NOW, is_looked_after=True)
        assert unreadable_reassignments.plan_unreadable(left_move) == Plan()
        unread = parse_kafka_topic({**body, "spec": {"partitions": "all"}})
        assert isinstance(unread, UnreadableTopic)
        left_topic = UnreadableTopicRequest(unread, NOW, is_looked_after=True)
        assert plan_unreadable_topic(left_topic) == Plan()
