"""Topics that somebody else deleted while a resource owned them.

Data is lost then, and that must never go unreported. So it is recorded in the status first of all,
whatever else is wrong with the resource, and everything that follows goes by that record.
"""

from __future__ import annotations

import dataclasses

from regent.reconcile.topics.request import ClusterMatch, TopicRequest
from regent.reconcile.verdicts import Assessment, Progress
from regent.resources.conditions import ConditionReason, rfc3339
from regent.resources.kafka_topic import ForeignDeletionPolicy, ManagementPolicy
from regent.resources.kafka_topic_status import ForeignDeletion, Ownership


def with_foreign_deletion(request: TopicRequest) -> TopicRequest:
    """The request, with the loss recorded in its status if the resource's topic was deleted.

    The topic has gone from a view that is complete, or is being deleted though its resource is not,
    or is another one. Only a topic that was seen before can be lost.
    """
    if not _is_lost(request):
        return request
    found = ForeignDeletion(
        topic_id=request.known_as.topic_id,
        detected_at=rfc3339(request.now),
        recreated_as=_identity(request) if request.is_recreated else None,
    )
    status = request.record.model_copy(
        update={"ownership": Ownership.LOST, "managed_config": (), "last_foreign_deletion": found}
    )
    resource = request.resource.model_copy(update={"status": status})
    return dataclasses.replace(request, resource=resource, created=None, created_as=None)


def _identity(request: TopicRequest) -> str | None:
    """What the existing topic is known by."""
    czxid = request.topic_czxid
    return request.topic_id or (None if czxid is None else f"cZxid {czxid}")


def _is_lost(request: TopicRequest) -> bool:
    is_owner = (
        request.record.ownership in (Ownership.CREATED, Ownership.ADOPTED)
        or request.created_as is not None
    )
    if not is_owner or request.resource.metadata.is_being_deleted:
        return False
    if not request.may_declare:
        return False
    if not request.view.may_act or request.cluster is not ClusterMatch.SAME:
        return False
    if request.topic is None:
        return request.view.knows(request.topic_name)
    return request.topic.is_being_deleted or request.is_recreated


def awaits_decision(request: TopicRequest) -> bool:
    """Whether the topic is lost and its recreation has not been confirmed yet."""
    if request.record.ownership is not Ownership.LOST:
        return False
    spec = request.resource.spec
    match spec.management_policy:
        case ManagementPolicy.MANAGED:
            return spec.on_foreign_deletion is ForeignDeletionPolicy.ALERT
        case ManagementPolicy.PAUSED:
            return True
        case ManagementPolicy.OBSERVE:
            return False


def foreign_deletion_assessment(request: TopicRequest) -> Assessment:
    """What is said as long as :func:`awaits_decision`."""
    found = request.record.last_foreign_deletion
    named = f"topic {request.topic_name}"
    if found is not None and found.topic_id is not None:
        named += f" (id {found.topic_id})"
    since = "" if found is None else f", found out at {found.detected_at}"
    managed = "" if _is_managed(request) else " and managementPolicy to Managed"
    return Assessment(
        Progress.STALLED,
        ConditionReason.TOPIC_DELETED_EXTERNALLY,
        f"somebody else deleted {named} with all its data{since}; to have an empty topic created, "
        f"set onForeignDeletion to Recreate{managed}; if the topic is to be gone, delete this "
        "resource",
    )


def _is_managed(request: TopicRequest) -> bool:
    return request.resource.spec.management_policy is ManagementPolicy.MANAGED
