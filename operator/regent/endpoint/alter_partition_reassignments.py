"""AlterPartitionReassignments, version 0 (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from regent.admin.commands import Accepted, AlterPartitionReassignments, PartitionResult
from regent.controller.view import ClusterView
from regent.endpoint.authorization import PeerAccess
from regent.endpoint.handling import AdminHandler
from regent.endpoint.refusals import DONE, WRONG_CONTROLLER, ApiError, error_of, fields_of
from regent.endpoint.topic_requests import live_brokers
from regent.model.acls import AclOperation
from regent.model.partition import FoundPartition, ReplicaAssignment, TopicPartition
from regent.protocol.entity_building import build_entity
from regent.protocol.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
)
from regent.protocol.served_apis import ALTER_PARTITION_REASSIGNMENTS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_NOT_ALLOWED: Final = ApiError(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")

Targets = Mapping[TopicPartition, tuple[int, ...] | None]


async def _answer(request: Request, controller: ControllerRequests, access: PeerAccess) -> Any:
    targets = _targets(request)
    if not await access.to_cluster(AclOperation.ALTER):
        return _error_response(request, targets, _NOT_ALLOWED)
    view = controller.view
    command = AlterPartitionReassignments(targets, _found(request))
    outcome = await controller.carry_out(command)
    if not isinstance(outcome, Accepted):
        error = error_of(outcome)
        # To a controller that is none, Kafka's clients look at the error of the whole request.
        return _error_response(request, () if error == WRONG_CONTROLLER else targets, error)
    results: Mapping[TopicPartition, PartitionResult] = outcome.result
    errors = {tp: _error(view, targets[tp], tp, result) for tp, result in results.items()}
    return _response(request, DONE, errors)


def _targets(request: Request) -> Targets:
    return {
        TopicPartition(topic.name, each.partition_index): None
        if each.replicas is None
        else tuple(each.replicas)
        for topic in request.entity.topics
        for each in topic.partitions
    }


def _found(request: Request) -> Mapping[TopicPartition, FoundPartition]:
    """Return the conditions of a Regent operator; clients of Kafka send none."""
    return {
        TopicPartition(topic.name, each.partition_index): FoundPartition(
            condition.topic_czxid,
            ReplicaAssignment(
                tuple(condition.replicas),
                tuple(condition.adding_replicas),
                tuple(condition.removing_replicas),
            ),
        )
        for topic in request.entity.topics
        for each in topic.partitions
        for condition in each.found
    }


def _error(
    view: ClusterView,
    target: tuple[int, ...] | None,
    tp: TopicPartition,
    result: PartitionResult,
) -> ApiError:
    """In Kafka's words, as far as it has some."""
    message = result.message or None
    if result.error_code == NO_REASSIGNMENT_IN_PROGRESS:
        message = "No partition reassignment is in progress."
    elif result.error_code == INVALID_REPLICA_ASSIGNMENT and target is not None:
        message = _target_problem(view, tp, target) or message
    return ApiError(result.error_code, message)


def _target_problem(view: ClusterView, tp: TopicPartition, target: Sequence[int]) -> str | None:
    if not target:
        return "Empty replica list specified in partition reassignment."
    if len(set(target)) < len(target):
        return (
            "Duplicate replica ids in partition reassignment replica list: "
            f"{_shown('ArrayBuffer', target)}"
        )
    if min(target) < 0:
        return f"Invalid broker id in replica list: {_shown('ArrayBuffer', target)}"
    topic = view.topics.get(tp.topic)
    partitions = () if topic is None else topic.partitions
    current = [b for p in partitions if p.partition == tp.partition for b in p.replicas]
    adding = [broker for broker in target if broker not in current]
    live = live_brokers(view)
    if all(broker in live for broker in adding):
        return None
    return (
        "Replica assignment has brokers that are not alive. Replica list: "
        f"{_shown('ArrayBuffer', adding)}, live broker list: {_shown('Set', live)}"
    )


def _shown(kind: str, values: Iterable[int]) -> str:
    """As Scala shows a collection."""
    return f"{kind}({', '.join(map(str, values))})"


def _error_response(request: Request, partitions: Iterable[TopicPartition], error: ApiError) -> Any:
    return _response(request, error, dict.fromkeys(partitions, error))


def _response(request: Request, error: ApiError, results: Mapping[TopicPartition, ApiError]) -> Any:
    by_topic: dict[str, list[dict[str, object]]] = {}
    for tp, each in results.items():
        partition = {"partition_index": tp.partition, **fields_of(each)}
        by_topic.setdefault(tp.topic, []).append(partition)
    return build_entity(
        ALTER_PARTITION_REASSIGNMENTS.responses[request.header.api_version],
        {
            **fields_of(error),
            "responses": [
                {"name": topic, "partitions": partitions} for topic, partitions in by_topic.items()
            ],
        },
    )


HANDLER: Final = AdminHandler(ALTER_PARTITION_REASSIGNMENTS, _answer)
