"""Kafka's topic configurations: which keys exist, since when, and what they accept.

A broker validates topic configurations only when they come in through its own Admin API. Whoever
writes ``/config/topics/T`` directly has to do it first: brokers read such a node without mercy, and
an entry that does not parse keeps a log from being loaded. So an unknown key or an impossible value
is refused here, before anything is written.

The table follows ``LogConfig`` and ``TopicConfig`` of Kafka 1.1 to 3.9. Where a later version
tightened a bound, the tighter one is used: what passes here passes in every version that knows the
key. Source: org.apache.kafka.storage.internals.log.LogConfig, kafka.log.LogConfig.
"""

from __future__ import annotations

import difflib
import enum
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never

KafkaVersion = tuple[int, int]
"""Major and minor version of Kafka."""

FIRST_SUPPORTED_VERSION: Final[KafkaVersion] = (1, 1)

_INT_RANGE: Final = (-(2**31), 2**31 - 1)
_LONG_RANGE: Final = (-(2**63), 2**63 - 1)

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_THROTTLED_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+")
_FORMAT_VERSION: Final = re.compile(r"(0\.(8|9|10|11)|[1-3])(\.[0-9]+){0,2}(-IV[0-9]+)?")


class ConfigType(enum.StrEnum):
    """How Kafka parses a value. The first five are names of ``ConfigDef.Type``."""

    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    STRING_LIST = "LIST"
    THROTTLED_REPLICAS = "THROTTLED_REPLICAS"
    FORMAT_VERSION = "FORMAT_VERSION"


@dataclass(frozen=True, slots=True)
class TopicConfigKey:
    """One configuration key of a topic.

    Attributes:
        minimum: Smallest value of a number; None: what the type holds.
        maximum: Largest value of a number; None: what the type holds.
        choices: Legal values of a string or of the entries of a list, with the version that
            brought each.
        also_allowed: A number outside the bounds that is legal all the same.
        since: First version of Kafka that knows the key.
    """

    name: str
    type: ConfigType
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[tuple[str, KafkaVersion], ...] = ()
    also_allowed: int | None = None
    since: KafkaVersion = FIRST_SUPPORTED_VERSION


def _choices(*names: str, **since: KafkaVersion) -> tuple[tuple[str, KafkaVersion], ...]:
    return tuple((name, since.get(name, FIRST_SUPPORTED_VERSION)) for name in names)


