"""Reconciling a KafkaTopic: what is known goes in, a plan comes out.

The order of questions: is the resource itself possible; is it the one that counts for its topic;
can the view tell; does the topic exist, and whose is it; how does it differ. The first answer that
settles the matter becomes the conditions. Only differences the resource may change lead to
commands; the others are named and do not stand in the way of the rest.
"""

from __future__ import annotations

from typing import Final

from regent.controller.commands import Command, DescribeTopicConfigs
from regent.reconcile.checks import Finding, all_findings, first_finding
from regent.reconcile.plan import EventReason, FinalizerAction, Plan, PlannedEvent, TopicRequest
from regent.reconcile.topic_checks import (
    CLUSTER_CHECKS,
    CREATION_CHECKS,
    LIMIT_CHECKS,
    SPEC_CHECKS,
    foreign_config_problem,
)
from regent.reconcile.topic_commands import Dispatch, describe_commands, dispatch
from regent.reconcile.topic_deletion import plan_deletion
from regent.reconcile.topic_drift import (
    change_commands,
    creation_command,
    describe_drift,
    drift,
    managed_keys,
)
from regent.reconcile.topic_status import (
    Assessment,
    Progress,
    blind_status,
    leadership_assessment,
    observed_status,
)
from regent.resources.conditions import ConditionReason
from regent.resources.kafka_topic import AdoptionPolicy, DeletionPolicy, ManagementPolicy
from regent.resources.kafka_topic_status import KafkaTopicStatus, Ownership

INACTIVE_GRACE_S: Final = 30.0
"""How long a resource must go unanswered before a process that is not the controller says so.

While another replica is the controller, it answers within this time, and the standby stays quiet.
"""


def plan_topic(request: TopicRequest) -> Plan:
    """What has to be done for a KafkaTopic, given everything that is known now."""
    if request.resource.metadata.is_being_deleted:
        return plan_deletion(request, grace_s=INACTIVE_GRACE_S)
    return _plan_living(request)


def _plan_living(request: TopicRequest) -> Plan:
    if not request.view.is_active:
        return _plan_inactive(request)
    finding = first_finding(SPEC_CHECKS, request.resource) or first_finding(CLUSTER_CHECKS, request)
    if finding is not None:
        return _refused(request, finding)
    if request.is_loser:
        return _conflict(request)
    if request.topic is not None and request.topic.is_being_deleted:
        return _waiting(
            request,
            ConditionReason.TOPIC_MARKED_FOR_DELETION,
            f"topic {request.topic_name} is being deleted; waiting until it is gone",
        )
    if request.topic is None:
        return _plan_absent(request)
    return _plan_existing(request)


def _refused(request: TopicRequest, finding: Finding) -> Plan:
    """The resource itself is impossible: nothing is sent, what is known is shown."""
    status = request.resource.status
    return Plan(
        status=_status(
            request,
            Assessment(Progress.STALLED, finding.reason, finding.text),
            ownership=status.ownership if request.owns_topic else None,
            managed_config=status.managed_config,
        )
    )


def _conflict(request: TopicRequest) -> Plan:
    """Another resource owns the topic. This one lets go of everything, and heals when it wins."""
    assessment = Assessment(
        Progress.STALLED,
        ConditionReason.RESOURCE_CONFLICT,
        f"KafkaTopic {request.winner} declares topic {request.topic_name}, too, and is older; "
        "delete one of the two, or let this one only watch (managementPolicy: Observe)",
    )
    return Plan(
        status=_status(request, assessment, ownership=None, managed_config=()),
        finalizer=_release(request),
    )


def _plan_inactive(request: TopicRequest) -> Plan:
    """No controller here. Say something only where no other process seems to answer."""
    if request.is_answered:
        return Plan()
    left_s = INACTIVE_GRACE_S - request.unanswered_s
    if left_s > 0:
        return Plan(requeue_after_s=left_s)
    finding = first_finding(SPEC_CHECKS, request.resource)
    if finding is not None:
        assessment = Assessment(Progress.STALLED, finding.reason, finding.text)
    else:
        assessment = Assessment(
            Progress.PROGRESSING,
            ConditionReason.CONTROLLER_INACTIVE,
            "no Regent process is the controller of the Kafka cluster; waiting for one",
        )
    return Plan(status=blind_status(request, assessment))


