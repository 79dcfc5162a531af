"""The smaller parts: findings, events, unreadable resources, significance."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from regent.admin.commands import (
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    Reason,
    ReassignTopic,
    Rejected,
    TopicCommand,
)
from regent.reconcile.dispatch import describe_commands, is_transient, rejection_finding
from regent.reconcile.plan import FinalizerAction
from regent.reconcile.topics.commands import COMMAND_FIELDS, accepted_event
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.planning import plan_topic
from regent.reconcile.topics.significance import is_significant
from regent.reconcile.topics.transitions import transition_events
from regent.reconcile.topics.unreadable import UnreadableRequest, plan_unreadable
from regent.resources.kafka_topic import FINALIZER, UnreadableTopic, parse_kafka_topic
from regent.resources.kafka_topic_status import KafkaTopicStatus
from tests.support.present import present
from tests.unit.reconcile.requests import (
    NOW,
    owned,
    request,
    resource,
    said,
    state,
    status_of,
    topic,
    view,
)


@pytest.mark.parametrize("reason", list(Reason))
def test_every_refusal_becomes_a_finding(reason: Reason) -> None:
    finding = rejection_finding(Rejected(reason, "because"), fields={})
    assert finding.reason == reason.value
    assert finding.text == "because"


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("topic", "spec.topicName"),
        ("replication_factor", "spec.replicas"),
        ("assignment", "spec.replicaAssignment"),
        ("total", "spec.partitions"),
        ("partitions", "spec.partitions"),
        ('config["retention.ms"]', "spec.config[retention.ms]"),
        ("", ""),
    ],
)
def test_fields_are_those_of_the_resource(field: str, expected: str) -> None:
    refused = Rejected(Reason.INVALID_CONFIG, "x", field)
    assert rejection_finding(refused, fields=COMMAND_FIELDS).field == expected


def test_refusals_that_only_mean_that_the_view_was_behind_are_transient() -> None:
    assert is_transient(Rejected(Reason.TOPIC_ALREADY_EXISTS, ""))
    assert is_transient(Rejected(Reason.UNKNOWN_TOPIC, ""))
    assert not is_transient(Rejected(Reason.INVALID_CONFIG, ""))


COMMANDS: list[tuple[TopicCommand, str, str | None]] = [
    (CreateTopic("orders", 2), "creating the topic with 2 partitions", "TopicCreated"),
    (CreatePartitions("orders", 3), "growing the topic to 3 partitions", "PartitionsAdded"),
    (
        AlterTopicConfig("orders", {"a": "1"}, ("b",)),
        "changing the configuration (a=1, b reset)",
        "ConfigChanged",
    ),
    (DeleteTopic("orders"), "deleting the topic", "TopicDeletionStarted"),
    (
        ReassignTopic("orders", {0: (1, 2)}),
        "changing the replicas of 1 partitions",
        "ReplicaChangeStarted",
    ),
    (DescribeTopicConfigs(("orders",)), "reading the configuration of the topic", None),
]


@pytest.mark.parametrize(("command", "text", "event"), COMMANDS)
def test_commands_are_told_of(command: TopicCommand, text: str, event: str | None) -> None:
    assert describe_commands([command]) == text
    told = accepted_event(request(), command)
    assert (None if told is None else told.reason) == event


@pytest.mark.parametrize(
    ("generation", "synced", "reason"),
    [
        (1, "True", "DriftReverted"),
        (1, "False", "DriftReverted"),
        (1, "Unknown", "ConfigChanged"),  # it was answered, and nothing could be done for it
        (1, None, "ConfigChanged"),
        (2, "True", "ConfigChanged"),
    ],
)
def test_a_change_without_a_change_of_the_resource_is_drift(
    generation: int, synced: str | None, reason: str
) -> None:
    condition = {
        "type": "Synced",
        "status": synced,
        "reason": "Unknown",
        "message": "",
        "lastTransitionTime": "2026-05-01T11:00:00Z",
        "observedGeneration": 1,
    }
    status = {
        "observedGeneration": 1,
        "ownership": "Created",
        "managedConfig": ["a"],
        "conditions": [] if synced is None else [condition],
    }
    subject = request(resource(status=status, generation=generation))
    event = present(accepted_event(subject, AlterTopicConfig("orders", {"a": "1"})))
    assert event.reason == reason


class TestTransitions:
    def _status(self, plan: TopicPlan) -> KafkaTopicStatus:
        return status_of(plan)

    def test_what_somebody_else_has_changed_is_told_once_with_the_difference(self) -> None:
        declared = owned(config={"retention.ms": 5})
        before = self._status(
            plan_topic(request(declared, view(topic()), config={"retention.ms": "5"}))
        )
        drifted = self._status(
            plan_topic(request(declared, view(topic()), config={"retention.ms": "7"}))
        )
        (event,) = transition_events(before, drifted)
        assert (event.reason, event.is_warning) == ("DriftDetected", True)
        assert event.message == (
            "somebody else changed topic orders: config[retention.ms] is 7 instead of 5"
        )
        assert transition_events(drifted, drifted) == ()

    def test_a_changed_resource_or_another_topic_is_no_drift(self) -> None:
        declared = owned(config={"retention.ms": 5})
        before = self._status(
            plan_topic(request(declared, view(topic()), config={"retention.ms": "5"}))
        )
        changed = owned(generation=2, config={"retention.ms": 7}, status=before.to_api())
        after = self._status(
            plan_topic(request(changed, view(topic()), config={"retention.ms": "5"}))
        )
        assert transition_events(before, after) == ()
        other = owned(adoptionPolicy="Preview", config={"retention.ms": 5}, status=before.to_api())
        recreated = view(topic(topic_id=uuid.UUID(int=99)))
        after = self._status(plan_topic(request(other, recreated, config={})))
        assert "DriftDetected" not in [e.reason for e in transition_events(before, after)]


class TestUnreadable:
    def _parse(self, *, deleted: bool = False, finalizer: bool = False, **spec: Any) -> Any:
        parsed = parse_kafka_topic(
            {
                "metadata": {
                    "name": "orders",
                    "generation": 4,
                    "finalizers": [FINALIZER] if finalizer else [],
                    **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}),
                },
                "spec": spec,
            }
        )
        assert isinstance(parsed, UnreadableTopic)
        return parsed

    def test_it_stalls(self) -> None:
        plan = plan_unreadable(UnreadableRequest(self._parse(partitions="x"), NOW))
        assert state(plan)["Stalled"] == "True/InvalidSpec"
        assert said(plan).message.startswith("spec.partitions: ")
        assert status_of(plan).observed_generation == 4

    def test_a_configuration_has_a_reason_of_its_own(self) -> None:
        plan = plan_unreadable(UnreadableRequest(self._parse(partitions=1, config={"a": []}), NOW))
        assert state(plan)["Stalled"] == "True/InvalidConfig"

    def test_unless_it_asks_for_protection(self) -> None:
        subject = self._parse(deleted=True, finalizer=True, partitions=0, deletionPolicy="Protect")
        plan = plan_unreadable(UnreadableRequest(subject, NOW))
        assert plan.finalizer is FinalizerAction.LEAVE
        assert plan.asks_about_definition
        gone = UnreadableRequest(subject, NOW, goes_with_definition=True)
        assert plan_unreadable(gone).finalizer is FinalizerAction.REMOVE
        assert state(plan)["Stalled"] == "True/InvalidSpec"


@pytest.mark.parametrize(
    ("change", "significant"),
    [
        ({"leaderless": 3, "under_replicated": 2}, False),
        ({"partition_states": ()}, False),
        ({"controller_epoch": 9}, False),
        ({"observed_generation": 9}, True),
        ({"partitions": 9}, True),
        ({"drift": ({"field": "partitions"},)}, True),
        ({"conditions": ()}, True),
    ],
)
def test_significance(change: dict[str, Any], significant: bool) -> None:
    plan = plan_topic(request(seen=view(topic()), config={}))
    before = present(plan.status)
    after = KafkaTopicStatus.model_validate(before.model_dump() | change)
    assert is_significant(before, after) is significant
    assert not is_significant(before, before)
