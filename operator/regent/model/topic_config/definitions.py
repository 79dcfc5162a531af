"""What Kafka's ``ConfigDef`` says of one key: the types of the generated tables."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

KafkaVersion = tuple[int, int]
"""Major and minor version of Kafka."""


class ConfigType(enum.StrEnum):
    """How Kafka parses a value: names of ``ConfigDef.Type``, and two with parsers of their own."""

    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    LIST = "LIST"
    THROTTLED_REPLICAS = "THROTTLED_REPLICAS"
    FORMAT_VERSION = "FORMAT_VERSION"


class Range(NamedTuple):
    """Both ends included; None: what the type holds."""

    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Definition:
    """One key in one version of Kafka, or in several that agree.

    Attributes:
        ranges: Of a number: it must lie in one of them. Empty: whatever the type holds.
        choices: Of a string, or of the entries of a list. Empty: anything.
    """

    type: ConfigType
    ranges: tuple[Range, ...] = ()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DefinedSince:
    """A definition, or None for a version that does not know the key."""

    since: KafkaVersion
    definition: Definition | None


def version_text(version: KafkaVersion) -> str:
    """``3.9`` for (3, 9)."""
    return f"{version[0]}.{version[1]}"
