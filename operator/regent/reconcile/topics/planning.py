"""Reconciling a KafkaTopic: what is known goes in, a plan comes out.

The order of questions: does the resource belong to this cluster; is it possible in itself; is it
the one that counts for its topic; does the view know; does the topic exist, and whose is it; how
does it differ. The first answer that settles the matter becomes the conditions. Only differences
that the resource may change lead to commands; the others are named and do not block
the rest.
"""

from __future__ import annotations

import dataclasses
from functools import partial

from regent.admin.commands import DescribeTopicConfigs
from regent.reconcile.checks import Finding, all_findings, first_finding
from regent.reconcile.loading import plan_kept_answer
from regent.reconcile.other_regent import plan_looked_after
from regent.reconcile.plan import EventReason, FinalizerAction, Plan, PlannedEvent
from regent.reconcile.topics.assessment import assess, leadership_assessment_or
from regent.reconcile.topics.checks import (
    CLUSTER_CHECKS,
    CREATION_CHECKS,
    GROWTH_CHECKS,
    LIMIT_CHECKS,
    NAME_CHECKS,
    SPEC_CHECKS,
    partitions_are_numbered_through,
)
from regent.reconcile.topics.commands import dispatch_for_topic
from regent.reconcile.topics.deletion import plan_deletion
from regent.reconcile.topics.deletion_policy import effective_deletion_policy
from regent.reconcile.topics.drift import (
    change_commands,
    creation_command,
    describe_drift,
    drift,
    managed_keys,
)
from regent.reconcile.topics.foreign_deletion import (
    awaits_decision,
    foreign_deletion_assessment,
    with_foreign_deletion,
)
from regent.reconcile.topics.other_cluster import plan_other_cluster
from regent.reconcile.topics.outside_term import plan_outside_term
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.replication_factor import replica_change
from regent.reconcile.topics.request import ClusterMatch, TopicRequest
from regent.reconcile.topics.status import (
    as_declared_message,
    blind_status,
    is_being_born,
    observed_status,
)
from regent.reconcile.topics.transitions import is_new_drift
from regent.reconcile.verdicts import CLUSTER_LOADING, Assessment, Progress
from regent.resources.conditions import ConditionReason
from regent.resources.kafka_topic import AdoptionPolicy, ManagementPolicy
from regent.resources.kafka_topic_status import DeletionPolicy, KafkaTopicStatus, Ownership
from regent.zk_data import paths


def plan_topic(request: TopicRequest) -> TopicPlan:
    """What has to be done for a KafkaTopic, given everything that is known now."""
    looked_after = plan_looked_after(request, partial(blind_status, request))
    if looked_after is not None:
        return looked_after
    if request.resource.metadata.is_being_deleted:
        return plan_deletion(request)
    return _plan_living(with_foreign_deletion(request))


def _plan_living(request: TopicRequest) -> TopicPlan:
    if not request.view.may_act:
        return plan_outside_term(request)
    kept = plan_kept_answer(request) if request.topic is None else None
    return _plan_in_term(request) if kept is None else kept


def _plan_in_term(request: TopicRequest) -> TopicPlan:
    if request.cluster is not ClusterMatch.SAME:
        return plan_other_cluster(request)
    forbidden = first_finding(NAME_CHECKS, request)
    if forbidden is not None:
        return _forbidden(request, forbidden)
    finding = first_finding(SPEC_CHECKS, request.resource) or first_finding(CLUSTER_CHECKS, request)
    if finding is not None:
        return _refused(request, finding)
    if request.is_loser:
        return _conflict(request)
    if request.problem is not None:
        return _plan_unreadable(request, request.problem)
    if request.topic is not None and request.topic.is_being_deleted:
        if awaits_decision(request):
            return _plan_lost(request)
        return _waiting(
            request,
            ConditionReason.TOPIC_MARKED_FOR_DELETION,
            f"topic {request.topic_name} is being deleted; waiting until it is gone",
        )
    if request.topic is None:
        return _plan_absent(request)
    return _plan_existing(request)


def _forbidden(request: TopicRequest, finding: Finding) -> TopicPlan:
    """The topic is none of the namespace's business: nothing is done, and nothing shown of it."""
    assessment = Assessment(Progress.STALLED, finding.reason, finding.text)
    return Plan(status=blind_status(request, assessment))


def _refused(request: TopicRequest, finding: Finding) -> TopicPlan:
    """The resource itself is impossible: nothing is sent, what is known is shown."""
    return _plan_nothing(request, Assessment(Progress.STALLED, finding.reason, finding.text))


def _plan_unreadable(request: TopicRequest, problem: str) -> TopicPlan:
    """The topic exists, and nobody knows what it has: nothing is done, nothing concluded."""
    message = f"{problem}; nothing is changed until it is repaired"
    assessment = Assessment(Progress.STALLED, ConditionReason.TOPICS_UNREADABLE, message)
    return Plan(status=blind_status(request, assessment))


