"""KafkaTopics that ask for what is impossible, or for what no change of a topic can give."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from regent.admin.commands import AlterTopicConfig, CreatePartitions, CreateTopic, Reason, Rejected
from regent.controller.view import ClusterView, TopicView
from regent.model.topic_config import BrokerFacts
from regent.reconcile.plan import FinalizerAction
from regent.reconcile.topics.planning import plan_topic
from regent.resources.conditions import ConditionType
from tests.unit.reconcile.requests import (
    FIRST_ID,
    ID,
    READY,
    attempt,
    owned,
    partition,
    request,
    resource,
    said,
    state,
    status_of,
    topic,
    view,
)


class TestLimits:
    def test_a_reassignment_under_way_counts_as_its_target(self) -> None:
        moving = TopicView(
            "orders",
            ID,
            (
                partition(0, (3, 2, 1), (1, 2), adding=(3,), removing=(1,)),
                partition(1, (2, 1)),
            ),
        )
        plan = plan_topic(request(owned(), view(moving), config={}))
        assert state(plan)["Stalled"] == "False/NotStalled"
        assert state(plan)["Synced"] == "True/AsDeclared"

    def test_topic_is_ready_when_only_the_order_of_replicas_differs(self) -> None:
        """A BrokerDrain of the mode Leadership has moved the preferred leader."""
        subject = owned(replicaAssignment=[[1, 2], [1, 2]])
        plan = plan_topic(request(subject, view(topic()), config={}))
        assert state(plan) == READY
        assert status_of(plan).drift == ()
        assert plan.commands == ()
        for condition in (ConditionType.READY, ConditionType.SYNCED):
            message = said(plan, condition).message
            assert "1 of 2 partitions have another order of replicas than declared" in message
            assert "partition 1 with [2, 1] instead of [1, 2]" in message

    def test_a_number_that_is_missing_among_the_partitions_is_named(self) -> None:
        """As after an edit of the topic's node. Clients would send to partition 1."""
        holed = TopicView("orders", ID, (partition(0, (1, 2)), partition(7, (2, 1))))
        for subject in (owned(), owned(partitions=9), owned(replicaAssignment=[[1, 2], [3, 1]])):
            plan = plan_topic(request(subject, view(holed), config={}))
            assert plan.commands == ()
            assert state(plan)["Stalled"] == "True/InvalidPartitions"
            assert "up to number 7 in ZooKeeper, but no partition 1" in said(plan).message
        far = TopicView("orders", ID, (partition(2**31 - 1, (1, 2)),))
        plan = plan_topic(request(owned(), view(far), config={}))
        assert "but no partition 0" in said(plan).message

    @pytest.mark.parametrize("policy", ["Managed", "Paused", "Observe"])
    def test_other_numbers_than_declared_are_a_difference(self, policy: str) -> None:
        holed = TopicView("orders", ID, (partition(0, (1, 2)), partition(7, (2, 1))))
        plan = plan_topic(request(owned(managementPolicy=policy), view(holed), config={}))
        assert state(plan)["Synced"] == "False/Drifted"
        (entry,) = status_of(plan).drift
        assert (entry.field, entry.desired, entry.actual) == ("partitions", "2", "2 up to number 7")

    def test_places_are_compared_by_the_numbers_of_partitions(self) -> None:
        holed = TopicView("orders", ID, (partition(0, (1, 2)), partition(2, (2, 1))))
        subject = owned(partitions=3, replicaAssignment=[[1, 2], [2, 1], [3, 2]])
        plan = plan_topic(request(subject, view(holed), config={}))
        assert "partition 2 on [2, 1] instead of [3, 2]" in said(plan).message
        drifted = [entry.field for entry in status_of(plan).drift]
        assert drifted == ["partitions", "replicaAssignment[2]"]

    def test_a_refusal_comes_before_a_limit(self) -> None:
        subject = owned(partitions=1, config={"retention.ms": 1})
        refused = attempt(
            AlterTopicConfig("orders", {"retention.ms": "1"}),
            Rejected(Reason.INVALID_CONFIG, "no", 'config["retention.ms"]'),
        )
        plan = plan_topic(request(subject, view(topic()), config={}, attempts=[refused]))
        assert said(plan).reason == "InvalidConfig"
        assert said(plan).message.startswith("spec.config[retention.ms]: no; spec.partitions: ")


def with_defaults(
    *topics: TopicView, partitions: int = 6, replicas: int = 3, brokers: int = 3
) -> ClusterView:
    """A cluster whose brokers have said what topics have by default."""
    settings = {
        "num.partitions": str(partitions),
        "default.replication.factor": str(replicas),
    }
    facts = BrokerFacts(broker_id=1, settings=settings, has_answered=True)
    return msgspec.structs.replace(view(*topics, brokers=brokers), broker_facts=(facts,))


