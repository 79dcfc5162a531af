"""Living KafkaTopics: what is planned for what is known."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from regent.admin.commands import (
    Accepted,
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DescribeTopicConfigs,
    Reason,
    Rejected,
)
from regent.controller.view import TopicView
from regent.model.topic import topic_id_to_text
from regent.reconcile.plan import FinalizerAction, Plan
from regent.reconcile.request import Absence
from regent.reconcile.topics.planning import plan_topic
from regent.resources.conditions import ConditionType
from regent.resources.kafka_topic_status import Ownership
from regent.zk_data.throttles import FOLLOWER_REPLICAS, LEADER_REPLICAS
from tests.unit.reconcile.requests import (
    FIRST_ID,
    ID,
    READY,
    after,
    attempt,
    owned,
    request,
    resource,
    said,
    state,
    status_of,
    topic,
    view,
)


class TestCreation:
    def test_it_is_created_as_declared(self) -> None:
        plan = plan_topic(request(resource(config={"retention.ms": 5, "preallocate": None})))
        assert plan.commands == (
            CreateTopic(
                "orders",
                2,
                replication_factor=2,
                config={"retention.ms": "5"},
                topic_id=FIRST_ID,
            ),
        )
        assert plan.finalizer is FinalizerAction.ADD
        assert not plan.status_first
        assert state(plan) == {
            "Ready": "False/Creating",
            "Reconciling": "True/Creating",
            "Stalled": "False/NotStalled",
            "Synced": "False/TopicNotFound",
            "Healthy": "Unknown/Unknown",
        }
        assert status_of(plan).observed_generation == 1
        assert status_of(plan).ownership is Ownership.CREATING
        assert status_of(plan).managed_config == ("retention.ms",)
        assert (status_of(plan).partition_summary, status_of(plan).replica_summary) == (
            "0/2",
            "0/2",
        )

    def test_an_accepted_creation_is_not_sent_again_before_it_shows(self) -> None:
        (command,) = plan_topic(request()).commands
        plan = plan_topic(request(attempts=[attempt(command, Accepted(), retry_in_s=7)]))
        assert plan.commands == ()
        assert plan.requeue_after_s == 7
        assert state(plan)["Reconciling"] == "True/Creating"

    @pytest.mark.parametrize(
        "changes", [{"retry_in_s": 0}, {"epoch": 4}], ids=lambda c: next(iter(c))
    )
    def test_but_after_a_while_or_by_another_controller_it_is(
        self, changes: dict[str, Any]
    ) -> None:
        (command,) = plan_topic(request()).commands
        plan = plan_topic(request(attempts=[attempt(command, Accepted(), **changes)]))
        assert plan.commands == (command,)

    def test_a_permanent_refusal_stalls(self) -> None:
        (command,) = plan_topic(request()).commands
        refusal = Rejected(Reason.TOPIC_NAME_COLLISION, "collides with or.ders", "topic")
        plan = plan_topic(request(attempts=[attempt(command, refusal, retry_in_s=600)]))
        assert plan.commands == ()
        assert state(plan) | {
            "Ready": "False/TopicNameCollision",
            "Reconciling": "False/Idle",
            "Stalled": "True/TopicNameCollision",
        } == state(plan)
        assert said(plan).message == "spec.topicName: collides with or.ders"
        assert plan.requeue_after_s == 600

    def test_a_permanent_refusal_is_tried_again_once_there_are_other_brokers(self) -> None:
        """Some without a rack were the reason, for instance, and are gone or have one now."""
        (command,) = plan_topic(request()).commands
        refusal = Rejected(Reason.INVALID_REPLICA_ASSIGNMENT, "brokers [9] have no rack")
        refused = attempt(command, refusal, retry_in_s=600, brokers=view(brokers=4).brokers)
        assert plan_topic(request(attempts=[refused])).commands == (command,)

    def test_a_name_that_is_taken_is_tried_again_once_it_is_taken_by_others_or_nobody(self) -> None:
        subject = resource(topicName="or.ders")
        (command,) = plan_topic(request(subject)).commands
        refusal = Rejected(Reason.TOPIC_NAME_COLLISION, "collides with or_ders", "topic")
        refused = attempt(command, refusal, retry_in_s=600, twins=("or_ders",))
        taken, other = view(topic(name="or_ders")), view(topic(name="or_ders"), topic(name="users"))
        for seen in (taken, other):
            assert plan_topic(request(subject, seen, attempts=[refused])).commands == ()
        for seen in (view(), view(topic(name="users"))):
            assert plan_topic(request(subject, seen, attempts=[refused])).commands == (command,)

    @pytest.mark.parametrize(
        "outcome", [Accepted(), Rejected(Reason.ZOOKEEPER_UNAVAILABLE, "no server answered")]
    )
    def test_what_is_settled_or_tried_soon_does_not_depend_on_brokers(self, outcome: Any) -> None:
        (command,) = plan_topic(request()).commands
        sent = attempt(command, outcome, retry_in_s=2, brokers=view(brokers=4).brokers)
        assert plan_topic(request(attempts=[sent])).commands == ()


class TestWhatTheViewCannotTell:
    @pytest.mark.parametrize("cluster_id", ["cluster-a", None])
    def test_what_the_controller_before_has_said_is_left_alone_for_a_while(
        self, cluster_id: str | None
    ) -> None:
        """Else each change of controllers made every resource not ready, and wrote it twice."""
        loading = view(complete=False, cluster_id=cluster_id)
        plan = plan_topic(request(owned(), loading, waited_s=5))
        assert plan == Plan(requeue_after_s=115)
        changed = owned(generation=2, config={"retention.ms": 5})
        assert said(plan_topic(request(changed, loading, waited_s=5))).reason == "ClusterLoading"

    def test_that_nobody_was_the_controller_is_not(self) -> None:
        absence = Absence(for_s=120, reason="a broker is the controller")
        nobody = plan_topic(request(owned(), view(active=False), absence=absence))
        assert said(nobody).reason == "ControllerInactive"
        subject = owned(status=after(nobody))
        plan = plan_topic(request(subject, view(complete=False), waited_s=5))
        assert said(plan).reason == "ClusterLoading"

    def test_while_loading_a_topic_that_is_there_is_there(self) -> None:
        plan = plan_topic(request(owned(), view(topic(), complete=False), config={}))
        assert state(plan) == READY


AS_DECLARED = {"retention.ms": "5"}


def throttled_topic() -> TopicView:
    """A topic with a partition whose copies Regent throttles."""
    first, *others = topic().partitions
    throttled = msgspec.structs.replace(first, throttle=1024)
    return msgspec.structs.replace(topic(), partitions=(throttled, *others))


class TestExisting:
    def test_its_configuration_is_read_first(self) -> None:
        plan = plan_topic(request(owned(), view(topic())))
        assert plan == Plan(commands=(DescribeTopicConfigs(("orders",)),))

    @pytest.mark.parametrize(
        ("outcome", "reason", "named"),
        [
            (Rejected(Reason.ZOOKEEPER_UNAVAILABLE, "no answer"), "ZooKeeperUnavailable", "answer"),
            (Accepted({}), "InternalError", "/config/topics/orders"),
        ],
    )
    def test_a_configuration_that_cannot_be_read(
        self, outcome: Any, reason: str, named: str
    ) -> None:
        failed = attempt(DescribeTopicConfigs(("orders",)), outcome, retry_in_s=3)
        plan = plan_topic(request(owned(), view(topic()), attempts=[failed]))
        assert state(plan)["Reconciling"] == f"True/{reason}"
        assert state(plan)["Synced"] == "Unknown/Unknown"
        assert named in said(plan, ConditionType.RECONCILING).message
        assert plan.requeue_after_s == 3

    def test_as_declared(self) -> None:
        plan = plan_topic(request(owned(config={"a.b": None}), view(topic()), config={"a.b": "1"}))
        assert state(plan) == READY
        assert (plan.commands, plan.events) == ((), ())
        assert (
            status_of(plan).to_api()
            | {
                "observedGeneration": 1,
                "topicName": "orders",
                "topicId": topic_id_to_text(ID),
                "partitions": 2,
                "replicas": 2,
                "leaderless": 0,
                "underReplicated": 0,
                "partitionSummary": "2/2",
                "replicaSummary": "2/2",
                "ownership": "Created",
                "controllerEpoch": 5,
            }
            == status_of(plan).to_api()
        )

    def test_it_grows(self) -> None:
        plan = plan_topic(request(owned(partitions=4), view(topic()), config={}))
        assert plan.commands == (CreatePartitions("orders", 4),)
        assert state(plan)["Reconciling"] == "True/Changing"
        assert state(plan)["Synced"] == "False/Drifted"
        assert said(plan, ConditionType.SYNCED).message == "partitions is 2 instead of 4"

    def test_configuration_is_set_and_reset(self) -> None:
        subject = owned(
            config={"retention.ms": 1, "segment.ms": 2},
            status={"managedConfig": ["flush.ms", "retention.ms", "preallocate"]},
        )
        actual = {"retention.ms": "1", "flush.ms": "3", "cleanup.policy": "compact"}
        plan = plan_topic(request(subject, view(topic()), config=actual))
        assert plan.commands == (AlterTopicConfig("orders", {"segment.ms": "2"}, ("flush.ms",)),)
        assert status_of(plan).managed_config == ("flush.ms", "retention.ms", "segment.ms")
        assert [entry.to_api() for entry in status_of(plan).drift] == [
            {"field": "config[segment.ms]", "desired": "2"},
            {"field": "config[flush.ms]", "actual": "3"},
        ]

    def test_what_somebody_else_has_changed_is_shown_before_it_is_corrected(self) -> None:
        declared = owned(config={"retention.ms": 1})
        synced = plan_topic(request(declared, view(topic()), config={"retention.ms": "1"}))
        drifted = owned(config={"retention.ms": 1}, status=after(synced))
        shown = plan_topic(request(drifted, view(topic()), config={"retention.ms": "5"}))
        assert shown.status_first
        assert [entry.to_api() for entry in status_of(shown).drift] == [
            {"field": "config[retention.ms]", "desired": "1", "actual": "5"}
        ]
        told = owned(config={"retention.ms": 1}, status=after(shown))
        corrected = plan_topic(request(told, view(topic()), config={"retention.ms": "5"}))
        assert not corrected.status_first
        assert corrected.commands == (AlterTopicConfig("orders", {"retention.ms": "1"}),)

    @pytest.mark.parametrize("policy", ["Managed", "Observe"])
    def test_configuration_is_as_declared_when_only_its_text_differs(self, policy: str) -> None:
        throttles = ["leader.replication.throttled.replicas"]
        throttles += ["follower.replication.throttled.replicas"]
        config = {"cleanup.policy": "delete,compact", "min.cleanable.dirty.ratio": 0}
        config |= dict.fromkeys(throttles, "")
        actual = {"cleanup.policy": "delete, compact", "min.cleanable.dirty.ratio": "0.0"}
        subject = owned(config=config, managementPolicy=policy)
        plan = plan_topic(request(subject, view(topic()), config=actual))
        assert plan.commands == ()
        assert state(plan)["Synced"] == "True/AsDeclared"
        assert status_of(plan).drift == ()

    def test_a_key_handed_over_is_not_reset(self) -> None:
        subject = owned(handsOffConfig=["flush.ms"], status={"managedConfig": ["flush.ms"]})
        plan = plan_topic(request(subject, view(topic()), config={"flush.ms": "3"}))
        assert plan.commands == ()
        assert status_of(plan).managed_config == ()

    def test_declared_throttled_replicas_wait_while_a_move_is_throttled(self) -> None:
        moves = {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "0:3"}
        subject = owned(config={LEADER_REPLICAS: "0:1", "retention.ms": 5})
        now = {**moves, "retention.ms": "7"}
        plan = plan_topic(request(subject, view(throttled_topic()), config=now))
        assert plan.commands == (AlterTopicConfig("orders", {"retention.ms": "5"}),)
        assert [entry.field for entry in status_of(plan).drift] == ["config[retention.ms]"]
        plan = plan_topic(
            request(subject, view(throttled_topic()), config={**moves, **AS_DECLARED})
        )
        assert plan.commands == ()
        assert state(plan) == {**READY, "Synced": "Unknown/ReassignmentInProgress"}
        for condition in (ConditionType.READY, ConditionType.SYNCED):
            assert (
                f"move of the topic owns config[{LEADER_REPLICAS}];"
                in said(plan, condition).message
            )
        ended = plan_topic(request(subject, view(topic()), config=AS_DECLARED))
        assert ended.commands == (AlterTopicConfig("orders", {LEADER_REPLICAS: "0:1"}),)

    def test_throttled_replicas_that_are_declared_no_longer_are_reset_after_the_move(self) -> None:
        config = {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "*"}
        subject = owned(status={"managedConfig": [FOLLOWER_REPLICAS]})
        plan = plan_topic(request(subject, view(throttled_topic()), config=config))
        assert plan.commands == ()
        assert status_of(plan).managed_config == (FOLLOWER_REPLICAS,)
        ended = plan_topic(request(owned(status=after(plan)), view(topic()), config=config))
        assert ended.commands == (AlterTopicConfig("orders", remove=(FOLLOWER_REPLICAS,)),)


class TestBrokersThatAreNotAlive:
    """A dead broker comes back: nothing is wrong with the resource."""

    def test_a_creation_waits_for_them(self) -> None:
        plan = plan_topic(request(resource(replicaAssignment=[[1, 2], [2, 9]])))
        assert plan.commands == ()
        assert state(plan)["Reconciling"] == "True/BrokersUnavailable"
        assert state(plan)["Stalled"] == "False/NotStalled"
        assert said(plan).message.startswith(
            "spec.replicaAssignment: brokers [9] are not alive, live are [1, 2, 3]"
        )

    def test_growth_waits_for_them_and_the_rest_goes_on(self) -> None:
        subject = owned(
            partitions=3,
            replicaAssignment=[[1, 2], [2, 1], [1, 9]],
            config={"retention.ms": 1},
        )
        plan = plan_topic(request(subject, view(topic()), config={}))
        assert plan.commands == (AlterTopicConfig("orders", {"retention.ms": "1"}),)
        assert state(plan)["Reconciling"] == "True/BrokersUnavailable"
