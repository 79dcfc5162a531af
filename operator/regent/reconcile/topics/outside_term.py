"""What becomes of a KafkaTopic while no Regent that serves it is the controller of its cluster.

Nothing is known of the cluster then and no command can be sent. A status that speaks of the cluster
becomes wrong with time: its conditions turn Unknown. What needs no controller is done: mistakes in
the resource are named, and a finalizer that nothing depends on is removed
(:mod:`regent.reconcile.topics.deletion`).
"""

from __future__ import annotations

from regent.reconcile.checks import first_finding
from regent.reconcile.other_regent import inactive
from regent.reconcile.plan import Plan
from regent.reconcile.topics.checks import NAME_CHECKS, SPEC_CHECKS
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.request import TopicRequest
from regent.reconcile.topics.status import blind_status
from regent.reconcile.verdicts import Assessment, Progress


def plan_outside_term(request: TopicRequest) -> TopicPlan:
    """What to report of a resource while there is no controller."""
    if request.until_unknown_s > 0:
        return Plan(requeue_after_s=request.until_unknown_s)
    resource = request.resource
    finding = first_finding(NAME_CHECKS, request) or first_finding(SPEC_CHECKS, resource)
    if finding is not None and not resource.metadata.is_being_deleted:
        assessment = Assessment(Progress.STALLED, finding.reason, finding.text)
    else:
        assessment = inactive(request.absence, _consequence(request))
    return Plan(status=blind_status(request, assessment))


def _consequence(request: TopicRequest) -> str:
    if not request.resource.metadata.is_being_deleted:
        return f"the state of topic {request.topic_name} is not known"
    if request.was_deletion_begun:
        return (
            f"the deletion of topic {request.topic_name} has begun, which cannot be undone, and "
            "goes on with the next controller; to let the resource go before, set deletionPolicy "
            "to Retain"
        )
    return (
        f"what becomes of topic {request.topic_name} is decided as soon as a Regent that serves "
        "this resource is; to let the resource go and keep the topic, set deletionPolicy to Retain"
    )
