"""What becomes of the topic when its KafkaTopic is deleted.

The finalizer is the only thing that can make people wait, so it is removed as soon as nothing has
to be done: whatever is unclear keeps the topic, not the resource.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from regent.admin.commands import DeleteTopic
from regent.model.topic import is_internal_topic
from regent.reconcile.departing import plan_departing, status_if_held
from regent.reconcile.dispatch import describe_commands
from regent.reconcile.plan import (
    DEFINITION_ASKED_AGAIN_S,
    EventReason,
    FinalizerAction,
    Plan,
    PlannedEvent,
)
from regent.reconcile.topics.claims import Claim
from regent.reconcile.topics.commands import dispatch_for_topic
from regent.reconcile.topics.deletion_policy import effective_deletion_policy
from regent.reconcile.topics.drift import drift
from regent.reconcile.topics.other_cluster import (
    release_in_other_cluster,
    unknown_cluster_assessment,
)
from regent.reconcile.topics.outside_term import plan_outside_term
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.request import ClusterMatch, TopicRequest
from regent.reconcile.topics.status import DOMAIN_CONDITIONS, blind_status, observed_status
from regent.reconcile.verdicts import Assessment, Progress
from regent.resources.conditions import ConditionReason, ConditionStatus, ConditionType
from regent.resources.kafka_topic import ManagementPolicy
from regent.resources.kafka_topic_status import DeletionPolicy, KafkaTopicStatus, Ownership

_WAY_OUT: Final = "to let the resource go and keep the topic, set deletionPolicy to Retain"


def plan_deletion(request: TopicRequest) -> TopicPlan:
    """What has to be done for a resource with a deletion timestamp.

    As long as it stays it may hold up the end of its definition, which no event says.
    """
    if not request.resource.holds_finalizer:
        return plan_departing(request.resource, DOMAIN_CONDITIONS, now=request.now)
    if not request.view.may_act and request.waited_s < request.grace_s:
        return Plan(requeue_after_s=request.grace_s - request.waited_s)
    plan = _plan_deletion(request)
    if plan.finalizer is FinalizerAction.REMOVE:
        held = status_if_held(request.resource, DOMAIN_CONDITIONS, now=request.now)
        return dataclasses.replace(plan, status_if_held=held)
    if plan.status is not None and request.cluster is not ClusterMatch.OTHER:
        plan = dataclasses.replace(plan, status=_with_deletion(request, plan.status))
    again_s = DEFINITION_ASKED_AGAIN_S if plan.requeue_after_s is None else plan.requeue_after_s
    return dataclasses.replace(
        plan,
        asks_about_definition=not request.goes_with_definition,
        requeue_after_s=min(again_s, DEFINITION_ASKED_AGAIN_S),
    )


def _with_deletion(request: TopicRequest, status: KafkaTopicStatus) -> KafkaTopicStatus:
    """The status, which says that the deletion has begun if it has, whatever else there is to say:
    nothing else tells that to who lets the resource go while the topic is not seen."""
    if not request.was_deletion_begun:
        return status
    conditions = tuple(
        each.model_copy(update={"reason": ConditionReason.DELETING})
        if each.type == ConditionType.RECONCILING and each.status is ConditionStatus.TRUE
        else each
        for each in status.conditions
    )
    return status.model_copy(update={"conditions": conditions})


def _plan_deletion(request: TopicRequest) -> TopicPlan:
    if request.cluster is ClusterMatch.OTHER:
        return _plan_other_cluster(request)
    if _is_gone(request):
        return Plan(finalizer=FinalizerAction.REMOVE, events=_end_events(request))
    release = _reason_to_release(request)
    if release is not None:
        return Plan(finalizer=FinalizerAction.REMOVE, events=(release,))
    if not request.view.may_act:
        return plan_outside_term(request)
    if request.cluster is ClusterMatch.UNKNOWN:
        return Plan(status=blind_status(request, unknown_cluster_assessment()))
    return _plan_held(request)


def _is_gone(request: TopicRequest) -> bool:
    """Whether it is certain that there is no topic, and none of this resource's about to show."""
    return (
        request.view.may_act
        and request.view.knows(request.topic_name)
        and request.cluster is ClusterMatch.SAME
        and request.topic is None
        and request.creation_shows_in_s is None
    )


def _end_events(request: TopicRequest) -> tuple[PlannedEvent, ...]:
    """That the topic is gone, if this resource had one."""
    if request.record.ownership not in (Ownership.CREATED, Ownership.ADOPTED):
        return ()
    text = f"topic {request.topic_name} is gone"
    return (PlannedEvent(EventReason.TOPIC_DELETED, text, is_occurrence=True),)


def _plan_held(request: TopicRequest) -> TopicPlan:
    """The resource stays until its topic is gone, or as long as it protects it."""
    if request.problem is not None:
        message = f"{request.problem}; {_fate(request, 'once that is repaired')}"
        assessment = Assessment(Progress.STALLED, ConditionReason.TOPICS_UNREADABLE, message)
        return Plan(status=blind_status(request, assessment))
    if request.topic is None:
        if not request.view.is_complete:
            message = f"the controller is still reading the cluster; {_fate(request, 'then')}"
            return _progressing(request, ConditionReason.CLUSTER_LOADING, message)
        message = f"the topic was created a moment ago; {_fate(request, 'once that shows')}"
        return _progressing(
            request, ConditionReason.DELETING, message, requeue_after_s=request.creation_shows_in_s
        )
    if request.topic.is_being_deleted:
        return _progressing(request, ConditionReason.DELETING, _describe_wait(request))
    if _policy(request) is DeletionPolicy.PROTECT:
        return Plan(status=_status(request, _protection(request, "exists")))
    return _delete(request)


