"""Commands for topics: where a refusal points to in the resource, and their Events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from regent.admin.commands import (
    AlterPartitionReassignments,
    AlterTopicConfig,
    CordonBrokers,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    ElectLeaders,
    ReassignTopic,
    ResourceCommand,
)
from regent.reconcile.dispatch import Dispatch, dispatch
from regent.reconcile.plan import EventReason, PlannedEvent
from regent.reconcile.topics.request import TopicRequest
from regent.resources.conditions import (
    ConditionReason,
    ConditionStatus,
    ConditionType,
    find_condition,
)

COMMAND_FIELDS: Final = {
    "topic": "spec.topicName",
    "replication_factor": "spec.replicas",
    "assignment": "spec.replicaAssignment",
    "total": "spec.partitions",
}
"""Fields of a KafkaTopic by the fields of commands."""


def dispatch_for_topic(request: TopicRequest, commands: Sequence[ResourceCommand]) -> Dispatch:
    """Sort the commands for a topic into those to send and those already answered."""
    return dispatch(request, commands, fields=COMMAND_FIELDS)


def accepted_event(request: TopicRequest, command: ResourceCommand) -> PlannedEvent | None:
    """The Event for an accepted command; None if it is not worth one."""
    match command:
        case CreateTopic():
            return PlannedEvent(
                EventReason.TOPIC_CREATED,
                f"created topic {command.topic} with {command.partitions} partitions",
                is_occurrence=True,
            )
        case CreatePartitions():
            return PlannedEvent(
                EventReason.PARTITIONS_ADDED,
                f"grew topic {command.topic} to {command.total} partitions",
            )
        case ReassignTopic():
            return _reassignment_event(request)
        case AlterTopicConfig():
            return _config_event(request, command)
        case DeleteTopic():
            return PlannedEvent(
                EventReason.TOPIC_DELETION_STARTED,
                f"started the deletion of topic {command.topic}",
                is_occurrence=True,
            )
        case (
            DescribeTopicConfigs()
            | AlterPartitionReassignments()
            | CordonBrokers()
            | ElectLeaders()
        ):
            return None
    assert_never(command)


def _reassignment_event(request: TopicRequest) -> PlannedEvent | None:
    """Of the first command: the next ones follow partition by partition."""
    ready = find_condition(request.record.conditions, ConditionType.READY)
    if ready is not None and ready.reason == ConditionReason.REPLICAS_CHANGING:
        return None
    return PlannedEvent(
        EventReason.REPLICA_CHANGE_STARTED,
        f"changing the replication factor of topic {request.topic_name} to "
        f"{request.resource.spec.replicas}",
    )


def _config_event(request: TopicRequest, command: AlterTopicConfig) -> PlannedEvent:
    metadata, status = request.resource.metadata, request.record
    synced = find_condition(status.conditions, ConditionType.SYNCED)
    # A known generation and known keys: it was not the resource that changed. While it is not known
    # how the topic is, as without a controller, a generation is answered that nothing came of yet.
    is_drift = (
        status.observed_generation == metadata.generation
        and synced is not None
        and synced.status is not ConditionStatus.UNKNOWN
        and request.owns_topic
        and set(command.set) <= set(status.managed_config)
    )
    if is_drift:
        return PlannedEvent(
            EventReason.DRIFT_REVERTED,
            f"somebody else changed topic {command.topic}; restored: {command.changes}",
        )
    return PlannedEvent(
        EventReason.CONFIG_CHANGED,
        f"changed the configuration of topic {command.topic}: {command.changes}",
    )
