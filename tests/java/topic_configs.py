"""What the classes of a Kafka release say of topic configurations (``TopicConfigs.java``)."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.java import write_log_configuration
from sandbox.kafka_jars import kafka_jars

_PROGRAM = "TopicConfigs"
_SOURCE = Path(__file__).parent / f"{_PROGRAM}.java"


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
    return json.loads(_run(release, "definitions", ""))


def verdicts(release: str, cases: Sequence[Case]) -> list[Verdict]:
    """What a release says of each case."""
    lines = (
        json.dumps(
            {"broker": dict(c.broker), "existing": dict(c.existing), "config": dict(c.config)}
        )
        for c in cases
    )
    answers = _run(release, "verdicts", "".join(f"{line}\n" for line in lines)).splitlines()
    return [Verdict(**json.loads(answer)) for answer in answers]


def _run(release: str, mode: str, given: str) -> str:
    class_path = kafka_jars(release).class_path
    with tempfile.TemporaryDirectory() as folder:
        quiet = Path(folder) / "log4j.properties"
        write_log_configuration(quiet, level="ERROR", stream="err")
        subprocess.run(["javac", "-nowarn", "-cp", class_path, "-d", folder, _SOURCE], check=True)
        command = ["java", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration={quiet.as_uri()}"]
        return subprocess.run(
            [*command, "-cp", f"{folder}:{class_path}", _PROGRAM, mode],
            input=given,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout
