"""CreatePartitions, versions 0 to 3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from regent.admin.commands import CreatePartitions
from regent.controller.view import ClusterView
from regent.endpoint.authorization import PeerAccess
from regent.endpoint.create_topics import is_led
from regent.endpoint.handling import MutationHandler
from regent.endpoint.quotas import MutationQuota
from regent.endpoint.refusals import (
    DONE,
    THROTTLED,
    TIMED_OUT,
    WRONG_CONTROLLER,
    ApiError,
    fields_of,
)
from regent.endpoint.topic_requests import growth_error, growth_problem, too_many_partitions
from regent.model.acls import AclOperation
from regent.protocol.entity_building import build_entity
from regent.protocol.error_codes import (
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    TOPIC_AUTHORIZATION_FAILED,
)
from regent.protocol.served_apis import CREATE_PARTITIONS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_DUPLICATE: Final = ApiError(INVALID_REQUEST, "Duplicate topic in request.")
_NOT_ALLOWED: Final = ApiError(TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed.")
_BEING_DELETED: Final = ApiError(INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")


async def _answer(
    request: Request, controller: ControllerRequests, access: PeerAccess, quota: MutationQuota
) -> Any:
    entity = request.entity
    names = list(dict.fromkeys(topic.name for topic in entity.topics))
    if not controller.view.is_active:
        return _response(request, dict.fromkeys(names, WRONG_CONTROLLER))
    times = Counter(topic.name for topic in entity.topics)
    allowed = await access.to_topics(AclOperation.ALTER, [n for n in names if times[n] == 1])
    view = controller.view
    errors: dict[str, ApiError] = {}
    growing: dict[str, CreatePartitions] = {}
    for topic in entity.topics:
        problem = _problem(view, topic)
        if times[topic.name] > 1:
            errors[topic.name] = _DUPLICATE
        elif topic.name not in allowed:
            errors[topic.name] = _NOT_ALLOWED
        elif problem is not None:
            errors[topic.name] = problem
        else:
            growing[topic.name] = _command(view, topic, validate_only=entity.validate_only)
    problem = too_many_partitions(sum(command.total for command in growing.values()))
    if problem is not None:
        return _response(request, {name: errors.get(name, problem) for name in names})
    added = {
        name: command.total - len(view.topics[name].partitions) for name, command in growing.items()
    }
    admitted = list(growing) if entity.validate_only else quota.admitted(added)
    outcomes = await controller.carry_out_all([growing[name] for name in admitted])
    errors |= dict.fromkeys(growing, THROTTLED)
    for name, outcome in zip(admitted, outcomes, strict=True):
        errors[name] = growth_error(name, outcome)
    if not entity.validate_only:
        quota.give_back(sum(added[name] for name in admitted if errors[name] != DONE))
    grown = [name for name in growing if errors[name] == DONE]
    if grown and not entity.validate_only:
        ready = await controller.settled(
            grown,
            lambda name, topic: is_led(topic, growing[name].total),
            timeout_s=entity.timeout.total_seconds(),
        )
        errors |= {name: TIMED_OUT for name in grown if name not in ready}
    return _response(request, {name: errors[name] for name in names})


def _assignments(topic: Any) -> list[tuple[int, ...]] | None:
    if topic.assignments is None:
        return None
    return [tuple(each.broker_ids) for each in topic.assignments]


def _problem(view: ClusterView, topic: Any) -> ApiError | None:
    known = view.topics.get(topic.name)
    if known is not None and known.is_being_deleted:
        return _BEING_DELETED
    return growth_problem(view, topic.name, topic.count, _assignments(topic))


def _command(view: ClusterView, topic: Any, *, validate_only: bool) -> CreatePartitions:
    assignments = _assignments(topic)
    first_new = len(view.topics[topic.name].partitions)
    return CreatePartitions(
        topic.name,
        topic.count,
        None if assignments is None else dict(enumerate(assignments, first_new)),
        validate_only,
    )


def _response(request: Request, errors: Mapping[str, ApiError]) -> Any:
    return build_entity(
        CREATE_PARTITIONS.responses[request.header.api_version],
        {"results": [{"name": name, **fields_of(error)} for name, error in errors.items()]},
    )


HANDLER: Final = MutationHandler(CREATE_PARTITIONS, _answer, strict_since=3)
