"""KafkaTopics that declare another replication factor than their topic has."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from regent.admin.commands import AlterTopicConfig, CreatePartitions, ReassignTopic
from regent.controller.view import ClusterView, TopicView
from regent.model.cluster import Broker
from regent.model.topic_config import BrokerFacts
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.transitions import transition_events
from regent.resources.conditions import ConditionType
from tests.unit.reconcile.requests import (
    ID,
    READY,
    owned,
    partition,
    request,
    said,
    state,
    status_of,
    topic,
    view,
)

MORE = ReassignTopic("orders", {0: (1, 2, 3), 1: (2, 1, 3)}, ID)

DONE = topic((1, 2, 3), (2, 1, 3))


def seen(
    *topics: TopicView, min_isr: str | None = "1", racks: Mapping[int, str | None] | None = None
) -> ClusterView:
    """Three brokers that have said what they have by default."""
    settings = None if min_isr is None else {"min.insync.replicas": min_isr}
    facts = BrokerFacts(broker_id=1, settings=settings, has_answered=True)
    known = dict.fromkeys((1, 2, 3)) if racks is None else racks
    brokers = {i: Broker(i, i, (), rack=rack) for i, rack in known.items()}
    return msgspec.structs.replace(view(*topics), broker_facts=(facts,), brokers=brokers)


class TestMore:
    def test_it_is_started_and_shown(self) -> None:
        plan = plan_topic(request(owned(replicas=3), seen(topic()), config={}))
        assert plan.commands == (MORE,)
        assert state(plan)["Reconciling"] == "True/ReplicasChanging"
        assert state(plan)["Synced"] == "False/Drifted"
        assert said(plan, ConditionType.SYNCED).message == "replicas is 2 instead of 3"
        assert said(plan).message == "0 of 2 partitions have 3 replicas"

    def test_it_is_followed_until_all_are_in_sync(self) -> None:
        moving = TopicView(
            "orders",
            ID,
            (partition(0, (1, 2, 3)), partition(1, (2, 1, 3), (2, 1), adding=(3,))),
        )
        plan = plan_topic(request(owned(replicas=3), seen(moving), config={}))
        assert plan.commands == ()
        assert state(plan)["Ready"] == "False/ReplicasChanging"
        assert state(plan)["Stalled"] == "False/NotStalled"
        assert said(plan).message == (
            "1 of 2 partitions have 3 replicas, 1 are getting there; brokers [3] are not in sync "
            "with all of them yet"
        )
        gone = msgspec.structs.replace(seen(moving), brokers={i: Broker(i, i, ()) for i in (1, 2)})
        plan = plan_topic(request(owned(replicas=3), gone, config={}))
        assert said(plan).message.endswith("of these [3] are not alive, and are waited for")

    def test_so_it_is_where_the_last_replica_arrives_and_leaders_have_not_answered(self) -> None:
        subject = owned(replicas=3)
        last = partition(1, (2, 1, 3), (2, 1), adding=(3,))
        moving = TopicView("orders", ID, (partition(0, (1, 2, 3)), last))
        silent = msgspec.structs.replace(
            DONE,
            partitions=tuple(
                msgspec.structs.replace(p, uninformed=(p.leader,)) for p in DONE.partitions
            ),
        )
        plans = [
            plan_topic(request(subject, seen(each), config={})) for each in (moving, silent, DONE)
        ]
        assert state(plans[-1]) == READY
        begun, waiting, ended = map(status_of, plans)
        reasons = [event.reason for event in transition_events(begun, waiting)]
        assert "ReplicasChanged" in reasons
        assert "ReplicasChanged" not in [e.reason for e in transition_events(waiting, ended)]

    def test_a_declaration_taken_back_is_no_change(self) -> None:
        asked = plan_topic(request(owned(replicas=5), seen(topic()), config={}))
        back = plan_topic(request(owned(replicas=2), seen(topic()), config={}))
        assert transition_events(status_of(asked), status_of(back)) == ()

    def test_new_partitions_come_first(self) -> None:
        subject = owned(replicas=3, partitions=3, config={"retention.ms": 1})
        plan = plan_topic(request(subject, seen(topic()), config={}))
        assert plan.commands == (
            CreatePartitions("orders", 3),
            AlterTopicConfig("orders", {"retention.ms": "1"}),
        )
        assert state(plan)["Reconciling"] == "True/Changing"

    def test_partitions_that_differ_become_equal(self) -> None:
        plan = plan_topic(request(owned(), seen(topic((1, 2), (1, 2, 3), (3,))), config={}))
        assert plan.commands == (ReassignTopic("orders", {1: (1, 2), 2: (3, 1)}, ID),)


class TestReassignmentsOfOthers:
    def test_one_that_leads_elsewhere_goes_first(self) -> None:
        moving = TopicView(
            "orders", ID, (partition(0, (1, 2, 3), (1, 2), adding=(3,)), partition(1, (2, 1)))
        )
        plan = plan_topic(request(owned(), seen(moving), config={}))
        assert plan.commands == ()
        assert state(plan)["Synced"] == "False/Drifted"


class TestRefusals:
    @pytest.mark.parametrize(
        ("config", "default", "whose"),
        [({"min.insync.replicas": "2"}, "1", "the topic's"), ({}, "2", "the brokers' default")],
    )
    def test_not_below_min_insync_replicas(
        self, config: dict[str, str], default: str, whose: str
    ) -> None:
        plan = plan_topic(request(owned(replicas=1), seen(topic(), min_isr=default), config=config))
        assert plan.commands == ()
        assert state(plan)["Stalled"] == "True/ReplicasMismatch"
        assert f"{whose} min.insync.replicas is 2" in said(plan).message

    def test_the_topics_own_value_counts_before_the_default(self) -> None:
        config = {"min.insync.replicas": "1"}
        plan = plan_topic(request(owned(replicas=1), seen(topic(), min_isr="2"), config=config))
        assert plan.commands == (ReassignTopic("orders", {0: (1,), 1: (2,)}, ID),)

    def test_nothing_is_removed_before_the_default_is_known(self) -> None:
        plan = plan_topic(request(owned(replicas=1), seen(topic(), min_isr=None), config={}))
        assert plan.commands == ()
        assert state(plan)["Reconciling"] == "True/BrokerDefaultsUnknown"
        plan = plan_topic(request(owned(replicas=3), seen(topic(), min_isr=None), config={}))
        assert plan.commands == (MORE,)

    @pytest.mark.parametrize("field", ["shutting_down", "cordoned"])
    def test_a_broker_that_goes_gets_no_replica(self, field: str) -> None:
        """It shuts down, or is being drained."""
        going = msgspec.structs.replace(seen(topic()), **{field: (3,)})
        plan = plan_topic(request(owned(replicas=3), going, config={}))
        assert plan.commands == ()
        assert state(plan)["Reconciling"] == "True/NotEnoughBrokers"
        assert "[3] get none: they shut down, or a BrokerDrain" in said(plan).message

    def test_racks_of_some_brokers_only(self) -> None:
        racks = {1: "a", 2: "b", 3: None}
        plan = plan_topic(request(owned(replicas=3), seen(topic(), racks=racks), config={}))
        assert plan.commands == ()
        assert state(plan)["Stalled"] == "True/ReplicasMismatch"
        assert "brokers [3] have no rack" in said(plan).message
        fewer = plan_topic(request(owned(replicas=1), seen(topic(), racks=racks), config={}))
        assert fewer.commands, "removing replicas needs no racks"

    def test_a_broker_whose_rack_is_not_known_is_waited_for(self) -> None:
        racks: dict[int, str | None] = {1: "a", 3: "b"}
        plan = plan_topic(request(owned(replicas=3), seen(topic(), racks=racks), config={}))
        assert plan.commands == ()
        assert state(plan)["Reconciling"] == "True/BrokersUnavailable"
        assert "brokers [2] have replicas and are not alive" in said(plan).message
