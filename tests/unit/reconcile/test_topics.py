"""Living KafkaTopics: what is planned for what is known."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from regent.controller.commands import (
    Accepted,
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DescribeTopicConfigs,
    Reason,
    Rejected,
)
from regent.controller.view import PartitionHealth, TopicView
from regent.model.topic import topic_id_to_text
from regent.model.topic_config import BrokerFacts
from regent.reconcile.outside_term import INACTIVE_GRACE_S
from regent.reconcile.plan import FinalizerAction, Plan
from regent.reconcile.topics import plan_topic
from regent.resources.conditions import ConditionType
from regent.resources.kafka_topic_status import Ownership
from tests.unit.reconcile.requests import (
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
    topic,
    view,
)

OWNED = {
    "observedGeneration": 1,
    "ownership": "Created",
    "topicId": topic_id_to_text(ID),
}
READY = {
    "Ready": "True/AsDeclared",
    "Reconciling": "False/Idle",
    "Stalled": "False/NotStalled",
    "Synced": "True/AsDeclared",
    "Healthy": "True/AllInSync",
}


def owned(**changes: Any) -> Any:
    status = {**OWNED, **changes.pop("status", {})}
    return resource(finalizer=True, status=status, **changes)


class TestCreation:
    def test_it_is_created_as_declared(self) -> None:
        plan = plan_topic(request(resource(config={"retention.ms": 5, "preallocate": None})))
        assert plan.commands == (
            CreateTopic(
                "orders",
                2,
                replication_factor=2,
                config={"retention.ms": "5"},
                topic_id=SPARE_ID,
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
        assert plan.status is not None
        assert plan.status.observed_generation == 1
        assert plan.status.ownership is Ownership.CREATING
        assert plan.status.managed_config == ("retention.ms",)
        assert (plan.status.partition_summary, plan.status.replica_summary) == ("0/2", "0/2")

    def test_an_assignment_is_passed_on_by_partition(self) -> None:
        plan = plan_topic(request(resource(replicaAssignment=[[1, 2], [2, 3]])))
        assignment = {0: (1, 2), 1: (2, 3)}
        assert plan.commands == (
            CreateTopic("orders", 2, assignment=assignment, topic_id=SPARE_ID),
        )

    def test_retain_needs_no_finalizer(self) -> None:
        plan = plan_topic(request(resource(deletionPolicy="Retain")))
        assert plan.finalizer is FinalizerAction.LEAVE

    @pytest.mark.parametrize("policy", ["Refuse", "Preview"])
    def test_without_adoption_the_intent_is_stored_first(self, policy: str) -> None:
        plan = plan_topic(request(resource(adoptionPolicy=policy)))
        assert plan.status_first
        again = plan_topic(request(resource(adoptionPolicy=policy, status=after(plan))))
        assert not again.status_first
        assert again.commands == plan.commands

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

    def test_too_few_brokers_are_waited_for(self) -> None:
        plan = plan_topic(request(seen=view(brokers=1)))
        assert plan.commands == ()
        assert state(plan)["Reconciling"] == "True/NotEnoughBrokers"
        assert said(plan).message == (
            "spec.replicas: 2 replicas need 2 live brokers, there are 1; waiting for more"
        )

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

    def test_a_transient_refusal_reconciles(self) -> None:
        (command,) = plan_topic(request()).commands
        refusal = Rejected(Reason.ZOOKEEPER_UNAVAILABLE, "no server answered")
        plan = plan_topic(request(attempts=[attempt(command, refusal, retry_in_s=2)]))
        assert state(plan)["Reconciling"] == "True/ZooKeeperUnavailable"
        assert state(plan)["Stalled"] == "False/NotStalled"
        assert plan.requeue_after_s == 2

    def test_a_predecessor_being_deleted_is_waited_for(self) -> None:
        plan = plan_topic(request(seen=view(topic(deleting=True)), config={}))
        assert plan.commands == ()
        assert state(plan)["Reconciling"] == "True/TopicMarkedForDeletion"


class TestWhatTheViewCannotTell:
    def test_while_loading_a_missing_topic_means_nothing(self) -> None:
        plan = plan_topic(request(owned(), view(complete=False)))
        assert plan.commands == ()
        assert state(plan) == {
            "Ready": "False/ClusterLoading",
            "Reconciling": "True/ClusterLoading",
            "Stalled": "False/NotStalled",
            "Synced": "Unknown/Unknown",
            "Healthy": "Unknown/Unknown",
        }
        assert plan.status is not None
        assert plan.status.topic_id == topic_id_to_text(ID)
        assert plan.status.ownership is Ownership.CREATED

    def test_while_loading_a_topic_that_is_there_is_there(self) -> None:
        plan = plan_topic(request(owned(), view(topic(), complete=False), config={}))
        assert state(plan) == READY

    def test_a_standby_gives_the_controller_time(self) -> None:
        plan = plan_topic(request(seen=view(active=False), waited_s=10))
        assert plan == Plan(requeue_after_s=INACTIVE_GRACE_S - 10)

    @pytest.mark.parametrize(
        ("spec", "reason"),
        [({}, "ControllerInactive"), ({"config": {"nonsense": 1}}, "InvalidConfig")],
    )
    def test_then_it_says_what_is_wrong(self, spec: dict[str, Any], reason: str) -> None:
        subject = resource(status={"controllerEpoch": 9}, **spec)
        plan = plan_topic(request(subject, view(active=False, epoch=0), waited_s=31))
        assert said(plan).reason == reason
        assert plan.status is not None
        assert plan.status.controller_epoch == 9
        assert plan.commands == ()


class TestExisting:
    def test_its_configuration_is_read_first(self) -> None:
        plan = plan_topic(request(owned(), view(topic())))
        assert plan == Plan(commands=(DescribeTopicConfigs(("orders",)),))

    @pytest.mark.parametrize(
        ("outcome", "reason"),
        [
            (Rejected(Reason.ZOOKEEPER_UNAVAILABLE, "no answer"), "ZooKeeperUnavailable"),
            (Accepted({}), "InternalError"),
        ],
    )
    def test_a_configuration_that_cannot_be_read(self, outcome: Any, reason: str) -> None:
        failed = attempt(DescribeTopicConfigs(("orders",)), outcome, retry_in_s=3)
        plan = plan_topic(request(owned(), view(topic()), attempts=[failed]))
        assert state(plan)["Reconciling"] == f"True/{reason}"
        assert state(plan)["Synced"] == "Unknown/Unknown"
        assert plan.requeue_after_s == 3

    def test_as_declared(self) -> None:
        plan = plan_topic(request(owned(config={"a.b": None}), view(topic()), config={"a.b": "1"}))
        assert state(plan) == READY
        assert (plan.commands, plan.events) == ((), ())
        assert plan.status is not None
        assert (
            plan.status.to_api()
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
            == plan.status.to_api()
        )

    def test_saying_the_same_again_changes_nothing(self) -> None:
        first = plan_topic(request(owned(), view(topic()), config={}))
        again = plan_topic(request(owned(status=after(first)), view(topic()), config={}))
        assert again.status == first.status

    def test_it_grows(self) -> None:
        plan = plan_topic(request(owned(partitions=4), view(topic()), config={}))
        assert plan.commands == (CreatePartitions("orders", 4),)
        assert state(plan)["Reconciling"] == "True/Changing"
        assert state(plan)["Synced"] == "False/Drifted"
        assert said(plan, ConditionType.SYNCED).message == "partitions is 2 instead of 4"

    def test_it_grows_by_its_assignment(self) -> None:
        subject = owned(partitions=3, replicaAssignment=[[1, 2], [2, 1], [3, 1]])
        plan = plan_topic(request(subject, view(topic()), config={}))
        assert plan.commands == (CreatePartitions("orders", 3, {2: (3, 1)}),)

    def test_configuration_is_set_and_reset(self) -> None:
        subject = owned(
            config={"retention.ms": 1, "segment.ms": 2},
            status={"managedConfig": ["flush.ms", "retention.ms", "preallocate"]},
        )
        actual = {"retention.ms": "1", "flush.ms": "3", "cleanup.policy": "compact"}
        plan = plan_topic(request(subject, view(topic()), config=actual))
        assert plan.commands == (AlterTopicConfig("orders", {"segment.ms": "2"}, ("flush.ms",)),)
        assert plan.status is not None
        assert plan.status.managed_config == ("flush.ms", "retention.ms", "segment.ms")
        assert [entry.to_api() for entry in plan.status.drift] == [
            {"field": "config[segment.ms]", "desired": "2"},
            {"field": "config[flush.ms]", "actual": "3"},
        ]

    def test_a_key_handed_over_is_not_reset(self) -> None:
        subject = owned(handsOffConfig=["flush.ms"], status={"managedConfig": ["flush.ms"]})
        plan = plan_topic(request(subject, view(topic()), config={"flush.ms": "3"}))
        assert plan.commands == ()
        assert plan.status is not None
        assert plan.status.managed_config == ()

    def test_one_refused_command_does_not_hold_up_the_other(self) -> None:
        subject = owned(partitions=4, config={"retention.ms": 1})
        refused = attempt(
            CreatePartitions("orders", 4), Rejected(Reason.REASSIGNMENT_IN_PROGRESS, "moving")
        )
        plan = plan_topic(request(subject, view(topic()), config={}, attempts=[refused]))
        assert plan.commands == (AlterTopicConfig("orders", {"retention.ms": "1"}),)
        assert state(plan)["Reconciling"] == "True/ReassignmentInProgress"


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

    def test_existing_partitions_need_no_live_broker(self) -> None:
        subject = owned(replicaAssignment=[[1, 9], [2, 1]])
        plan = plan_topic(request(subject, view(topic((1, 9), (2, 1))), config={}))
        assert state(plan)["Stalled"] == "False/NotStalled"

    def test_a_refusal_by_the_controller_is_transient(self) -> None:
        (command,) = plan_topic(request()).commands
        refusal = Rejected(Reason.BROKERS_UNAVAILABLE, "broker 3 is not live", "assignment")
        plan = plan_topic(request(attempts=[attempt(command, refusal, retry_in_s=2)]))
        assert state(plan)["Reconciling"] == "True/BrokersUnavailable"


class TestLimits:
    def test_topics_whose_size_brokers_rely_on_do_not_grow(self) -> None:
        name = "__consumer_offsets"
        subject = owned(topicName=name, partitions=3)
        plan = plan_topic(request(subject, view(topic(name=name)), config={}))
        assert plan.commands == ()
        assert state(plan)["Stalled"] == "True/InvalidPartitions"
        assert "set partitions to 2" in said(plan).message

    def test_partitions_do_not_shrink(self) -> None:
        plan = plan_topic(request(owned(partitions=1), view(topic()), config={}))
        assert plan.commands == ()
        assert state(plan)["Stalled"] == "True/PartitionsDecrease"
        assert "set partitions to 2" in said(plan).message

    def test_another_replication_factor_needs_another_resource(self) -> None:
        subject = owned(replicas=3, partitions=3, config={"retention.ms": 1})
        plan = plan_topic(request(subject, view(topic()), config={}))
        assert plan.commands == (
            CreatePartitions("orders", 3),
            AlterTopicConfig("orders", {"retention.ms": "1"}),
        )
        assert state(plan)["Stalled"] == "True/ReplicasMismatch"
        assert said(plan).message.startswith("spec.replicas: the topic has 2 replicas")
        assert "set replicas to 2, or have kafka-reassign-partitions" in said(plan).message
        assert "PartitionReassignment" not in said(plan).message

    def test_mixed_replication_factors(self) -> None:
        plan = plan_topic(request(owned(), view(topic((1, 2), (1, 2, 3))), config={}))
        assert "2 and 3 replicas" in said(plan).message

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

    def test_another_place_needs_another_resource(self) -> None:
        subject = owned(replicaAssignment=[[1, 2], [3, 1]])
        plan = plan_topic(request(subject, view(topic()), config={}))
        assert state(plan)["Stalled"] == "True/ReplicaAssignmentMismatch"
        assert "partition 1 on [2, 1] instead of [3, 1]" in said(plan).message

    def test_a_refusal_comes_before_a_limit(self) -> None:
        subject = owned(replicas=3, config={"retention.ms": 1})
        refused = attempt(
            AlterTopicConfig("orders", {"retention.ms": "1"}),
            Rejected(Reason.INVALID_CONFIG, "no", 'config["retention.ms"]'),
        )
        plan = plan_topic(request(subject, view(topic()), config={}, attempts=[refused]))
        assert said(plan).reason == "InvalidConfig"
        assert said(plan).message.startswith("spec.config[retention.ms]: no; spec.replicas: ")


class TestSpec:
    @pytest.mark.parametrize(
        ("changes", "reason", "field"),
        [
            ({"name": "x" * 250}, "InvalidTopicName", "metadata.name"),
            ({"replicas": None}, "InvalidReplicationFactor", "spec.replicas"),
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

    def test_a_resource_that_is_ready_already_is_refused_as_well(self) -> None:
        declared = owned(config={"min.insync.replicas": "two"})
        plan = plan_topic(request(declared, view(topic()), config={}))
        assert state(plan)["Stalled"] == "True/InvalidConfig"
        assert plan.commands == ()

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

    def test_several_problems_are_counted(self) -> None:
        plan = plan_topic(request(resource(config={f"nonsense.{i}": 1 for i in range(5)})))
        assert said(plan).message.endswith("; and 2 more")

    def test_the_topic_is_shown_all_the_same(self) -> None:
        plan = plan_topic(request(owned(config={"nonsense": 1}), view(topic()), config={}))
        assert state(plan)["Healthy"] == "True/AllInSync"
        assert plan.status is not None
        assert plan.status.ownership is Ownership.CREATED


class TestConflict:
    def test_the_older_one_of_two_that_own_nothing_wins(self) -> None:
        other = claim(resource(name="elder", uid="u0"), created="2026-05-01T09:00:00Z")
        plan = plan_topic(request(resource(), view(topic()), config={}, others=[other]))
        assert plan.commands == ()
        assert state(plan)["Stalled"] == "True/ResourceConflict"
        assert "KafkaTopic shop/elder" in said(plan).message

    def test_the_loser_lets_go_of_everything(self) -> None:
        other = claim(resource(name="owner", uid="u0", status=OWNED))
        plan = plan_topic(request(owned(), view(topic()), config={}, others=[other]))
        assert plan.finalizer is FinalizerAction.REMOVE
        assert plan.status is not None
        assert plan.status.ownership is None

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
        assert plan.status is not None
        assert plan.status.ownership is Ownership.ADOPTED

    def test_a_preview_shows_the_difference(self) -> None:
        subject = resource(adoptionPolicy="Preview", partitions=3, config={"flush.ms": 1})
        plan = plan_topic(request(subject, view(topic()), config={"retention.ms": "9"}))
        assert (plan.commands, plan.finalizer) == ((), FinalizerAction.LEAVE)
        assert state(plan)["Stalled"] == "True/AdoptionPreview"
        assert said(plan).message.endswith(
            "partitions is 2 instead of 3; config[flush.ms] is unset instead of 1"
        )

    def test_refused(self) -> None:
        plan = plan_topic(request(resource(adoptionPolicy="Refuse"), view(topic()), config={}))
        assert state(plan)["Stalled"] == "True/AdoptionRefused"
        assert plan.status is not None
        assert plan.status.ownership is None

    @pytest.mark.parametrize(
        ("policy", "expected"),
        [("Adopt", "True/AsDeclared"), ("Refuse", "False/AdoptionRefused")],
    )
    def test_another_id_is_another_topic(self, policy: str, expected: str) -> None:
        other = topic(topic_id=uuid.UUID(int=78))
        plan = plan_topic(request(owned(adoptionPolicy=policy), view(other), config={}))
        assert state(plan)["Ready"] == expected
        if policy == "Adopt":
            assert "deleted and created again" in plan.events[0].message

    @pytest.mark.parametrize("before", [None, topic_id_to_text(ID)])
    def test_without_ids_nobody_can_tell(self, before: str | None) -> None:
        subject = owned(adoptionPolicy="Refuse", status={"topicId": before})
        plan = plan_topic(request(subject, view(topic(topic_id=None)), config={}))
        assert state(plan)["Ready"] == "True/AsDeclared"

    def test_the_finalizer_stands_in_for_a_lost_status(self) -> None:
        subject = resource(finalizer=True)
        assert request(subject, view(topic()), config={}).owns_topic
        assert not request(resource(finalizer=True, adoptionPolicy="Refuse")).owns_topic


class TestManagement:
    @pytest.mark.parametrize("policy", ["Paused", "Observe"])
    def test_differences_are_shown_and_nothing_is_written(self, policy: str) -> None:
        subject = resource(managementPolicy=policy, partitions=3)
        plan = plan_topic(request(subject, view(topic()), config={}))
        assert plan.commands == ()
        assert plan.finalizer is FinalizerAction.LEAVE
        assert said(plan).status.value == "True"
        assert state(plan)["Synced"] == "False/Drifted"
        assert plan.status is not None
        assert len(plan.status.drift) == 1

    @pytest.mark.parametrize("policy", ["Paused", "Observe"])
    def test_a_missing_topic_stalls(self, policy: str) -> None:
        plan = plan_topic(request(resource(managementPolicy=policy)))
        assert plan.commands == ()
        assert state(plan)["Stalled"] == "True/TopicNotFound"

    def test_paused_keeps_what_it_owns(self) -> None:
        plan = plan_topic(request(owned(managementPolicy="Paused"), view(topic()), config={}))
        assert plan.finalizer is FinalizerAction.LEAVE
        assert plan.status is not None
        assert plan.status.ownership is Ownership.CREATED

    def test_observing_lets_go(self) -> None:
        plan = plan_topic(request(owned(managementPolicy="Observe"), view(topic()), config={}))
        assert plan.finalizer is FinalizerAction.REMOVE
        assert plan.status is not None
        assert plan.status.ownership is None

    @pytest.mark.parametrize(
        ("policy", "held", "action"),
        [
            ("Delete", False, FinalizerAction.ADD),
            ("Protect", False, FinalizerAction.ADD),
            ("Protect", True, FinalizerAction.LEAVE),
            ("Retain", True, FinalizerAction.REMOVE),
            ("Retain", False, FinalizerAction.LEAVE),
        ],
    )
    def test_the_finalizer_follows_the_policy(
        self, policy: str, held: bool, action: FinalizerAction
    ) -> None:
        subject = resource(finalizer=held, deletionPolicy=policy, status=OWNED)
        assert plan_topic(request(subject, view(topic()), config={})).finalizer is action


class TestHealth:
    def _plan(self, *partitions: Any) -> Plan:
        return plan_topic(request(owned(), view(TopicView("orders", ID, partitions)), config={}))

    def test_under_replicated_is_unhealthy_but_ready(self) -> None:
        plan = self._plan(partition(0, (1, 2)), partition(1, (2, 1), (2,)))
        assert state(plan) == {**READY, "Healthy": "False/UnderReplicated"}
        assert plan.status is not None
        assert [p.partition for p in plan.status.partition_states] == [1, 0]

    def test_leaderless_is_not_ready(self) -> None:
        plan = self._plan(
            partition(0, (1, 2), leader=-1, state=PartitionHealth.OFFLINE), partition(1, (2, 1))
        )
        assert state(plan)["Ready"] == "False/PartitionsLeaderless"
        assert state(plan)["Reconciling"] == "True/PartitionsLeaderless"
        assert state(plan)["Healthy"] == "False/PartitionsLeaderless"
        assert "on brokers [1, 2]" in said(plan).message

    def test_a_topic_that_a_broker_refuses_is_neither_ready_nor_healthy(self) -> None:
        """ZooKeeper shows a leader and a full ISR all the while."""
        refusal = ((2, "UNKNOWN_SERVER_ERROR"),)
        plan = self._plan(partition(0, (1, 2)), partition(1, (2, 1), refusals=refusal))
        assert state(plan)["Ready"] == "False/ReplicasRefused"
        assert state(plan)["Stalled"] == "True/ReplicasRefused"
        assert state(plan)["Healthy"] == "False/ReplicasRefused"
        assert said(plan, ConditionType.HEALTHY).message == (
            "broker 2 refuses 1 partitions [1] with UNKNOWN_SERVER_ERROR; the broker's log says why"
        )
        assert plan.status is not None
        assert plan.status.partition_states[0].partition == 1

    def test_many_refusals_make_a_short_message(self) -> None:
        refusals = tuple((broker_id, f"ERROR_{broker_id}") for broker_id in range(8))
        plan = self._plan(*(partition(i, (1, 2), refusals=refusals) for i in range(50)))
        message = said(plan, ConditionType.HEALTHY).message
        assert "broker 0 refuses 50 partitions [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] with" in message
        assert "; and 3 more;" in message

    def test_without_a_first_leader_it_is_still_being_created(self) -> None:
        plan = self._plan(
            partition(0, (1, 2), (), leader=-1, state=PartitionHealth.NEW), partition(1, (2, 1))
        )
        assert state(plan)["Ready"] == "False/Creating"

    def test_the_sample_is_bounded(self) -> None:
        many = [partition(i, (1, 2)) for i in range(50)]
        many[40] = partition(40, (1, 2), (1,))
        many[45] = partition(45, (1, 2), leader=-1, state=PartitionHealth.OFFLINE)
        plan = plan_topic(
            request(owned(partitions=50), view(TopicView("orders", ID, tuple(many))), config={})
        )
        assert plan.status is not None
        assert [p.partition for p in plan.status.partition_states][:4] == [45, 40, 0, 1]
        assert len(plan.status.partition_states) == 20
