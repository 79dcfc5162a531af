"""ListPartitionReassignments, version 0 (KIP-455)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from regent.admin.commands import Accepted
from regent.controller.commands import ListPartitionReassignments
from regent.endpoint.authorization import PeerAccess
from regent.endpoint.handling import AdminHandler
from regent.endpoint.refusals import DONE, ApiError, error_of, fields_of
from regent.model.acls import AclOperation
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.protocol.entity_building import build_entity
from regent.protocol.error_codes import CLUSTER_AUTHORIZATION_FAILED
from regent.protocol.served_apis import LIST_PARTITION_REASSIGNMENTS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_NOT_ALLOWED: Final = ApiError(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


async def _answer(request: Request, controller: ControllerRequests, access: PeerAccess) -> Any:
    if not await access.to_cluster(AclOperation.DESCRIBE):
        return _response(request, _NOT_ALLOWED, {})
    outcome = await controller.carry_out(ListPartitionReassignments(_partitions(request)))
    if not isinstance(outcome, Accepted):
        return _response(request, error_of(outcome), {})
    return _response(request, DONE, outcome.result)


def _partitions(request: Request) -> tuple[TopicPartition, ...] | None:
    topics = request.entity.topics
    if topics is None:
        return None
    return tuple(
        dict.fromkeys(
            TopicPartition(each.name, p) for each in topics for p in each.partition_indexes
        )
    )


def _response(
    request: Request, error: ApiError, assignments: Mapping[TopicPartition, ReplicaAssignment]
) -> Any:
    by_topic: dict[str, list[dict[str, object]]] = {}
    for tp, assignment in sorted(assignments.items()):
        by_topic.setdefault(tp.topic, []).append(
            {
                "partition_index": tp.partition,
                "replicas": assignment.replicas,
                "adding_replicas": assignment.adding_replicas,
                "removing_replicas": assignment.removing_replicas,
            }
        )
    return build_entity(
        LIST_PARTITION_REASSIGNMENTS.responses[request.header.api_version],
        {
            **fields_of(error),
            "topics": [
                {"name": topic, "partitions": partitions} for topic, partitions in by_topic.items()
            ],
        },
    )


HANDLER: Final = AdminHandler(LIST_PARTITION_REASSIGNMENTS, _answer)
