"""Kubernetes Events for changes of a status."""

from __future__ import annotations

from regent.reconcile.plan import EventReason, PlannedEvent
from regent.reconcile.topics.drift import REPLICAS_FIELD, describe_drift
from regent.resources.conditions import (
    ConditionReason,
    ConditionStatus,
    ConditionType,
    find_condition,
)
from regent.resources.kafka_topic_status import DriftEntry, ForeignDeletion, KafkaTopicStatus


def transition_events(
    before: KafkaTopicStatus, after: KafkaTopicStatus
) -> tuple[PlannedEvent, ...]:
    """Warnings for what has just gone wrong: the topic was deleted or changed by somebody else,
    Stalled became True or True for another reason, or Healthy became False. Comparing with the
    stored status keeps a restart silent.
    """
    events: list[PlannedEvent] = []
    if is_new_drift(before, after):
        text = f"somebody else changed topic {after.topic_name}: {describe_drift(after.drift)}"
        events.append(PlannedEvent(EventReason.DRIFT_DETECTED, text, is_warning=True))
    if is_foreign_deletion_news(before, after) and after.last_foreign_deletion is not None:
        events.append(_foreign_deletion_event(after, after.last_foreign_deletion))
    if _is_replica_change_done(before, after):
        text = f"topic {after.topic_name} has {after.replicas} replicas per partition now"
        events.append(PlannedEvent(EventReason.REPLICAS_CHANGED, text, is_occurrence=True))
    for type_, bad in (
        (ConditionType.STALLED, ConditionStatus.TRUE),
        (ConditionType.HEALTHY, ConditionStatus.FALSE),
    ):
        new = find_condition(after.conditions, type_)
        old = find_condition(before.conditions, type_)
        if new is None or new.status is not bad:
            continue
        if new.reason == ConditionReason.TOPIC_DELETED_EXTERNALLY:
            continue  # what happened says more than that it is so
        is_news = old is None or old.status is not bad or old.reason != new.reason
        # A topic that is just being born is never healthy: nothing to warn of.
        if is_news and not (type_ is ConditionType.HEALTHY and old is None):
            events.append(PlannedEvent(new.reason, new.message, is_warning=True))
    return tuple(events)


def is_new_drift(before: KafkaTopicStatus, after: KafkaTopicStatus) -> bool:
    """Whether a topic that was as declared differs now, and it is not the resource that changed."""
    was = find_condition(before.conditions, ConditionType.SYNCED)
    return (
        bool(after.drift)
        and was is not None
        and was.status is ConditionStatus.TRUE
        and was.observed_generation == after.observed_generation
        and _is_same_topic(before, after)
    )


def _is_replica_change_done(before: KafkaTopicStatus, after: KafkaTopicStatus) -> bool:
    """Whether all partitions have as many replicas as declared, and some had not.

    What else is said of the topic does not count: it may wait for its leaders to answer when the
    last replica arrives, and it may all be over before a status says that it has begun.
    """
    was, now = _replication_factors(before), _replication_factors(after)
    return (
        _is_same_topic(before, after)
        and after.replica_summary == f"{after.replicas}/{after.replicas}"
        and _replicas_drift(after) is None
        and was not in (None, now)
    )


def _replication_factors(status: KafkaTopicStatus) -> str | None:
    """How many replicas partitions have; more than one number if that varies."""
    drift = _replicas_drift(status)
    if drift is not None:
        return drift.actual
    return None if status.replicas is None else str(status.replicas)


def _replicas_drift(status: KafkaTopicStatus) -> DriftEntry | None:
    return next((entry for entry in status.drift if entry.field == REPLICAS_FIELD), None)


def _is_same_topic(before: KafkaTopicStatus, after: KafkaTopicStatus) -> bool:
    return before.cluster_id == after.cluster_id and (
        (before.topic_id, before.topic_czxid) == (after.topic_id, after.topic_czxid)
    )


def is_foreign_deletion_news(before: KafkaTopicStatus, after: KafkaTopicStatus) -> bool:
    """Whether a status reports a deletion by somebody else that the one before did not report."""
    found = after.last_foreign_deletion
    return found is not None and found != before.last_foreign_deletion


def _foreign_deletion_event(after: KafkaTopicStatus, found: ForeignDeletion) -> PlannedEvent:
    named = f"topic {after.topic_name}" + (f" (id {found.topic_id})" if found.topic_id else "")
    reason = EventReason.TOPIC_DELETED_EXTERNALLY
    message = f"somebody else deleted {named} with all its data"
    if found.recreated_as is not None:
        reason = EventReason.TOPIC_RECREATED_EXTERNALLY
        what = "" if " " in found.recreated_as else "id "  # else it says so itself
        message += f" and created another one of that name ({what}{found.recreated_as})"
    message += f"; found out at {found.detected_at}"
    return PlannedEvent(reason, message, is_warning=True, is_occurrence=True)
