"""What comes out of reconciling a KafkaTopic."""

from __future__ import annotations

from regent.reconcile.plan import Plan
from regent.resources.kafka_topic_status import KafkaTopicStatus

TopicPlan = Plan[KafkaTopicStatus]
