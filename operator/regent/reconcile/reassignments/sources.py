"""What a resource asks for: replicas wanted for each partition. What a planner chooses for
``spec.rebalance`` is in :mod:`regent.reconcile.reassignments.rebalancing`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from regent.model.partition import TopicPartition
from regent.model.topic import topic_name_problem
from regent.reconcile.checks import Finding
from regent.resources.conditions import ConditionReason
from regent.resources.partition_reassignment import PartitionReassignmentSpec

_PLAN_JSON: Final = "spec.planJSON"
_ANY_LOG_DIR: Final = "any"


@dataclass(slots=True)
class Wanted:
    """Explicit targets of a resource.

    Attributes:
        targets: Replicas wanted, by partition.
        fields: Where the resource says so.
        findings: What is wrong with the list itself.
    """

    targets: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    fields: dict[TopicPartition, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def add(self, tp: TopicPartition, replicas: tuple[int, ...], *, at: str) -> None:
        """One more entry of the list."""
        if tp in self.targets:
            self.findings.append(
                Finding(
                    ConditionReason.INVALID_REPLICA_ASSIGNMENT,
                    f"partition {tp} is listed twice, in {self.fields[tp]}, too; keep one",
                    at,
                )
            )
            return
        self.targets[tp] = replicas
        self.fields[tp] = at


def explicit_targets(spec: PartitionReassignmentSpec) -> Wanted:
    """What ``assignments`` or ``planJSON`` lists."""
    wanted = Wanted()
    for index, entry in enumerate(spec.assignments or ()):
        tp = TopicPartition(entry.topic, entry.partition)
        wanted.add(tp, entry.replicas, at=f"spec.assignments[{index}]")
    if spec.plan_json is not None:
        _read_plan_json(spec.plan_json, wanted)
    return wanted


def topics_of(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the topics that a spec, as the API has it, is about; as far as it can be read."""
    names: list[str] = []
    assignments = spec.get("assignments")
    if isinstance(assignments, list):
        names.extend(_topics_in(assignments))
    if isinstance(spec.get("replicationFactor"), Mapping):
        names.extend(spec["replicationFactor"])
    if isinstance(spec.get("planJSON"), str):
        names.extend(_topics_in_plan_json(spec["planJSON"]))
    return tuple(dict.fromkeys(names))


def _topics_in(entries: Iterable[Any]) -> list[str]:
    topics = (entry.get("topic") for entry in entries if isinstance(entry, Mapping))
    return [topic for topic in topics if isinstance(topic, str)]


@lru_cache(maxsize=64)
def _topics_in_plan_json(text: str) -> tuple[str, ...]:
    try:
        document = _loads(text)
    except ValueError:
        return ()
    entries = document.get("partitions") if isinstance(document, dict) else None
    return tuple(_topics_in(entries)) if isinstance(entries, list) else ()


def _loads(text: str) -> Any:
    """Read JSON that anybody may have written.

    Raises:
        ValueError: It is none, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _read_plan_json(text: str, wanted: Wanted) -> None:
    """Read a file of kafka-reassign-partitions.

    Source: ``ReassignPartitionsCommand.parsePartitionReassignmentData``.
    """
    try:
        document = _loads(text)
    except ValueError as error:
        wanted.findings.append(_malformed(f"it cannot be read as JSON: {error}", _PLAN_JSON))
        return
    version = document.get("version", 1) if isinstance(document, dict) else None
    entries = document.get("partitions") if isinstance(document, dict) else None
    if version != 1 or not isinstance(entries, list) or not entries:
        wanted.findings.append(
            _malformed(
                'it is no object with "version": 1 and a list of "partitions", as '
                "kafka-reassign-partitions reads it",
                _PLAN_JSON,
            )
        )
        return
    for index, entry in enumerate(entries):
        _read_entry(entry, f"{_PLAN_JSON}.partitions[{index}]", wanted)


def _read_entry(entry: Any, at: str, wanted: Wanted) -> None:
    if not isinstance(entry, dict):
        wanted.findings.append(_malformed("it is no object", at))
        return
    topic, partition, replicas = (entry.get(key) for key in ("topic", "partition", "replicas"))
    if not (
        isinstance(topic, str)
        and isinstance(partition, int)
        and isinstance(replicas, list)
        and all(map(_is_id, (partition, *replicas)))
    ):
        wanted.findings.append(
            _malformed("it needs a topic, the index of a partition and a list of broker ids", at)
        )
        return
    problem = topic_name_problem(topic)
    if problem is not None:
        wanted.findings.append(_malformed(problem, at))
        return
    directories = entry.get("log_dirs", [])
    if not isinstance(directories, list) or any(name != _ANY_LOG_DIR for name in directories):
        wanted.findings.append(
            _malformed("log directories cannot be chosen; leave log_dirs out", at)
        )
        return
    wanted.add(TopicPartition(topic, partition), tuple(replicas), at=at)


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _malformed(message: str, at: str) -> Finding:
    return Finding(ConditionReason.INVALID_PLAN_DOCUMENT, message, at)
