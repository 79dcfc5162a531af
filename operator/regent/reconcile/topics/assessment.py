"""How a KafkaTopic is doing: the most important thing to say of all that is known."""

from __future__ import annotations

from regent.admin.commands import ReassignTopic
from regent.model.topic import is_internal_topic
from regent.reconcile.checks import Finding
from regent.reconcile.dispatch import Dispatch, describe_commands
from regent.reconcile.topics.checks import foreign_config_problem
from regent.reconcile.topics.replication_factor import replica_change_assessment
from regent.reconcile.topics.request import TopicRequest
from regent.reconcile.topics.status import (
    as_declared_message,
    leadership_assessment,
    refusal_assessment,
    silence_assessment,
    unreached_assessment,
)
from regent.reconcile.verdicts import Assessment, Progress
from regent.resources.conditions import ConditionReason


def assess(
    request: TopicRequest,
    sent: Dispatch,
    limits: tuple[Finding, ...],
    *,
    idle_reason: ConditionReason,
) -> Assessment:
    """The most important thing to say about a managed topic."""
    findings = (*sent.findings, *limits)
    permanent = tuple(finding for finding in findings if not finding.is_transient)
    if permanent:
        text = "; ".join(finding.text for finding in permanent)
        return Assessment(Progress.STALLED, permanent[0].reason, text)
    if findings:
        text = "; ".join(finding.text for finding in findings)
        return Assessment(Progress.PROGRESSING, findings[0].reason, f"{text}; trying again")
    pending = [c for c in (*sent.in_flight, *sent.send) if not isinstance(c, ReassignTopic)]
    if pending:
        return Assessment(Progress.PROGRESSING, idle_reason, describe_commands(pending))
    replicas = replica_change_assessment(request)
    if replicas is not None:
        return leadership_assessment_or(request, replicas)
    message = _as_declared(request)
    foreign = foreign_config_problem(request)
    if foreign is not None:
        message += f"; brokers could not load what somebody else has configured: {foreign}"
    return leadership_assessment_or(
        request, Assessment(Progress.READY, ConditionReason.AS_DECLARED, message)
    )


def _as_declared(request: TopicRequest) -> str:
    message = as_declared_message(request)
    if is_internal_topic(request.topic_name):
        message += "; being an internal one, it is never deleted"
    return message


def leadership_assessment_or(request: TopicRequest, otherwise: Assessment) -> Assessment:
    """That brokers refuse replicas, or partitions have no leader or none that knows it, if so; else
    ``otherwise``."""
    if request.topic is None:
        return otherwise
    topic = request.topic
    return (
        refusal_assessment(topic)
        or leadership_assessment(topic, request.view.brokers)
        or unreached_assessment(topic)
        or silence_assessment(request)
        or otherwise
    )
