"""ElectLeaders, versions 0 to 2; 0 elects preferred leaders only (KIP-460)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from regent.admin.commands import Accepted, ElectionType, ElectLeaders, PartitionResult
from regent.endpoint.authorization import PeerAccess
from regent.endpoint.handling import AdminHandler
from regent.endpoint.refusals import (
    DONE,
    TIMED_OUT,
    WRONG_CONTROLLER,
    ApiError,
    error_of,
    fields_of,
)
from regent.model.acls import AclOperation
from regent.model.partition import TopicPartition
from regent.protocol.entity_building import build_entity
from regent.protocol.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from regent.protocol.served_apis import ELECT_LEADERS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_TYPE_SINCE: Final = 1
_NOT_ALLOWED: Final = ApiError(CLUSTER_AUTHORIZATION_FAILED)

_WORDS: Final[Mapping[int, str]] = {
    ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    INVALID_TOPIC_EXCEPTION: "The topic is being deleted",
    UNKNOWN_TOPIC_OR_PARTITION: "The partition does not exist.",
}
_STRATEGIES: Final[Mapping[int, str]] = {
    PREFERRED_LEADER_NOT_AVAILABLE: "PreferredReplicaPartitionLeaderElectionStrategy",
    ELIGIBLE_LEADERS_NOT_AVAILABLE: "OfflinePartitionLeaderElectionStrategy(true)",
}


async def _answer(request: Request, controller: ControllerRequests, access: PeerAccess) -> Any:
    partitions = _partitions(request)
    if not controller.view.is_active:
        return _error_response(request, partitions, WRONG_CONTROLLER)
    if not await access.to_cluster(AclOperation.ALTER):
        return _error_response(request, partitions, _NOT_ALLOWED)
    has_type = request.header.api_version >= _TYPE_SINCE
    number = request.entity.election_type if has_type else ElectionType.PREFERRED
    if number not in tuple(ElectionType):
        unknown = ApiError(INVALID_REQUEST, f"{number} is no type of elections.")
        return _error_response(request, partitions, unknown)
    outcome = await controller.carry_out(ElectLeaders(ElectionType(number), partitions))
    if not isinstance(outcome, Accepted):
        return _error_response(request, partitions, error_of(outcome))
    results: Mapping[TopicPartition, PartitionResult] = outcome.result
    errors = {tp: _error(tp, each) for tp, each in results.items()}
    elected = [tp for tp, error in errors.items() if error == DONE]
    timeout_s = request.entity.timeout.total_seconds()
    if elected and not await controller.propagated(timeout_s=timeout_s):
        errors |= dict.fromkeys(elected, TIMED_OUT)
    return _response(request, DONE, errors)


def _partitions(request: Request) -> tuple[TopicPartition, ...] | None:
    asked = request.entity.topic_partitions
    if asked is None:
        return None
    return tuple(
        dict.fromkeys(TopicPartition(each.topic, p) for each in asked for p in each.partitions)
    )


def _error(tp: TopicPartition, result: PartitionResult) -> ApiError:
    """In Kafka's words."""
    code = result.error_code
    if code in _STRATEGIES:
        return ApiError(
            code,
            f"Failed to elect leader for partition {tp} under strategy {_STRATEGIES[code]}",
        )
    return ApiError(code, _WORDS.get(code, result.message or None))


def _error_response(
    request: Request, partitions: Iterable[TopicPartition] | None, error: ApiError
) -> Any:
    return _response(request, error, dict.fromkeys(partitions or (), error))


def _response(request: Request, error: ApiError, results: Mapping[TopicPartition, ApiError]) -> Any:
    by_topic: dict[str, list[dict[str, object]]] = {}
    for tp, each in results.items():
        partition = {"partition_id": tp.partition, **fields_of(each)}
        by_topic.setdefault(tp.topic, []).append(partition)
    return build_entity(
        ELECT_LEADERS.responses[request.header.api_version],
        {
            "error_code": error.code,
            "replica_election_results": [
                {"topic": topic, "partition_result": results} for topic, results in by_topic.items()
            ],
        },
    )


HANDLER: Final = AdminHandler(ELECT_LEADERS, _answer)
