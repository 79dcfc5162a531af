"""What topics have for which nobody says it: the brokers' defaults."""

from __future__ import annotations

from typing import NamedTuple

from regent.controller.view import ClusterView
from regent.model.topic_config import (
    DEFAULT_REPLICATION_FACTOR,
    MIN_INSYNC_REPLICAS,
    NUM_PARTITIONS,
)


class TopicDefaults(NamedTuple):
    """Settings of brokers that hold for topics without their own value.

    Attributes:
        partitions: ``num.partitions``.
        replication_factor: ``default.replication.factor``.
        min_insync_replicas: ``min.insync.replicas``, the largest of all live brokers: any of them
            may come to lead a partition.
    """

    partitions: int = 1
    replication_factor: int = 1
    min_insync_replicas: int = 1


def topic_defaults(view: ClusterView) -> TopicDefaults | None:
    """The defaults of the live broker with the lowest id among those that have said them; None if
    none has. In Kafka they are those of the broker that is the controller.
    """
    known = [
        facts.settings
        for facts in sorted(view.broker_facts, key=lambda facts: facts.broker_id)
        if facts.broker_id in view.brokers and facts.settings is not None
    ]
    if not known:
        return None
    return TopicDefaults(
        _number(known[0].get(NUM_PARTITIONS)),
        _number(known[0].get(DEFAULT_REPLICATION_FACTOR)),
        max(_number(settings.get(MIN_INSYNC_REPLICAS)) for settings in known),
    )


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else 1