class TestWhatIsLeftOut:
    """Partitions and replicas that the resource does not declare are the cluster's."""

    def test_a_new_topic_gets_the_brokers_defaults(self) -> None:
        plan = plan_topic(request(resource(partitions=None, replicas=None), with_defaults()))
        assert plan.commands == (CreateTopic("orders", 6, replication_factor=3, topic_id=FIRST_ID),)
        assert (status_of(plan).partition_summary, status_of(plan).replica_summary) == ("0", "0")

    def test_the_defaults_are_waited_for(self) -> None:
        plan = plan_topic(request(resource(replicas=None)))
        assert plan.commands == ()
        assert state(plan)["Reconciling"] == "True/BrokerDefaultsUnknown"
        assert said(plan).message.startswith("spec.replicas: no broker has said yet")

    @pytest.mark.parametrize("replicas", [((1, 2),), ((1,), (2, 3)), ((1, 2), (2, 3), (3, 1))])
    def test_an_existing_topic_is_right_as_it_is(self, replicas: tuple[tuple[int, ...]]) -> None:
        subject = owned(partitions=None, replicas=None)
        plan = plan_topic(request(subject, with_defaults(topic(*replicas)), config={}))
        assert plan.commands == ()
        assert state(plan) == READY
        assert status_of(plan).partition_summary == str(len(replicas))

    def test_the_replicas_are_to_be_enough_for_writing(self) -> None:
        declared = resource(replicas=None, config={"min.insync.replicas": 3})
        new = plan_topic(request(declared, with_defaults(replicas=2)))
        assert state(new)["Stalled"] == "True/InvalidConfig"
        existing = plan_topic(request(declared, with_defaults(topic()), config={}))
        assert state(existing)["Stalled"] == "True/InvalidConfig"
        assert "there are only 2 replicas" in said(existing).message

    def test_an_assignment_says_how_many_partitions_there_are(self) -> None:
        subject = resource(partitions=None, replicaAssignment=[[1, 2], [2, 3]])
        plan = plan_topic(request(subject))
        assignment = {0: (1, 2), 1: (2, 3)}
        assert plan.commands == (
            CreateTopic("orders", 2, assignment=assignment, topic_id=FIRST_ID),
        )
        grown = owned(partitions=None, replicaAssignment=[[1, 2], [2, 1], [3, 1]])
        plan = plan_topic(request(grown, view(topic()), config={}))
        assert plan.commands == (CreatePartitions("orders", 3, {2: (3, 1)}),)


class TestSpec:
    @pytest.mark.parametrize(
        ("changes", "reason", "field"),
        [
            ({"name": "x" * 250}, "InvalidTopicName", "metadata.name"),
            (
                {"partitions": 1, "replicaAssignment": [[1]], "replicas": 1},
                "InvalidReplicationFactor",
                "spec.replicas",
            ),
            ({"replicaAssignment": [[1]]}, "InvalidReplicaAssignment", "spec.replicaAssignment"),
            (
                {"replicaAssignment": [[1], [1, 2]]},
                "InvalidReplicaAssignment",
                "spec.replicaAssignment",
            ),
            (
                {"replicaAssignment": [[1, 1], [1, 2]]},
                "InvalidReplicaAssignment",
                "spec.replicaAssignment",
            ),
            ({"config": {"nonsense": 1}}, "InvalidConfig", "spec.config[nonsense]"),
            (
                {"config": {"min.insync.replicas": "two"}},
                "InvalidConfig",
                "spec.config[min.insync.replicas]",
            ),
            (
                {"config": {"min.insync.replicas": 3}},
                "InvalidConfig",
                "spec.config[min.insync.replicas]",
            ),
            (
                {"config": {"min.compaction.lag.ms": 9, "max.compaction.lag.ms": 8}},
                "InvalidConfig",
                "spec.config[min.compaction.lag.ms]",
            ),
        ],
    )
    def test_what_is_impossible_is_refused_and_nothing_is_sent(
        self, changes: dict[str, Any], reason: str, field: str
    ) -> None:
        plan = plan_topic(request(resource(**changes)))
        assert (plan.commands, plan.finalizer) == ((), FinalizerAction.LEAVE)
        assert state(plan)["Stalled"] == f"True/{reason}"
        assert said(plan).message.startswith(f"{field}: ")

    def test_what_a_live_broker_could_not_load_is_refused(self) -> None:
        old = BrokerFacts(broker_id=2, versions=((1, 1),), has_answered=True)
        seen = msgspec.structs.replace(view(), broker_facts=(old, BrokerFacts(broker_id=1)))
        plan = plan_topic(request(resource(config={"compression.type": "zstd"}), seen))
        assert state(plan)["Stalled"] == "True/InvalidConfig"
        assert "broker 2 runs Kafka 1.1" in said(plan).message
        assert plan.commands == ()

    def test_a_broker_that_has_not_answered_yet_says_nothing_about_what_is_there(self) -> None:
        config = {"compression.type": "zstd"}
        seen = msgspec.structs.replace(view(topic()), broker_facts=(BrokerFacts(broker_id=1),))
        plan = plan_topic(request(owned(config=config), seen, config=config))
        assert said(plan).reason == "AsDeclared"

    def test_what_somebody_else_has_configured_badly_is_told_and_does_not_block(self) -> None:
        facts = BrokerFacts(broker_id=1, versions=((3, 9),), settings={}, has_answered=True)
        seen = msgspec.structs.replace(view(topic()), broker_facts=(facts,))
        plan = plan_topic(request(owned(), seen, config={"retention.ms": "soon"}))
        assert said(plan).reason == "AsDeclared"
        assert "'retention.ms' cannot be 'soon'" in said(plan).message

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            # of another distribution of Kafka; of a later version
            ("confluent.placement.constraints", '{"version":1,"replicas":[]}'),
            ("remote.storage.enable", "false"),
        ],
    )
    def test_foreign_key_is_not_called_unloadable_when_brokers_ignore_it(
        self, key: str, value: str
    ) -> None:
        facts = BrokerFacts(broker_id=1, versions=((2, 8),), settings={}, has_answered=True)
        seen = msgspec.structs.replace(view(topic()), broker_facts=(facts,))
        plan = plan_topic(request(owned(), seen, config={key: value}))
        assert state(plan) == READY
        assert said(plan).message == "the topic is as declared"
