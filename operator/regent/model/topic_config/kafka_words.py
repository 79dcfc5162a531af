"""Why a topic's configuration cannot be, in the words of Kafka's ``ConfigDef``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regent.model.topic_config.definitions import ConfigType, Definition
from regent.model.topic_config.java_parsing import (
    parse_boolean,
    parse_double,
    parse_int,
    parse_list,
    parse_long,
    trim,
)
from regent.model.topic_config.kafka_definitions import DEFINITIONS

_NUMBERS = {
    ConfigType.INT: parse_int,
    ConfigType.LONG: parse_long,
    ConfigType.DOUBLE: parse_double,
}


def kafka_words(config: Mapping[str, str]) -> str | None:
    """What the newest Kafka says to a configuration.

    Returns:
        None if it has nothing against it, or its words are not known here.
    """
    for key in config:
        if key not in DEFINITIONS:
            return f"Unknown topic config name: {key}"
    for key, value in config.items():
        definition = DEFINITIONS[key][-1].definition
        problem = None if definition is None else _problem(definition, value)
        if problem is not None:
            what, why = problem
            return f"Invalid value {what} for configuration {key}: {why}"
    return None


def _problem(definition: Definition, value: str) -> tuple[str, str] | None:
    """The value as Kafka shows it, and why it cannot be."""
    match definition.type:
        case ConfigType.INT | ConfigType.LONG | ConfigType.DOUBLE:
            return _number_problem(definition, value)
        case ConfigType.BOOLEAN:
            why = "Expected value to be either true or false"
            return (value, why) if parse_boolean(value) is None else None
        case ConfigType.STRING:
            return _choice_problem(definition, [trim(value)])
        case ConfigType.LIST:
            return _choice_problem(definition, parse_list(value))
    return None


def _number_problem(definition: Definition, value: str) -> tuple[str, str] | None:
    number = _NUMBERS[definition.type](value)
    if number is None:
        return value, f"Not a number of type {definition.type}"
    if len(definition.ranges) != 1:
        return None
    (only,) = definition.ranges
    if only.low is not None and number < only.low:
        return str(number), f"Value must be at least {only.low}"
    if only.high is not None and number > only.high:
        return str(number), f"Value must be no more than {only.high}"
    return None


def _choice_problem(definition: Definition, values: Sequence[str]) -> tuple[str, str] | None:
    for value in values:
        if definition.choices and value not in definition.choices:
            return value, f"String must be one of: {', '.join(definition.choices)}"
    return None
