"""What becomes of a topic when its resource is deleted: the policy in effect."""

from __future__ import annotations

from typing import Final

from regent.model.topic import is_internal_topic
from regent.resources.kafka_topic import KafkaTopic
from regent.resources.kafka_topic_status import DeletionPolicy, Ownership

NOT_ASKED_FOR: Final = (
    "spec.deletionPolicy does not count, as nobody has asked for Delete: an earlier "
    "CustomResourceDefinition has filled it in"
)


def effective_deletion_policy(resource: KafkaTopic, ownership: Ownership | None) -> DeletionPolicy:
    """The policy in effect for a resource that owns its topic in this way.

    A resource deletes what it created and retains what it adopted, unless its spec says something
    else, and not by the default of an earlier definition. An internal topic is always retained:
    deleting one loses, for instance, the positions of all consumers. So is a topic that the
    resource does not own.
    """
    if ownership is None or is_internal_topic(resource.topic_name):
        return DeletionPolicy.RETAIN
    declared = resource.deletion_policy
    if declared is not None:
        return declared
    is_own = ownership in (Ownership.CREATING, Ownership.CREATED)
    return DeletionPolicy.DELETE if is_own else DeletionPolicy.RETAIN


def is_policy_ignored(resource: KafkaTopic, ownership: Ownership | None) -> bool:
    """Whether the topic is retained although the spec says something else, which nobody has asked
    for."""
    return (
        resource.deletion_policy is not resource.spec.deletion_policy
        and ownership is Ownership.ADOPTED
        and not is_internal_topic(resource.topic_name)
    )
