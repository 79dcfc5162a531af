"""What becomes of the topic when its KafkaTopic is deleted.

The finalizer is the only thing that can make people wait, so it is let go as soon as nothing has to
be done: whatever is unclear keeps the topic, not the resource.
"""

from __future__ import annotations

from typing import Final

from regent.controller.commands import DeleteTopic
from regent.reconcile.plan import (
    Claim,
    EventReason,
    FinalizerAction,
    Plan,
    PlannedEvent,
    TopicRequest,
)
from regent.reconcile.topic_commands import describe_commands, dispatch
from regent.reconcile.topic_drift import drift
from regent.reconcile.topic_status import Assessment, Progress, blind_status, observed_status
from regent.resources.conditions import ConditionReason
from regent.resources.kafka_topic import DeletionPolicy, ManagementPolicy
from regent.resources.kafka_topic_status import KafkaTopicStatus

INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)
"""Topics that Kafka itself keeps its state in. Deleting one loses every consumer's position."""

_WAY_OUT: Final = "to let the resource go and keep the topic, set deletionPolicy to Retain"


def plan_deletion(request: TopicRequest, *, grace_s: float) -> Plan:
    """What has to be done for a resource with a deletion timestamp.

    Args:
        grace_s: How long a process that is not the controller waits for one that is to act.
    """
    if not request.resource.holds_finalizer:
        return Plan()
    if not request.view.is_active and request.unanswered_s < grace_s:
        return Plan(requeue_after_s=grace_s - request.unanswered_s)
    release = _reason_to_release(request)
    if release is not None:
        return Plan(finalizer=FinalizerAction.REMOVE, events=(release,))
    if not request.view.is_active:
        return _plan_inactive(request)
    if request.topic is None:
        if not request.view.is_complete:
            message = "the controller is still reading the cluster; then the topic is deleted"
            return _progressing(request, ConditionReason.CLUSTER_LOADING, message)
        event = PlannedEvent(EventReason.TOPIC_DELETED, f"topic {request.topic_name} is gone")
        return Plan(finalizer=FinalizerAction.REMOVE, events=(event,))
    protection = _protection(request)
    if protection is not None:
        return Plan(status=_status(request, protection))
    if request.topic.is_being_deleted:
        message = f"topic {request.topic_name} is being deleted; waiting until it is gone"
        return _progressing(request, ConditionReason.DELETING, message)
    return _delete(request)


def _reason_to_release(request: TopicRequest) -> PlannedEvent | None:
    """The event that tells why the resource may go while its topic stays; None if it may not."""
    resource, name = request.resource, request.topic_name
    spec = resource.spec
    heir = _heir(request)
    if request.is_loser or not request.owns_topic:
        why = "this resource does not own it"
    elif spec.management_policy is ManagementPolicy.OBSERVE:
        why = "managementPolicy is Observe"
    elif spec.deletion_policy is DeletionPolicy.RETAIN:
        why = "deletionPolicy is Retain"
    elif spec.deletion_policy is DeletionPolicy.PROTECT:
        return None
    elif spec.management_policy is ManagementPolicy.PAUSED:
        why = "managementPolicy is Paused"
    elif heir is not None:
        return PlannedEvent(
            EventReason.TOPIC_HANDED_OVER,
            f"topic {name} stays: KafkaTopic {heir} declares it, too, and takes over",
        )
    else:
        return None
    return PlannedEvent(EventReason.TOPIC_RETAINED, f"topic {name} stays: {why}")


def _heir(request: TopicRequest) -> Claim | None:
    """The next resource in line that declares the topic and stays."""
    others = (
        claim
        for claim in request.claims
        if claim.uid != request.resource.metadata.uid and not claim.is_being_deleted
    )
    return min(others, key=lambda claim: claim.precedence, default=None)


def _protection(request: TopicRequest) -> Assessment | None:
    name = request.topic_name
    if name in INTERNAL_TOPICS:
        message = f"topic {name} belongs to Kafka itself and is never deleted; {_WAY_OUT}"
    elif request.resource.spec.deletion_policy is DeletionPolicy.PROTECT:
        message = (
            f"deletionPolicy is Protect and topic {name} exists; {_WAY_OUT}; "
            "to delete both, set it to Delete"
        )
    else:
        return None
    return Assessment(Progress.STALLED, ConditionReason.DELETION_PROTECTED, message)


def _plan_inactive(request: TopicRequest) -> Plan:
    if request.is_answered:
        return Plan()
    message = (
        "no Regent process is the controller of the Kafka cluster; the topic is deleted as soon "
        f"as one is; {_WAY_OUT}"
    )
    assessment = Assessment(Progress.PROGRESSING, ConditionReason.CONTROLLER_INACTIVE, message)
    return Plan(status=blind_status(request, assessment))


def _delete(request: TopicRequest) -> Plan:
    sent = dispatch(request, (DeleteTopic(request.topic_name),))
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


def _progressing(request: TopicRequest, reason: ConditionReason, message: str) -> Plan:
    assessment = Assessment(Progress.PROGRESSING, reason, message)
    if request.topic is None:
        return Plan(status=blind_status(request, assessment))
    return Plan(status=_status(request, assessment))


def _status(request: TopicRequest, assessment: Assessment) -> KafkaTopicStatus:
    status = request.resource.status
    return observed_status(
        request,
        assessment,
        entries=drift(request),
        ownership=status.ownership,
        managed_config=status.managed_config,
    )
