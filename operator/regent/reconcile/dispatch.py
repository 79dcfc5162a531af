"""Which commands are sent now, and what the outcome of those already sent means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from regent.admin.commands import (
    TRANSIENT_REASONS,
    CreateTopic,
    Outcome,
    Reason,
    Rejected,
    ResourceCommand,
)
from regent.controller.view import ClusterView
from regent.model.topic import metric_name
from regent.reconcile.checks import Finding
from regent.reconcile.request import Attempt, ResourceRequest, ResourceT
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

    send: tuple[ResourceCommand, ...]
    findings: tuple[Finding, ...]
    in_flight: tuple[ResourceCommand, ...]
    wait_s: float | None


def dispatch(
    request: ResourceRequest[ResourceT],
    commands: Sequence[ResourceCommand],
    *,
    fields: Mapping[str, str],
) -> Dispatch:
    """Sort the commands that would be right into those to send and those already answered.

    Args:
        fields: Fields of the resource by the fields of commands that have another name.
    """
    send: list[ResourceCommand] = []
    findings: list[Finding] = []
    in_flight: list[ResourceCommand] = []
    waits: list[float] = []
    for command in commands:
        attempt = _attempt_of(request, command)
        if attempt is None or attempt.retry_at <= request.monotonic_s:
            send.append(command)
            continue
        waits.append(attempt.retry_at - request.monotonic_s)
        if isinstance(attempt.outcome, Rejected):
            findings.append(rejection_finding(attempt.outcome, fields=fields))
        else:
            in_flight.append(command)
    return Dispatch(tuple(send), tuple(findings), tuple(in_flight), min(waits) if waits else None)


def _attempt_of(request: ResourceRequest[ResourceT], command: ResourceCommand) -> Attempt | None:
    for attempt in request.attempts:
        if (
            attempt.command == command
            and attempt.generation == request.resource.metadata.generation
            and attempt.controller_epoch == request.view.controller_epoch
            and not _is_overtaken(attempt, request.view)
        ):
            return attempt
    return None


def _is_overtaken(attempt: Attempt, view: ClusterView) -> bool:
    """Whether what a refusal that would hold for long depends on has changed since: brokers have
    come, gone or changed, or the topics with such a name. One that is tried again soon keeps its
    growing pauses."""
    return (
        isinstance(attempt.outcome, Rejected)
        and not is_transient(attempt.outcome)
        and (
            attempt.brokers != view.brokers
            or attempt.twins != name_twins(attempt.command, attempt.outcome, view)
        )
    )


def taken_name(command: ResourceCommand, outcome: Outcome) -> str | None:
    """The name in metrics that a topic was refused for, as others have it; None: it was not."""
    if (
        isinstance(command, CreateTopic)
        and isinstance(outcome, Rejected)
        and outcome.reason is Reason.TOPIC_NAME_COLLISION
    ):
        return metric_name(command.topic)
    return None


def name_twins(command: ResourceCommand, outcome: Outcome, view: ClusterView) -> tuple[str, ...]:
    """The topics of a view that have the name in metrics that a topic was refused for; none if it
    was not."""
    name = taken_name(command, outcome)
    if name is None:
        return ()
    return tuple(sorted(topic for topic in view.topics if metric_name(topic) == name))


def rejection_finding(rejected: Rejected, *, fields: Mapping[str, str]) -> Finding:
    """A refusal of the controller as a finding, with the field of the resource it is about."""
    return Finding(
        _CONDITION_REASONS[rejected.reason.value],
        rejected.message,
        _resource_field(rejected.field, fields),
        is_transient=is_transient(rejected),
    )


def is_transient(rejected: Rejected) -> bool:
    """Whether the refusal may heal without a change of the resource."""
    return rejected.reason in TRANSIENT_REASONS or rejected.reason in _HEALING_REASONS


def _resource_field(field: str, fields: Mapping[str, str]) -> str:
    """The field of the resource for a field of a command: ``config["a.b"]`` -> ``config[a.b]``."""
    if not field:
        return ""
    return fields.get(field, "spec." + field.replace('"', ""))


def describe_commands(commands: Sequence[ResourceCommand]) -> str:
    """What is being done, for people."""
    return "; ".join(command.progress for command in commands)
