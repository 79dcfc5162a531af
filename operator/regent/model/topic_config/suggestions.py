"""What somebody may have meant who wrote a key that does not exist."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final

from regent.model.topic_config.kafka_definitions import DEFINITIONS

BROKER_SYNONYMS: Final[Mapping[str, str]] = {
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms": "max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.cleaner.min.compaction.lag.ms": "min.compaction.lag.ms",
    "log.cleanup.policy": "cleanup.policy",
    "log.flush.interval.messages": "flush.messages",
    "log.flush.interval.ms": "flush.ms",
    "log.index.interval.bytes": "index.interval.bytes",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.local.retention.bytes": "local.retention.bytes",
    "log.local.retention.ms": "local.retention.ms",
    "log.message.downconversion.enable": "message.downconversion.enable",
    "log.message.format.version": "message.format.version",
    "log.message.timestamp.after.max.ms": "message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms": "message.timestamp.before.max.ms",
    "log.message.timestamp.difference.max.ms": "message.timestamp.difference.max.ms",
    "log.message.timestamp.type": "message.timestamp.type",
    "log.preallocate": "preallocate",
    "log.retention.bytes": "retention.bytes",
    "log.retention.hours": "retention.ms",
    "log.retention.minutes": "retention.ms",
    "log.retention.ms": "retention.ms",
    "log.roll.hours": "segment.ms",
    "log.roll.jitter.ms": "segment.jitter.ms",
    "log.roll.ms": "segment.ms",
    "log.segment.bytes": "segment.bytes",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "message.max.bytes": "max.message.bytes",
}
"""Names of broker configurations that set a topic's default: a frequent mistake in a topic."""


def suggestion(key: str) -> str:
    """``; did you mean ...?`` for a key that resembles a legal one, otherwise where to look."""
    simplified = key.strip().lower().replace("_", ".").replace("-", ".")
    synonym = BROKER_SYNONYMS.get(simplified)
    if synonym is not None:
        return f" (it belongs to brokers); did you mean {synonym!r}?"
    if simplified in DEFINITIONS:
        return f"; did you mean {simplified!r}?"
    # Camel case is how people write it who come from other resources: retentionMs.
    dotted = re.sub(r"(?<=[a-z])(?=[A-Z])", ".", key[:100]).lower()
    close = difflib.get_close_matches(dotted, DEFINITIONS, n=1, cutoff=0.7)
    if close:
        return f"; did you mean {close[0]!r}?"
    return "; the keys are those of Kafka's TopicConfig, for instance 'retention.ms'"
