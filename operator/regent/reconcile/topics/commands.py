"""Which commands are sent now, and what the outcome of those already sent means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from regent.controller.commands import (
    TRANSIENT_REASONS,
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    Reason,
    Rejected,
    TopicCommand,
)
from regent.reconcile.checks import Finding
from regent.reconcile.plan import EventReason, PlannedEvent
from regent.reconcile.topics.request import Attempt, TopicRequest
from regent.resources.conditions import ConditionReason

_HEALING_REASONS: Final = frozenset({Reason.TOPIC_ALREADY_EXISTS, Reason.UNKNOWN_TOPIC})
"""Refusals that say only that the view was behind: the next look decides differently."""

_CONDITION_REASONS: Final = {reason.value: reason for reason in ConditionReason}


@dataclass(frozen=True, slots=True)
class Dispatch:
    """What is to be sent now and what is known about the rest.

    Attributes:
        send: Commands to be sent.
        findings: Refusals of commands that are not sent again yet.
        in_flight: Accepted commands that do not show in the view yet.
        wait_s: Seconds until one of the commands held back may be sent again; None: none is.
    """

    send: tuple[TopicCommand, ...]
    findings: tuple[Finding, ...]
    in_flight: tuple[TopicCommand, ...]
    wait_s: float | None


def dispatch(request: TopicRequest, commands: Sequence[TopicCommand]) -> Dispatch:
    """Sort the commands that would be right into those to send and those already answered."""
    send: list[TopicCommand] = []
    findings: list[Finding] = []
    in_flight: list[TopicCommand] = []
    waits: list[float] = []
    for command in commands:
        attempt = _attempt_of(request, command)
        if attempt is None or attempt.retry_at <= request.monotonic_s:
            send.append(command)
            continue
        waits.append(attempt.retry_at - request.monotonic_s)
        if isinstance(attempt.outcome, Rejected):
            findings.append(rejection_finding(attempt.outcome))
        else:
            in_flight.append(command)
    return Dispatch(tuple(send), tuple(findings), tuple(in_flight), min(waits) if waits else None)


def _attempt_of(request: TopicRequest, command: TopicCommand) -> Attempt | None:
    for attempt in request.attempts:
        if (
            attempt.command == command
            and attempt.generation == request.resource.metadata.generation
            and attempt.controller_epoch == request.view.controller_epoch
        ):
            return attempt
    return None


def rejection_finding(rejected: Rejected) -> Finding:
    """A refusal of the controller as a finding, with the field of the resource it is about."""
    return Finding(
        _CONDITION_REASONS[rejected.reason.value],
        rejected.message,
        _resource_field(rejected.field),
        is_transient=is_transient(rejected),
    )


def is_transient(rejected: Rejected) -> bool:
    """Whether the refusal may heal without a change of the resource."""
    return rejected.reason in TRANSIENT_REASONS or rejected.reason in _HEALING_REASONS


def _resource_field(field: str) -> str:
    """The field of the resource for a field of a command: ``config["a.b"]`` -> ``config[a.b]``."""
    names = {
        "topic": "spec.topicName",
        "replication_factor": "spec.replicas",
        "assignment": "spec.replicaAssignment",
        "total": "spec.partitions",
    }
    if not field:
        return ""
    return names.get(field, "spec." + field.replace('"', ""))


def describe_commands(commands: Sequence[TopicCommand]) -> str:
    """What is being done, for people."""
    return "; ".join(_describe(command) for command in commands)


def _describe(command: TopicCommand) -> str:
    match command:
        case CreateTopic():
            return f"creating the topic with {command.partitions} partitions"
        case CreatePartitions():
            return f"growing the topic to {command.total} partitions"
        case AlterTopicConfig():
            return f"changing the configuration ({_describe_config(command)})"
        case DeleteTopic():
            return "deleting the topic"
        case DescribeTopicConfigs():
            return "reading the configuration of the topic"
    assert_never(command)


def _describe_config(command: AlterTopicConfig) -> str:
    changes = [f"{key}={value}" for key, value in command.set.items()]
    changes.extend(f"{key} reset" for key in command.remove)
    text = ", ".join(changes[:5])
    return text if len(changes) <= 5 else f"{text} and {len(changes) - 5} more"


def accepted_event(request: TopicRequest, command: TopicCommand) -> PlannedEvent | None:
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
        case AlterTopicConfig():
            return _config_event(request, command)
        case DeleteTopic():
            return PlannedEvent(
                EventReason.TOPIC_DELETION_STARTED,
                f"started the deletion of topic {command.topic}",
                is_occurrence=True,
            )
        case DescribeTopicConfigs():
            return None
    assert_never(command)


def _config_event(request: TopicRequest, command: AlterTopicConfig) -> PlannedEvent:
    metadata, status = request.resource.metadata, request.record
    # A known generation and known keys: it was not the resource that changed.
    is_drift = (
        status.observed_generation == metadata.generation
        and request.owns_topic
        and set(command.set) <= set(status.managed_config)
    )
    if is_drift:
        return PlannedEvent(
            EventReason.DRIFT_REVERTED,
            f"somebody else changed topic {command.topic}; restored: {_describe_config(command)}",
        )
    return PlannedEvent(
        EventReason.CONFIG_CHANGED,
        f"changed the configuration of topic {command.topic}: {_describe_config(command)}",
    )
