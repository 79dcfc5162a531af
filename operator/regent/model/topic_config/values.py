"""The meaning of one value, and whether the value is legal by a definition."""

from __future__ import annotations

import re
from typing import Final, assert_never

from regent.model.topic_config.definitions import (
    ConfigType,
    Definition,
    KafkaVersion,
    Range,
)
from regent.model.topic_config.java_parsing import (
    INT_MAX,
    parse_boolean,
    parse_double,
    parse_int,
    parse_list,
    parse_long,
    trim,
)
from regent.model.topic_config.kafka_definitions import DEFINITIONS, FORMAT_VERSIONS

_THROTTLED_REPLICA: Final = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")
_BITS: Final = {ConfigType.INT: 32, ConfigType.LONG: 64}


def is_same_value(key: str, one: str | None, other: str | None) -> bool:
    """Whether two values of a key mean the same to brokers, None: the key is unset.

    ``ConfigDef.parseType`` trims and parses texts. Brokers ask a list only for what it contains.
    Keys that Kafka does not know, and values that do not parse, are compared as texts.
    """
    return one == other or _meaning(key, one) == _meaning(key, other)


def _meaning(key: str, text: str | None) -> object:
    definition = next(
        (s.definition for s in reversed(DEFINITIONS.get(key, ())) if s.definition), None
    )
    if text is None and definition is not None and definition.type is ConfigType.THROTTLED_REPLICAS:
        text = ""  # No setting of brokers takes the place of an unset list.
    if text is None or definition is None:
        return text
    parsed = _parsed(definition.type, text)
    return text if parsed is None else parsed


def _parsed(type_: ConfigType, text: str) -> object | None:
    """The value as brokers use it, None if the text does not parse."""
    match type_:
        case ConfigType.INT:
            return parse_int(text)
        case ConfigType.LONG:
            return parse_long(text)
        case ConfigType.DOUBLE:
            return parse_double(text)
        case ConfigType.BOOLEAN:
            return parse_boolean(text)
        case ConfigType.STRING | ConfigType.FORMAT_VERSION:
            return trim(text)
        case ConfigType.LIST:
            return frozenset(parse_list(text))
        case ConfigType.THROTTLED_REPLICAS:
            # What applies the list does not accept the blanks that ConfigDef removes.
            return frozenset(trim(text).split(","))
    assert_never(type_)


def violated_expectation(
    definition: Definition, value: str, *, version: KafkaVersion
) -> str | None:
    """What the value had to be in that version of Kafka, None if it is."""
    match definition.type:
        case ConfigType.INT:
            return _number_expectation(definition, parse_int(value))
        case ConfigType.LONG:
            return _number_expectation(definition, parse_long(value))
        case ConfigType.DOUBLE:
            return _number_expectation(definition, parse_double(value))
        case ConfigType.BOOLEAN:
            return "true or false" if parse_boolean(value) is None else None
        case ConfigType.STRING:
            legal = not definition.choices or trim(value) in definition.choices
            return None if legal else "one of " + ", ".join(definition.choices)
        case ConfigType.LIST:
            return _list_expectation(definition, parse_list(value))
        case ConfigType.THROTTLED_REPLICAS:
            return _throttled_replicas_expectation(value)
        case ConfigType.FORMAT_VERSION:
            return _format_version_expectation(value, version)
    assert_never(definition.type)


def _number_expectation(definition: Definition, number: float | None) -> str | None:
    ranges = definition.ranges or (Range(None, None),)
    if number is not None and any(_contains(each, number) for each in ranges):
        return None
    kind = "a number" if definition.type is ConfigType.DOUBLE else "a whole number"
    return f"{kind} {' or '.join(_range_text(each, definition.type) for each in ranges)}"


def _contains(bounds: Range, number: float) -> bool:
    above = bounds.low is None or bounds.low <= number
    return above and (bounds.high is None or number <= bounds.high)


def _range_text(bounds: Range, of: ConfigType) -> str:
    if bounds.low is not None and bounds.low == bounds.high:
        return str(bounds.low)
    if bounds.low is not None and bounds.high is not None:
        return f"from {bounds.low} to {bounds.high}"
    parts = [] if bounds.low is None else [f"of at least {bounds.low}"]
    parts += [] if bounds.high is None else [f"of at most {bounds.high}"]
    if of in _BITS:
        parts.append(f"that fits into {_BITS[of]} bits")
    return " ".join(parts)


def _list_expectation(definition: Definition, entries: tuple[str, ...]) -> str | None:
    if not definition.choices or all(entry in definition.choices for entry in entries):
        return None
    return "a comma-separated list of " + ", ".join(definition.choices)


def _throttled_replicas_expectation(value: str) -> str | None:
    """``ThrottledReplicaListValidator`` allows blanks and endless digits, but what applies the
    value does not: ``TopicConfigHandler.parseThrottledPartitions`` ends the broker then."""
    entries = [] if value in ("", "*") else value.split(",")
    for entry in entries:
        if _THROTTLED_REPLICA.fullmatch(entry) is None or any(
            int(number) > INT_MAX for number in entry.split(":")
        ):
            return (
                "'*' or a comma-separated list of <partition>:<broker> without blanks, each number "
                f"at most {INT_MAX}"
            )
    return None


def _format_version_expectation(value: str, version: KafkaVersion) -> str | None:
    """``ApiVersion`` and ``MetadataVersion`` look at the first two parts, of 0.x at three. Of empty
    parts they make different things: none are taken here."""
    text = trim(value)
    parts = text.split(".")
    since = FORMAT_VERSIONS.get(".".join(parts[: 3 if text.startswith("0.") else 2]))
    if all(parts) and since is not None and since <= version:
        return None
    return "a version of Kafka that the brokers know, such as 2.8 or 2.8-IV1"