def _plan_nothing(request: TopicRequest, assessment: Assessment) -> TopicPlan:
    """Say something and change nothing: neither the cluster nor what is recorded."""
    record = request.record
    begun = Ownership.CREATING if request.created is not None else None
    return Plan(
        status=_status(
            request,
            assessment,
            ownership=record.ownership or begun,
            managed_config=record.managed_config,
        )
    )


def _plan_lost(request: TopicRequest) -> TopicPlan:
    """Somebody else deleted the topic: nothing is created before somebody wants it."""
    return _plan_nothing(request, foreign_deletion_assessment(request))


def _conflict(request: TopicRequest) -> TopicPlan:
    """Another resource owns the topic. This one releases everything, and recovers when it wins."""
    assessment = Assessment(
        Progress.STALLED,
        ConditionReason.RESOURCE_CONFLICT,
        f"KafkaTopic {request.winner} declares topic {request.topic_name}, too, and owns it or is "
        f"older; {_way_out_of_conflict(request)}",
    )
    return Plan(
        status=_status(request, assessment, ownership=None, managed_config=()),
        finalizer=_release(request),
    )


def _way_out_of_conflict(request: TopicRequest) -> str:
    """One that was seen before its namespace became unreadable keeps its topic: that it cannot be
    read does not say that it is gone."""
    winner = request.winner
    if winner is None or winner.namespace not in request.unreadable_namespaces:
        return "delete one of the two, or let this one only watch (managementPolicy: Observe)"
    return (
        f"whether it still exists is not known: Regent may not read namespace {winner.namespace} "
        "any more. Give it its rights there back; or, if the namespace is gone, take it off the "
        "list of namespaces and restart Regent"
    )


def _waiting(request: TopicRequest, reason: ConditionReason, message: str) -> TopicPlan:
    """Nothing can be done before the cluster changes; the view shows when it does."""
    return _plan_nothing(request, Assessment(Progress.PROGRESSING, reason, message))


def _plan_absent(request: TopicRequest) -> TopicPlan:
    """The topic does not exist, or the view does not know yet."""
    if not request.view.is_complete:
        return Plan(status=blind_status(request, CLUSTER_LOADING))
    if awaits_decision(request):
        return _plan_lost(request)
    shows_in_s = request.creation_shows_in_s
    if shows_in_s is not None:
        if request.may_creation_stay_unsaid:
            return _say_nothing_yet(request)
        waiting = _waiting(request, ConditionReason.CREATING, "the topic is being created")
        return dataclasses.replace(waiting, requeue_after_s=shows_in_s, finalizer=_hold(request))
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
    sent = dispatch_for_topic(request, (command,))
    status = _status(
        request,
        assess(request, sent, (), idle_reason=ConditionReason.CREATING),
        ownership=Ownership.CREATING,
        managed_config=tuple(command.config),
    )
    return Plan(
        status=status,
        commands=sent.send,
        status_first=bool(sent.send) and _needs_stored_intent(request, status),
        finalizer=_hold(request),
        requeue_after_s=sent.wait_s,
    )


def _say_nothing_yet(request: TopicRequest) -> TopicPlan:
    """The topic is being born, which the view will show: one status then instead of two."""
    return Plan(finalizer=_hold(request), requeue_after_s=request.creation_shows_in_s)


def _needs_stored_intent(request: TopicRequest, intent: KafkaTopicStatus) -> bool:
    """Whether the id of the new topic must be stored before the topic is created.

    Were the topic created and this process gone before the status is stored, it would be taken for
    somebody else's; and after a loss it would seem lost once more. With Adopt the id of the first
    topic of a resource without a status shows whose it is.
    """
    record = request.record
    if record.ownership is Ownership.CREATING:
        return record.intended_topic_id != intent.intended_topic_id
    adopts = request.resource.spec.adoption_policy is AdoptionPolicy.ADOPT
    return not (adopts and request.is_untold)


def _plan_existing(request: TopicRequest) -> TopicPlan:
    if request.config is None:
        return _plan_reading(request)
    spec = request.resource.spec
    if spec.management_policy is not ManagementPolicy.MANAGED:
        return _plan_watching(request)
    if not request.owns_topic and spec.adoption_policy is not AdoptionPolicy.ADOPT:
        return _plan_unadopted(request)
    if request.may_creation_stay_unsaid and is_being_born(request.topic):
        return _say_nothing_yet(request)
    obstacles = all_findings(GROWTH_CHECKS, request)
    replicas = replica_change(request)
    commands = change_commands(request, may_grow=not obstacles, reassignment=replicas.command)
    sent = dispatch_for_topic(request, commands)
    limits = (*obstacles, *all_findings(LIMIT_CHECKS, request), *replicas.findings)
    status = _status(
        request,
        assess(request, sent, limits, idle_reason=ConditionReason.CHANGING),
        ownership=request.ownership_if_kept,
        managed_config=managed_keys(request),
    )
    return Plan(
        status=status,
        commands=sent.send,
        # What somebody else has changed is shown before it is corrected.
        status_first=bool(sent.send) and is_new_drift(request.record, status),
        finalizer=_hold(request),
        events=_adoption_events(request),
        requeue_after_s=sent.wait_s,
    )