_ALL_KEYS: Final = (
    TopicConfigKey("cleanup.policy", ConfigType.STRING_LIST, choices=_choices("compact", "delete")),
    TopicConfigKey("compression.gzip.level", ConfigType.INT, 1, 9, also_allowed=-1, since=(3, 8)),
    TopicConfigKey("compression.lz4.level", ConfigType.INT, 1, 17, since=(3, 8)),
    TopicConfigKey(
        "compression.type",
        ConfigType.STRING,
        choices=_choices("gzip", "lz4", "producer", "snappy", "uncompressed", "zstd", zstd=(2, 1)),
    ),
    TopicConfigKey("compression.zstd.level", ConfigType.INT, -131072, 22, since=(3, 8)),
    TopicConfigKey("delete.retention.ms", ConfigType.LONG, 0),
    TopicConfigKey("file.delete.delay.ms", ConfigType.LONG, 0),
    TopicConfigKey("flush.messages", ConfigType.LONG, 1),
    TopicConfigKey("flush.ms", ConfigType.LONG, 0),
    TopicConfigKey("follower.replication.throttled.replicas", ConfigType.THROTTLED_REPLICAS),
    TopicConfigKey("index.interval.bytes", ConfigType.INT, 0),
    TopicConfigKey("leader.replication.throttled.replicas", ConfigType.THROTTLED_REPLICAS),
    TopicConfigKey("local.retention.bytes", ConfigType.LONG, -2, since=(3, 6)),
    TopicConfigKey("local.retention.ms", ConfigType.LONG, -2, since=(3, 6)),
    TopicConfigKey("max.compaction.lag.ms", ConfigType.LONG, 1, since=(2, 3)),
    TopicConfigKey("max.message.bytes", ConfigType.INT, 0),
    TopicConfigKey("message.downconversion.enable", ConfigType.BOOLEAN, since=(2, 0)),
    TopicConfigKey("message.format.version", ConfigType.FORMAT_VERSION),
    TopicConfigKey("message.timestamp.after.max.ms", ConfigType.LONG, 0, since=(3, 6)),
    TopicConfigKey("message.timestamp.before.max.ms", ConfigType.LONG, 0, since=(3, 6)),
    TopicConfigKey("message.timestamp.difference.max.ms", ConfigType.LONG, 0),
    TopicConfigKey(
        "message.timestamp.type",
        ConfigType.STRING,
        choices=_choices("CreateTime", "LogAppendTime"),
    ),
    TopicConfigKey("min.cleanable.dirty.ratio", ConfigType.DOUBLE, 0, 1),
    TopicConfigKey("min.compaction.lag.ms", ConfigType.LONG, 0),
    TopicConfigKey("min.insync.replicas", ConfigType.INT, 1),
    TopicConfigKey("preallocate", ConfigType.BOOLEAN),
    TopicConfigKey("remote.log.copy.disable", ConfigType.BOOLEAN, since=(3, 9)),
    TopicConfigKey("remote.log.delete.on.disable", ConfigType.BOOLEAN, since=(3, 9)),
    TopicConfigKey("remote.storage.enable", ConfigType.BOOLEAN, since=(3, 6)),
    TopicConfigKey("retention.bytes", ConfigType.LONG),
    TopicConfigKey("retention.ms", ConfigType.LONG, -1),
    TopicConfigKey("segment.bytes", ConfigType.INT, 14),
    TopicConfigKey("segment.index.bytes", ConfigType.INT, 4),
    TopicConfigKey("segment.jitter.ms", ConfigType.LONG, 0),
    TopicConfigKey("segment.ms", ConfigType.LONG, 1),
    TopicConfigKey("unclean.leader.election.enable", ConfigType.BOOLEAN),
)

TOPIC_CONFIG_KEYS: Final[Mapping[str, TopicConfigKey]] = {key.name: key for key in _ALL_KEYS}
"""Every topic configuration of Kafka 1.1 to 3.9 by name, in alphabetical order."""

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


def config_problem(
    key: str, value: str, *, kafka_version: KafkaVersion | None = None
) -> str | None:
    """Why Kafka would refuse ``key=value`` for a topic, as a sentence, or None if it would not.

    Args:
        kafka_version: Version of the oldest broker. None: any version that knows the key will do.
    """
    definition = TOPIC_CONFIG_KEYS.get(key)
    if definition is None:
        return f"{key!r} is not a topic configuration of Kafka{_suggestion(key)}"
    if kafka_version is not None and kafka_version < definition.since:
        return (
            f"{key!r} exists since Kafka {_version_text(definition.since)}, the oldest broker runs "
            f"{_version_text(kafka_version)}; remove the key or upgrade the brokers first"
        )
    expected = _violated_expectation(definition, value.strip(), kafka_version)
    return None if expected is None else f"{key!r} cannot be {value!r}: it must be {expected}"


