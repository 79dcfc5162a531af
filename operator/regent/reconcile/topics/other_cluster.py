"""Resources whose topic is in another Kafka cluster than the one Regent controls.

That happens when ZooKeeper was rebuilt, or Regent was pointed at another one. Nothing that the
status says holds there, so nothing is done: neither is a topic of the same name touched, nor is one
created, until spec.clusterId names the cluster.
"""

from __future__ import annotations

from regent.reconcile.plan import EventReason, FinalizerAction, Plan, PlannedEvent
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.request import ClusterMatch, TopicRequest
from regent.reconcile.topics.status import blind_status
from regent.reconcile.verdicts import Assessment, Progress
from regent.resources.conditions import ConditionReason


def plan_other_cluster(request: TopicRequest) -> TopicPlan:
    """The plan for a living resource that does not belong, or may not belong, to this cluster."""
    if request.cluster is ClusterMatch.UNKNOWN:
        return Plan(status=blind_status(request, unknown_cluster_assessment()))
    actual, declared = request.view.cluster_id, request.resource.spec.cluster_id
    if declared is not None:
        message = (
            f"spec.clusterId: this resource is for Kafka cluster {declared}, Regent controls "
            f"{actual}; nothing is done here"
        )
    else:
        message = (
            f"topic {request.topic_name} was last seen in Kafka cluster "
            f"{request.resource.status.cluster_id}, Regent controls {actual} now; nothing is done "
            f"there before spec.clusterId says {actual}"
        )
    assessment = Assessment(Progress.STALLED, ConditionReason.OTHER_CLUSTER, message)
    return Plan(status=blind_status(request, assessment))


def unknown_cluster_assessment() -> Assessment:
    """What is said as long as the id of the cluster was not read."""
    return Assessment(
        Progress.PROGRESSING,
        ConditionReason.CLUSTER_LOADING,
        "the id of the Kafka cluster is not known yet; it says whether the resource belongs to it",
    )


def release_in_other_cluster(request: TopicRequest) -> TopicPlan:
    """The deleted resource goes; the topic of the other cluster is left alone."""
    home = request.resource.spec.cluster_id or request.resource.status.cluster_id
    reason, what = EventReason.TOPIC_RETAINED, "is left alone"
    if request.is_deletion_recorded:
        reason = EventReason.TOPIC_DELETION_CONTINUES
        what = "was being deleted when it was last seen, which cannot be undone; this resource goes"
    event = PlannedEvent(
        reason,
        f"topic {request.topic_name} of Kafka cluster {home} {what}: Regent controls "
        f"{request.view.cluster_id}",
    )
    return Plan(finalizer=FinalizerAction.REMOVE, events=(event,))
