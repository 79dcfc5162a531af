"""What becomes of a topic when its resource is deleted: the policy in effect."""

from __future__ import annotations

from regent.model.topic import is_internal_topic
from regent.resources.kafka_topic import KafkaTopic
from regent.resources.kafka_topic_status import DeletionPolicy, Ownership


def effective_deletion_policy(resource: KafkaTopic, ownership: Ownership | None) -> DeletionPolicy:
    """The policy in effect for a resource that owns its topic in this way.

    A resource deletes a topic that the resource created, and retains a topic that the resource
    adopted, unless the spec declares a policy. An internal topic is always retained: a deletion
    loses, for instance, the positions of all consumers. A topic that the resource does not own is
    retained, too.
    """
    if ownership is None or is_internal_topic(resource.topic_name):
        return DeletionPolicy.RETAIN
    declared = resource.spec.deletion_policy
    if declared is not None:
        return declared
    is_own = ownership in (Ownership.CREATING, Ownership.CREATED)
    return DeletionPolicy.DELETE if is_own else DeletionPolicy.RETAIN