def config_conflicts(config: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Pairs (key, sentence) for values that are legal alone but not together.

    Only explicit values are compared; defaults of the brokers are unknown here. Values must have
    passed :func:`config_problem`.
    """
    conflicts: list[tuple[str, str]] = []
    for lower, upper in (
        ("min.compaction.lag.ms", "max.compaction.lag.ms"),
        ("local.retention.ms", "retention.ms"),
        ("local.retention.bytes", "retention.bytes"),
    ):
        if lower not in config or upper not in config:
            continue
        low, high = int(config[lower]), int(config[upper])
        # -1 as a retention means "without end", -2 as a local one "as the other"
        if high != -1 and (low > high or (low == -1 and lower != "min.compaction.lag.ms")):
            conflicts.append(
                (lower, f"{lower!r} ({low}) must not exceed {upper!r} ({high}); lower the former")
            )
    if config.get("remote.storage.enable", "").strip().lower() == "true" and "compact" in (
        config.get("cleanup.policy", "")
    ):
        conflicts.append(
            (
                "remote.storage.enable",
                "'remote.storage.enable' does not work with a compacted topic; "
                "set 'cleanup.policy' to 'delete'",
            )
        )
    return tuple(conflicts)


def _violated_expectation(
    definition: TopicConfigKey, value: str, kafka_version: KafkaVersion | None
) -> str | None:
    """What the value had to be, or None if it is."""
    match definition.type:
        case ConfigType.INT:
            return _whole_number_expectation(definition, value, type_range=_INT_RANGE)
        case ConfigType.LONG:
            return _whole_number_expectation(definition, value, type_range=_LONG_RANGE)
        case ConfigType.DOUBLE:
            return _ratio_expectation(definition, value)
        case ConfigType.BOOLEAN:
            return None if value.lower() in ("true", "false") else "true or false"
        case ConfigType.STRING | ConfigType.STRING_LIST:
            return _choice_expectation(definition, value, kafka_version)
        case ConfigType.THROTTLED_REPLICAS:
            return _throttled_replicas_expectation(value)
        case ConfigType.FORMAT_VERSION:
            legal = _FORMAT_VERSION.fullmatch(value)
            return None if legal else "a version of Kafka such as 2.8 or 2.8-IV1"
    assert_never(definition.type)


def _choice_expectation(
    definition: TopicConfigKey, value: str, kafka_version: KafkaVersion | None
) -> str | None:
    legal = tuple(
        name
        for name, since in definition.choices
        if kafka_version is None or since <= kafka_version
    )
    if definition.type is ConfigType.STRING:
        return None if value in legal else "one of " + ", ".join(legal)
    # Kafka reads an empty text as an empty list, which is legal: neither delete nor compact.
    entries = [entry.strip() for entry in value.split(",")] if value else []
    if all(entry in legal for entry in entries):
        return None
    return "a comma-separated list of " + ", ".join(legal)


def _throttled_replicas_expectation(value: str) -> str | None:
    entries = [] if value in ("", "*") else value.split(",")
    if all(_THROTTLED_REPLICA.fullmatch(entry.strip()) for entry in entries):
        return None
    return "'*' or a comma-separated list of <partition>:<broker>"


def _whole_number_expectation(
    definition: TopicConfigKey, value: str, *, type_range: tuple[int, int]
) -> str | None:
    low = type_range[0] if definition.minimum is None else int(definition.minimum)
    high = type_range[1] if definition.maximum is None else int(definition.maximum)
    # Twenty digits hold every long; int() of an endless text takes quadratic time.
    if _WHOLE_NUMBER.fullmatch(value) and len(value) <= 20:
        number = int(value)
        if low <= number <= high or number == definition.also_allowed:
            return None
    also = "" if definition.also_allowed is None else f", or {definition.also_allowed}"
    if definition.minimum is None:
        return f"a whole number that fits into {64 if type_range is _LONG_RANGE else 32} bits{also}"
    if definition.maximum is None:
        return f"a whole number of at least {low} and at most {high}{also}"
    return f"a whole number from {low} to {high}{also}"


def _ratio_expectation(definition: TopicConfigKey, value: str) -> str | None:
    low = -math.inf if definition.minimum is None else definition.minimum
    high = math.inf if definition.maximum is None else definition.maximum
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    # Python accepts digits grouped by underscores, Java does not.
    return None if low <= number <= high and "_" not in value else f"a number from {low} to {high}"


def _suggestion(key: str) -> str:
    """``; did you mean ...?`` for a key that resembles a legal one, otherwise where to look."""
    simplified = key.strip().lower().replace("_", ".").replace("-", ".")
    synonym = BROKER_SYNONYMS.get(simplified)
    if synonym is not None:
        return f" (it belongs to brokers); did you mean {synonym!r}?"
    if simplified in TOPIC_CONFIG_KEYS:
        return f"; did you mean {simplified!r}?"
    # Camel case is how people write it who come from other resources: retentionMs.
    dotted = re.sub(r"(?<=[a-z])(?=[A-Z])", ".", key).lower()
    close = difflib.get_close_matches(dotted[:100], TOPIC_CONFIG_KEYS, n=1, cutoff=0.7)
    if close:
        return f"; did you mean {close[0]!r}?"
    return "; the keys are those of Kafka's TopicConfig, for instance 'retention.ms'"


def _version_text(version: KafkaVersion) -> str:
    return f"{version[0]}.{version[1]}"