def _waiting(request: TopicRequest, reason: ConditionReason, message: str) -> Plan:
    """Nothing can be done before the cluster changes; the view tells when it does."""
    status = request.resource.status
    assessment = Assessment(Progress.PROGRESSING, reason, message)
    return Plan(
        status=_status(
            request,
            assessment,
            ownership=status.ownership if request.owns_topic else None,
            managed_config=status.managed_config,
        )
    )


def _plan_absent(request: TopicRequest) -> Plan:
    """The topic does not exist, or the view cannot tell yet."""
    if not request.view.is_complete:
        assessment = Assessment(
            Progress.PROGRESSING,
            ConditionReason.CLUSTER_LOADING,
            "the controller is still reading the cluster",
        )
        return Plan(status=blind_status(request, assessment))
    policy = request.resource.spec.management_policy
    if policy is not ManagementPolicy.MANAGED:
        assessment = Assessment(
            Progress.STALLED,
            ConditionReason.TOPIC_NOT_FOUND,
            f"topic {request.topic_name} does not exist and is not created while "
            f"managementPolicy is {policy}",
        )
        return Plan(
            status=_status(request, assessment, ownership=None, managed_config=()),
            finalizer=_release(request),
        )
    shortage = first_finding(CREATION_CHECKS, request)
    if shortage is not None:
        return _waiting(request, shortage.reason, shortage.text)
    command = creation_command(request)
    sent = dispatch(request, (command,))
    # Were the topic created and this process gone before the status is stored, another policy than
    # Adopt could not tell it from somebody else's: so the intent is stored first.
    adopts = request.resource.spec.adoption_policy is AdoptionPolicy.ADOPT
    known = request.resource.status.ownership is Ownership.CREATING
    lost_race = any(f.reason is ConditionReason.TOPIC_ALREADY_EXISTS for f in sent.findings)
    status = _status(
        request,
        _assess(request, sent, (), idle_reason=ConditionReason.CREATING),
        ownership=None if lost_race else Ownership.CREATING,
        managed_config=tuple(command.config),
    )
    return Plan(
        status=status,
        commands=sent.send,
        status_first=bool(sent.send) and not adopts and not known,
        finalizer=_hold(request),
        requeue_after_s=sent.wait_s,
    )


def _plan_existing(request: TopicRequest) -> Plan:
    if request.config is None:
        return _plan_reading(request)
    spec, status = request.resource.spec, request.resource.status
    if spec.management_policy is not ManagementPolicy.MANAGED:
        return _plan_watching(request)
    if not request.owns_topic and spec.adoption_policy is not AdoptionPolicy.ADOPT:
        return _plan_unadopted(request)
    commands = change_commands(request)
    sent = dispatch(request, commands)
    limits = all_findings(LIMIT_CHECKS, request)
    born = (Ownership.CREATING, Ownership.CREATED)
    is_own = request.has_just_created or (request.owns_topic and status.ownership in born)
    events: tuple[PlannedEvent, ...] = ()
    if not is_own and (status.ownership is None or request.is_recreated):
        origin = "was deleted and created again" if request.is_recreated else "existed before"
        message = f"took over topic {request.topic_name}, which {origin}"
        events = (PlannedEvent(EventReason.TOPIC_ADOPTED, message),)
    return Plan(
        status=_status(
            request,
            _assess(request, sent, limits, idle_reason=ConditionReason.CHANGING),
            ownership=Ownership.CREATED if is_own else Ownership.ADOPTED,
            managed_config=managed_keys(request),
        ),
        commands=sent.send,
        finalizer=_hold(request),
        events=events,
        requeue_after_s=sent.wait_s,
    )