def _adoption_events(request: TopicRequest) -> tuple[PlannedEvent, ...]:
    """That the topic becomes the resource's own now though the resource did not create it."""
    before, now = request.record.ownership, request.ownership_if_kept
    if now is not Ownership.ADOPTED or before is Ownership.ADOPTED:
        return ()
    was_lost = before is Ownership.LOST and not request.owns_topic
    origin = "was deleted and created again by somebody else" if was_lost else "existed before"
    message = f"took over topic {request.topic_name}, which {origin}"
    return (PlannedEvent(EventReason.TOPIC_ADOPTED, message),)


def _plan_reading(request: TopicRequest) -> TopicPlan:
    """The topic's configuration is not known: ask for it before anything is decided."""
    sent = dispatch_for_topic(request, (DescribeTopicConfigs((request.topic_name,)),))
    if sent.send:
        return Plan(commands=sent.send)
    if sent.findings:
        reason, message = sent.findings[0].reason, sent.findings[0].text
    else:
        # Accepted without an answer for this topic: it has just vanished, or its znode is garbage.
        reason = ConditionReason.INTERNAL_ERROR
        name = request.topic_name
        message = (
            f"the configuration of topic {name} cannot be read: {paths.topic_config(name)} is "
            "malformed, or Regent may not read it; its log says which; trying again"
        )
    assessment = Assessment(Progress.PROGRESSING, reason, message)
    return Plan(status=blind_status(request, assessment), requeue_after_s=sent.wait_s)


def _plan_watching(request: TopicRequest) -> TopicPlan:
    """Paused or Observe: show everything, write nothing."""
    spec = request.resource.spec
    paused = spec.management_policy is ManagementPolicy.PAUSED
    reason = ConditionReason.PAUSED if paused else ConditionReason.OBSERVED
    gap = partitions_are_numbered_through(request)
    if gap is not None:
        assessment = Assessment(Progress.STALLED, gap.reason, gap.text)
    else:
        entries = drift(request)
        state = describe_drift(entries) if entries else as_declared_message(request)
        assessment = leadership_assessment_or(
            request,
            Assessment(Progress.READY, reason, f"{reason.lower()}: nothing is written; {state}"),
        )
    keeps = paused and request.owns_topic
    foreign = _ownership_of_foreign_topic(request) if paused else None
    return Plan(
        status=_status(
            request,
            assessment,
            ownership=request.ownership_if_kept if keeps else foreign,
            managed_config=request.record.managed_config if keeps else (),
        ),
        finalizer=_hold(request) if keeps else _release(request),
    )


def _plan_unadopted(request: TopicRequest) -> TopicPlan:
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
    gap = partitions_are_numbered_through(request)
    if gap is not None:
        message = f"{assessment.message}; {gap.text}"
        assessment = dataclasses.replace(assessment, message=message)
    ownership = _ownership_of_foreign_topic(request)
    return Plan(
        status=_status(request, assessment, ownership=ownership, managed_config=()),
        finalizer=_release(request),
    )


def _ownership_of_foreign_topic(request: TopicRequest) -> Ownership | None:
    """A loss is remembered: should the foreign topic go, too, none is created unasked."""
    return Ownership.LOST if request.record.ownership is Ownership.LOST else None


def _status(
    request: TopicRequest,
    assessment: Assessment,
    *,
    ownership: Ownership | None,
    managed_config: tuple[str, ...],
) -> KafkaTopicStatus:
    """The status; blind if the view does not know whether there is a topic."""
    view = request.view
    knows = view.may_act and (request.topic is not None or view.knows(request.topic_name))
    if not knows:
        return blind_status(request, assessment)
    return observed_status(
        request,
        assessment,
        entries=drift(request),
        ownership=ownership,
        managed_config=managed_config,
    )


def _hold(request: TopicRequest) -> FinalizerAction:
    """The finalizer of a resource that owns its topic: held unless the topic is retained."""
    resource = request.resource
    ownership = Ownership.CREATING if request.topic is None else request.ownership_if_kept
    if effective_deletion_policy(resource, ownership) is DeletionPolicy.RETAIN:
        return _release(request)
    return FinalizerAction.LEAVE if resource.holds_finalizer else FinalizerAction.ADD


def _release(request: TopicRequest) -> FinalizerAction:
    return FinalizerAction.REMOVE if request.resource.holds_finalizer else FinalizerAction.LEAVE
