"""What the classes of a Kafka release say of topic configurations (``TopicConfigs.java``)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.java import compiled_program
from sandbox.kafka_jars import kafka_jars

_SOURCE = Path(__file__).parent / "TopicConfigs.java"


@dataclass(frozen=True, slots=True)
class Case:
    """A topic's configuration, before and after, on a broker with some settings."""

    config: Mapping[str, str]
    broker: Mapping[str, str] = field(default_factory=dict)
    existing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the release says of a case.

    Attributes:
        admin: Why a broker's Admin API refuses it, or None.
        load: Why a broker cannot load or apply it, or None.
    """

    admin: str | None
    load: str | None

    @property
    def is_accepted(self) -> bool:
        return self.admin is None and self.load is None


def definitions(release: str) -> Any:
    """Keys, format versions and API versions of a release, as ``TopicConfigs.java`` prints them."""
    found, _ = definitions_and_verdicts(release, [])
    return found


def definitions_and_verdicts(release: str, cases: Sequence[Case]) -> tuple[Any, list[Verdict]]:
    """Return :func:`definitions`, and what the release says of each case. Starts one JVM."""
    documents = (
        {"broker": dict(c.broker), "existing": dict(c.existing), "config": dict(c.config)}
        for c in cases
    )
    lines = ["definitions", *map(json.dumps, documents)]
    program = compiled_program(kafka_jars(release), _SOURCE, heap_mb=1024)
    with program as command:
        printed = subprocess.run(
            command,
            input="".join(f"{line}\n" for line in lines),
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout
    found, *answers = map(json.loads, printed.splitlines())
    return found, [Verdict(**answer) for answer in answers]