def _fate(request: TopicRequest, when: str) -> str:
    """What becomes of a topic that is not seen now."""
    if request.resource.spec.deletion_policy is DeletionPolicy.PROTECT:
        return "the topic stays, as deletionPolicy is Protect"
    return f"the topic is deleted {when}"


def _plan_other_cluster(request: TopicRequest) -> TopicPlan:
    is_protected = request.resource.spec.deletion_policy is DeletionPolicy.PROTECT
    if is_protected and not request.goes_with_definition:
        where = "is in another Kafka cluster, where it cannot be seen"
        return Plan(status=blind_status(request, _protection(request, where)))
    return release_in_other_cluster(request)


def _policy(request: TopicRequest) -> DeletionPolicy:
    ownership = request.ownership_if_kept if request.owns_topic else None
    return effective_deletion_policy(request.resource, ownership)


def _reason_to_release(request: TopicRequest) -> PlannedEvent | None:
    """The event that says why the resource may go while its topic stays; None if it may not."""
    name, successor = request.topic_name, _successor(request)
    why = _why_released(request)
    reason = EventReason.TOPIC_RETAINED
    if why is None and successor is not None and _policy(request) is DeletionPolicy.DELETE:
        why = f"KafkaTopic {successor} declares it, too, and takes over"
        reason = EventReason.TOPIC_HANDED_OVER
    if why is None:
        return None
    if request.was_deletion_begun:
        return PlannedEvent(
            EventReason.TOPIC_DELETION_CONTINUES,
            f"topic {name} is being deleted already, which cannot be undone; this resource goes "
            f"before that is done ({why})",
            is_warning=True,
        )
    was_seen = request.topic is not None or request.record.ownership is not None
    return PlannedEvent(reason, f"topic {name}{'' if was_seen else ', if any,'} stays: {why}")


def _why_released(request: TopicRequest) -> str | None:
    """Why the resource goes and its topic stays, even if others declare it; None: it does not."""
    management, policy = request.resource.spec.management_policy, _policy(request)
    if not request.may_declare:
        return "the rules do not let this namespace declare it"
    if request.is_loser or not request.owns_topic:
        return "this resource does not own it"
    if request.goes_with_definition:
        return "this resource is deleted together with the CustomResourceDefinition of KafkaTopics"
    if management is ManagementPolicy.OBSERVE:
        return "managementPolicy is Observe"
    if policy is DeletionPolicy.RETAIN:
        return _why_retained(request)
    if policy is DeletionPolicy.DELETE and management is ManagementPolicy.PAUSED:
        return "managementPolicy is Paused"
    return None


def _why_retained(request: TopicRequest) -> str:
    if is_internal_topic(request.topic_name):
        return "it is an internal topic, which is never deleted"
    if request.resource.spec.deletion_policy is DeletionPolicy.RETAIN:
        return "deletionPolicy is Retain"
    return "this resource did not create it, and deletionPolicy does not say Delete"


def _successor(request: TopicRequest) -> Claim | None:
    """The next resource in line that declares the topic and stays."""
    others = (
        claim
        for claim in request.claims_here
        if claim.uid != request.resource.metadata.uid and not claim.is_being_deleted
    )
    return min(others, key=request.precedence, default=None)


def _protection(request: TopicRequest, where: str) -> Assessment:
    return Assessment(
        Progress.STALLED,
        ConditionReason.DELETION_PROTECTED,
        f"deletionPolicy is Protect and topic {request.topic_name} {where}; {_WAY_OUT}; "
        "to delete both, set it to Delete",
    )


def _describe_wait(request: TopicRequest) -> str:
    """What the deletion under way waits for, by broker."""
    name, topic = request.topic_name, request.topic
    waits_for = () if topic is None else topic.deletion_waits_for
    if not waits_for:
        return f"topic {name} is being deleted; waiting until it is gone"
    dead = [broker for broker in waits_for if broker not in request.view.brokers]
    text = f"topic {name} is being deleted; waiting for brokers {list(waits_for)} to confirm"
    if dead:
        text += f"; of these {dead} are not alive, and the deletion goes on when they come back"
    return text


def _delete(request: TopicRequest) -> TopicPlan:
    assert request.topic is not None, "what is not there is not deleted"
    command = DeleteTopic(request.topic_name, request.topic.topic_id, request.topic.czxid)
    sent = dispatch_for_topic(request, (command,))
    finding = next(iter(sent.findings), None)
    if finding is None:
        assessment = Assessment(
            Progress.PROGRESSING,
            ConditionReason.DELETING,
            describe_commands((*sent.send, *sent.in_flight)),
        )
    else:
        progress = Progress.PROGRESSING if finding.is_transient else Progress.STALLED
        assessment = Assessment(progress, finding.reason, f"{finding.text}; {_WAY_OUT}")
    return Plan(
        status=_status(request, assessment), commands=sent.send, requeue_after_s=sent.wait_s
    )


def _progressing(
    request: TopicRequest,
    reason: ConditionReason,
    message: str,
    *,
    requeue_after_s: float | None = None,
) -> TopicPlan:
    assessment = Assessment(Progress.PROGRESSING, reason, message)
    if request.topic is None:
        status = blind_status(request, assessment)
    else:
        status = _status(request, assessment)
    return Plan(status=status, requeue_after_s=requeue_after_s)


def _status(request: TopicRequest, assessment: Assessment) -> KafkaTopicStatus:
    return observed_status(
        request,
        assessment,
        entries=drift(request),
        ownership=request.record.ownership,
        managed_config=request.record.managed_config,
    )
