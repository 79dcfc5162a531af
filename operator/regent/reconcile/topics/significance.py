"""Which changes of a status must be shown at once, and which may wait a little."""

from __future__ import annotations

from typing import Any

from regent.resources.kafka_topic_status import KafkaTopicStatus


def is_significant(before: KafkaTopicStatus, after: KafkaTopicStatus) -> bool:
    """Whether a change is more than a detail: anything but which partition has which leader and
    in-sync replicas, how many of them, and the words that say so.
    """
    return _headlines(before) != _headlines(after)


def _headlines(status: KafkaTopicStatus) -> tuple[Any, ...]:
    return (
        status.observed_generation,
        tuple((c.type, c.status, c.reason) for c in status.conditions),
        status.cluster_id,
        status.topic_id,
        status.topic_czxid,
        status.partitions,
        status.replicas,
        status.drift,
        status.managed_config,
        status.ownership,
        status.intended_topic_id,
        status.deletion_policy,
        status.last_foreign_deletion,
    )