def _plan_reading(request: TopicRequest) -> Plan:
    """The topic's configuration is not known: ask for it before anything is decided."""
    sent = dispatch(request, (DescribeTopicConfigs((request.topic_name,)),))
    if sent.send:
        return Plan(commands=sent.send)
    if sent.findings:
        reason, message = sent.findings[0].reason, sent.findings[0].text
    else:
        # Accepted without an answer for this topic: it has just vanished, or its znode is garbage.
        reason = ConditionReason.INTERNAL_ERROR
        message = f"the configuration of topic {request.topic_name} cannot be read; trying again"
    assessment = Assessment(Progress.PROGRESSING, reason, message)
    return Plan(status=blind_status(request, assessment), requeue_after_s=sent.wait_s)


def _plan_watching(request: TopicRequest) -> Plan:
    """Paused or Observe: show everything, write nothing."""
    spec, status = request.resource.spec, request.resource.status
    paused = spec.management_policy is ManagementPolicy.PAUSED
    reason = ConditionReason.PAUSED if paused else ConditionReason.OBSERVED
    entries = drift(request)
    state = describe_drift(entries) if entries else "the topic is as declared"
    assessment = leadership_assessment_or(
        request,
        Assessment(Progress.READY, reason, f"{reason.lower()}: nothing is written; {state}"),
    )
    keeps = paused and request.owns_topic
    return Plan(
        status=_status(
            request,
            assessment,
            ownership=status.ownership if keeps else None,
            managed_config=status.managed_config if keeps else (),
        ),
        finalizer=_hold(request) if keeps else _release(request),
    )


def _plan_unadopted(request: TopicRequest) -> Plan:
    """The topic existed before and must not be taken over without a word from somebody."""
    entries = drift(request)
    state = describe_drift(entries) if entries else "nothing would change"
    if request.resource.spec.adoption_policy is AdoptionPolicy.PREVIEW:
        assessment = Assessment(
            Progress.STALLED,
            ConditionReason.ADOPTION_PREVIEW,
            f"topic {request.topic_name} existed before; set adoptionPolicy to Adopt to take it "
            f"over: {state}",
        )
    else:
        assessment = Assessment(
            Progress.STALLED,
            ConditionReason.ADOPTION_REFUSED,
            f"topic {request.topic_name} existed before and adoptionPolicy is Refuse; declare "
            "another topicName, or set adoptionPolicy to Adopt",
        )
    return Plan(
        status=_status(request, assessment, ownership=None, managed_config=()),
        finalizer=_release(request),
    )


def _assess(
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
    pending: tuple[Command, ...] = (*sent.in_flight, *sent.send)
    if pending:
        return Assessment(Progress.PROGRESSING, idle_reason, describe_commands(pending))
    message = "the topic is as declared"
    foreign = foreign_config_problem(request)
    if foreign is not None:
        message += f"; brokers could not load what somebody else has configured: {foreign}"
    return leadership_assessment_or(
        request, Assessment(Progress.READY, ConditionReason.AS_DECLARED, message)
    )


def leadership_assessment_or(request: TopicRequest, otherwise: Assessment) -> Assessment:
    """That partitions have no leader, if so; else ``otherwise``."""
    missing = None if request.topic is None else leadership_assessment(request.topic)
    return otherwise if missing is None else missing


def _status(
    request: TopicRequest,
    assessment: Assessment,
    *,
    ownership: Ownership | None,
    managed_config: tuple[str, ...],
) -> KafkaTopicStatus:
    """The status; blind if the view cannot tell whether there is a topic."""
    knows = request.view.is_active and (request.topic is not None or request.view.is_complete)
    if not knows:
        blind = blind_status(request, assessment)
        return blind.model_copy(update={"ownership": ownership, "managed_config": managed_config})
    return observed_status(
        request,
        assessment,
        entries=drift(request),
        ownership=ownership,
        managed_config=managed_config,
    )


def _hold(request: TopicRequest) -> FinalizerAction:
    """The finalizer of a resource that owns its topic: held unless the policy is Retain."""
    resource = request.resource
    if resource.spec.deletion_policy is DeletionPolicy.RETAIN:
        return _release(request)
    return FinalizerAction.LEAVE if resource.holds_finalizer else FinalizerAction.ADD


def _release(request: TopicRequest) -> FinalizerAction:
    return FinalizerAction.REMOVE if request.resource.holds_finalizer else FinalizerAction.LEAVE
