"""DeleteTopics, versions 0 to 6."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from regent.admin.commands import DeleteTopic, Outcome, Reason, Rejected
from regent.controller.view import ClusterView
from regent.endpoint.authorization import PeerAccess
from regent.endpoint.handling import MutationHandler
from regent.endpoint.quotas import MutationQuota
from regent.endpoint.refusals import (
    DONE,
    THROTTLED,
    TIMED_OUT,
    WRONG_CONTROLLER,
    ApiError,
    error_of,
)
from regent.model.acls import AclOperation
from regent.protocol.entity_building import build_entity
from regent.protocol.error_codes import (
    INVALID_REQUEST,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
)
from regent.protocol.served_apis import DELETE_TOPICS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

GONE_WITHIN_S: Final = 5.0
"""So long the answer waits for a topic to be gone, so that it can be created again. After that it
is enough, as in Kafka, that it is being deleted: brokers do not show it any more."""

_DELETION_DISABLED_SINCE: Final = 3
_IDS_SINCE: Final = 6
_NOT_ALLOWED: Final = ApiError(TOPIC_AUTHORIZATION_FAILED)


class _Asked(NamedTuple):
    """A topic of a request.

    Attributes:
        name: None if it is asked for by an id that no topic has, or must not be disclosed.
    """

    name: str | None
    topic_id: uuid.UUID | None


async def _answer(
    request: Request, controller: ControllerRequests, access: PeerAccess, quota: MutationQuota
) -> Any:
    asked = _asked(request)
    if not controller.view.is_active:
        return _response(request, [(each, WRONG_CONTROLLER) for each in asked])
    if any(each.name is not None and each.topic_id is not None for each in asked):
        return _response(request, [(each, ApiError(INVALID_REQUEST)) for each in asked])
    asked = _named(controller.view, asked)
    names = [each.name for each in asked if each.name is not None]
    describable = await access.to_topics(AclOperation.DESCRIBE, names, is_required=False)
    deletable = await access.to_topics(AclOperation.DELETE, names)
    commands = [
        DeleteTopic(each.name, each.topic_id)
        for each in dict.fromkeys(asked)
        if each.name in deletable and (each.topic_id is None or each.name in describable)
        if each.name is not None
    ]
    errors = await _delete(request, controller, commands, quota)
    return _response(request, [_result(each, errors, describable) for each in asked])


def _asked(request: Request) -> list[_Asked]:
    entity = request.entity
    if request.header.api_version < _IDS_SINCE:
        return [_Asked(name, None) for name in entity.topic_names]
    return [_Asked(topic.name, topic.topic_id) for topic in entity.topics]


def _named(view: ClusterView, asked: Sequence[_Asked]) -> list[_Asked]:
    """The same with the names of the topics that are asked for by their ids."""
    wanted = {each.topic_id for each in asked if each.topic_id is not None}
    if not wanted:
        return list(asked)
    names = {t.topic_id: t.name for t in view.topics.values() if t.topic_id in wanted}
    return [
        each if each.topic_id is None else _Asked(names.get(each.topic_id), each.topic_id)
        for each in asked
    ]


async def _delete(
    request: Request,
    controller: ControllerRequests,
    commands: Sequence[DeleteTopic],
    quota: MutationQuota,
) -> dict[str, ApiError]:
    partitions = _partitions(controller.view, commands)
    refused = partitions.keys() - set(quota.admitted(partitions))
    errors = dict.fromkeys(refused, THROTTLED)
    admitted = [command for command in commands if command.topic not in refused]
    outcomes = await controller.carry_out_all(admitted)
    for command, outcome in zip(admitted, outcomes, strict=True):
        errors[command.topic] = _error(request, outcome)
    quota.give_back(
        sum(count for topic, count in partitions.items() if errors[topic] not in (DONE, THROTTLED))
    )
    marked = [topic for topic, error in errors.items() if error == DONE]
    timeout_s = request.entity.timeout.total_seconds()
    gone = await controller.settled(
        marked, lambda _, topic: topic is None, timeout_s=min(timeout_s, GONE_WITHIN_S)
    )
    rest = [topic for topic in marked if topic not in gone]
    forgotten = await controller.settled(
        rest,
        lambda _, topic: topic is None or topic.is_being_deleted,
        timeout_s=timeout_s - GONE_WITHIN_S,
    )
    if timeout_s <= 0:
        forgotten = ()
    return errors | {topic: TIMED_OUT for topic in rest if topic not in forgotten}


def _partitions(view: ClusterView, commands: Sequence[DeleteTopic]) -> dict[str, int]:
    """How many partitions are to be deleted, of the topics that are not being deleted yet."""
    topics = (view.topics.get(command.topic) for command in commands)
    return {
        topic.name: len(topic.partitions)
        for topic in topics
        if topic is not None and not topic.is_being_deleted
    }


def _error(request: Request, outcome: Outcome) -> ApiError:
    is_disabled = isinstance(outcome, Rejected) and outcome.reason is Reason.TOPIC_DELETION_DISABLED
    if is_disabled and request.header.api_version < _DELETION_DISABLED_SINCE:
        return ApiError(INVALID_REQUEST)
    return ApiError(error_of(outcome).code)


def _result(
    asked: _Asked, errors: dict[str, ApiError], describable: Collection[str]
) -> tuple[_Asked, ApiError]:
    if asked.name is None:
        return asked, ApiError(UNKNOWN_TOPIC_ID)
    if asked.topic_id is not None and asked.name not in describable:
        return _Asked(None, asked.topic_id), _NOT_ALLOWED
    return asked, errors.get(asked.name, _NOT_ALLOWED)


def _response(request: Request, results: Sequence[tuple[_Asked, ApiError]]) -> Any:
    return build_entity(
        DELETE_TOPICS.responses[request.header.api_version],
        {
            "responses": [
                {"name": asked.name, "topic_id": asked.topic_id, "error_code": error.code}
                for asked, error in results
            ]
        },
    )


HANDLER: Final = MutationHandler(DELETE_TOPICS, _answer, strict_since=5)
