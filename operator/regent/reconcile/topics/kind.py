"""KafkaTopic as a kind that is served."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from regent.reconcile.kinds import KindDescriptor
from regent.reconcile.topics.claims import Claim, claim_of, news
from regent.resources.base import field_names
from regent.resources.kafka_topic import (
    FINALIZER,
    KafkaTopic,
    KafkaTopicSpec,
    UnreadableTopic,
    parse_kafka_topic,
    topic_name_of,
)
from regent.resources.kafka_topic_status import KafkaTopicStatus

_EVIDENCE: Final = ("ownership", "topicId", "intendedTopicId", "clusterId")
"""Fields of a status that speak for a claim."""


def _subjects(body: Mapping[str, Any]) -> tuple[str, ...]:
    return (topic_name_of(body),)


def _claim(body: Mapping[str, Any]) -> Claim | None:
    """The claim of an object. The larger part of its status is of no interest here, and reading it
    would cost more than all the rest."""
    status = body["status"]
    evidence = {name: status[name] for name in _EVIDENCE if name in status}
    return claim_of(parse_kafka_topic({**body, "status": evidence}))


KAFKA_TOPIC: Final[KindDescriptor[KafkaTopic | UnreadableTopic, Claim]] = KindDescriptor(
    kind=KafkaTopic.kind,
    spec_fields=field_names(KafkaTopicSpec),
    status_fields=field_names(KafkaTopicStatus),
    parse=parse_kafka_topic,
    finalizer=FINALIZER,
    subjects=_subjects,
    claim=_claim,
    news=news,
)
