"""What an administrator asks of the controller: reassignments (KIP-455) and elections (KIP-460)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from regent.model.partition import FoundPartition, TopicPartition
from regent.protocol.entity_building import build_entity
from regent.protocol.entity_reader import read_entity
from regent.protocol.primitives import Reader
from regent.protocol.served_apis import ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS, Api
from regent.protocol.server_codec import encode_entity

Answers = dict[TopicPartition, tuple[int, str]]

_WITH_TYPE: Final = 1
"""First version of ElectLeaders that knows other elections than of preferred leaders."""


def election_versions(election_type: int) -> range:
    """Versions of ElectLeaders that can ask for a kind of election."""
    return range(_WITH_TYPE if election_type else 0, ELECT_LEADERS.highest + 1)


def is_flexible(api: Api, version: int) -> bool:
    """Whether a version has the compact encoding (KIP-482)."""
    return bool(api.requests[version].__flexible__)


def encode_reassignments(
    version: int,
    targets: Mapping[TopicPartition, tuple[int, ...] | None],
    found: Mapping[TopicPartition, FoundPartition],
    *,
    timeout_ms: int,
) -> bytes:
    """An AlterPartitionReassignments; a target of None cancels.

    Args:
        found: On which condition partitions are moved. A Regent keeps it, brokers do not read it.
    """
    by_topic: dict[str, list[dict[str, object]]] = {}
    for tp, target in targets.items():
        conditions = [_condition(found[tp])] if tp in found else []
        each: dict[str, object] = {
            "partition_index": tp.partition,
            "replicas": target,
            "found": conditions,
        }
        by_topic.setdefault(tp.topic, []).append(each)
    topics = [{"name": topic, "partitions": each} for topic, each in by_topic.items()]
    timeout = datetime.timedelta(milliseconds=timeout_ms)
    return _encode(ALTER_PARTITION_REASSIGNMENTS, version, {"timeout": timeout, "topics": topics})


def _condition(found: FoundPartition) -> dict[str, object]:
    assignment = found.assignment
    return {
        "topic_czxid": found.czxid,
        "replicas": assignment.replicas,
        "adding_replicas": assignment.adding_replicas,
        "removing_replicas": assignment.removing_replicas,
    }


def decode_reassignments(version: int, body: bytes) -> tuple[int, str, Answers]:
    """Error code and message of the whole request, and those of its partitions.

    Raises:
        DecodeError: If the body is malformed.
    """
    answer = _decode(ALTER_PARTITION_REASSIGNMENTS, version, body)
    partitions = ((topic.name, each) for topic in answer.responses for each in topic.partitions)
    results = {
        TopicPartition(topic, each.partition_index): _error(each) for topic, each in partitions
    }
    return (*_error(answer), results)


def encode_elections(
    version: int,
    election_type: int,
    partitions: Sequence[TopicPartition] | None,
    *,
    timeout_ms: int,
) -> bytes:
    """An ElectLeaders; None means all partitions."""
    fields = {
        "election_type": election_type,
        "topic_partitions": None if partitions is None else _by_topic(partitions),
        "timeout": datetime.timedelta(milliseconds=timeout_ms),
    }
    return _encode(ELECT_LEADERS, version, fields)


def decode_elections(version: int, body: bytes) -> tuple[int, str, Answers]:
    """As :func:`decode_reassignments`."""
    answer = _decode(ELECT_LEADERS, version, body)
    results = {
        TopicPartition(topic.topic, each.partition_id): _error(each)
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }
    # Version 0 has no error of the whole request.
    code = int(answer.error_code) if version >= _WITH_TYPE else 0
    return code, "", results


def _by_topic(partitions: Iterable[TopicPartition]) -> list[dict[str, object]]:
    by_topic: dict[str, list[int]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    return [{"topic": topic, "partitions": indexes} for topic, indexes in by_topic.items()]


def _encode(api: Api, version: int, fields: Mapping[str, Any]) -> bytes:
    kind = api.requests[version]
    return encode_entity(kind, build_entity(kind, fields))


def _decode(api: Api, version: int, body: bytes) -> Any:
    reader = Reader(body, flexible=is_flexible(api, version))
    entity = read_entity(api.responses[version], reader)
    reader.expect_end()
    return entity


def _error(entity: Any) -> tuple[int, str]:
    return int(entity.error_code), entity.error_message or ""
