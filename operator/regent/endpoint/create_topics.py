"""CreateTopics, versions 0 to 7."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Final

from regent.admin.commands import CreateTopic
from regent.controller.topic_defaults import TopicDefaults, topic_defaults
from regent.controller.view import ClusterView, TopicView
from regent.endpoint.authorization import PeerAccess
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
from regent.endpoint.topic_requests import (
    UNSET,
    NewTopic,
    Twins,
    already_existing,
    conflicting_numbers,
    creation_error,
    creation_policy_problem,
    creation_problem,
    too_many_partitions,
)
from regent.model.acls import AclOperation
from regent.protocol.entity_building import build_entity
from regent.protocol.error_codes import (
    INVALID_REQUEST,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
)
from regent.protocol.served_apis import CREATE_TOPICS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_DUPLICATE: Final = ApiError(INVALID_REQUEST, "Found multiple entries for this topic.")
_NOT_ALLOWED: Final = ApiError(TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
_METADATA_SINCE: Final = 5
_DYNAMIC_TOPIC_CONFIG: Final = 1
"""Kafka's number of the source of a topic's own configuration."""


async def _answer(
    request: Request, controller: ControllerRequests, access: PeerAccess, quota: MutationQuota
) -> Any:
    entity = request.entity
    names = [topic.name for topic in entity.topics]
    if not controller.view.is_active:
        return _response(request, [(name, fields_of(WRONG_CONTROLLER)) for name in names])
    errors = await _refused(names, access)
    view = controller.view
    wanted: dict[str, NewTopic] = {}
    for each in entity.topics:
        if each.name not in errors:
            topic, problem = _new_topic(view, each)
            if problem is None:
                wanted[each.name] = topic
            else:
                errors[each.name] = problem
    validate_only = request.header.api_version >= 1 and entity.validate_only
    errors |= await _create(controller, wanted, quota, validate_only=validate_only)
    created = [name for name in wanted if errors[name] == DONE]
    if not validate_only and created:
        counts = {name: _partitions(wanted[name]) for name in created}
        ready = await controller.settled(
            created,
            lambda name, topic: is_led(topic, counts[name]),
            timeout_s=entity.timeout.total_seconds(),
        )
        errors |= {name: TIMED_OUT for name in created if name not in ready}
    described: Collection[str] = ()
    if request.header.api_version >= _METADATA_SINCE:
        done = [name for name in wanted if errors[name] == DONE]
        described = await access.to_topics(AclOperation.DESCRIBE_CONFIGS, done, is_required=False)
    results = {
        name: _result(controller.view, wanted[name], is_described=name in described)
        if errors[name] == DONE
        else fields_of(errors[name])
        for name in names
    }
    return _response(request, [(name, results[name]) for name in names])


async def _refused(names: list[str], access: PeerAccess) -> dict[str, ApiError]:
    times = Counter(names)
    errors = {name: _DUPLICATE for name in names if times[name] > 1}
    if not await access.to_cluster(AclOperation.CREATE, is_required=False):
        allowed = await access.to_topics(AclOperation.CREATE, names)
        errors |= {n: _NOT_ALLOWED for n in names if n not in allowed and n not in errors}
    return errors


def _new_topic(view: ClusterView, entity: Any) -> tuple[NewTopic, ApiError | None]:
    """What is asked for, with the defaults of the brokers; and what is wrong with it."""
    defaults = topic_defaults(view) or TopicDefaults()
    partitions, factor = entity.num_partitions, entity.replication_factor
    topic = NewTopic(
        entity.name,
        defaults.partitions if partitions == UNSET else partitions,
        defaults.replication_factor if factor == UNSET else factor,
        {each.partition_index: tuple(each.broker_ids) for each in entity.assignments},
        {each.name: each.value for each in entity.configs},
    )
    if entity.assignments and (partitions, factor) != (UNSET, UNSET):
        return topic, already_existing(view, topic.name) or conflicting_numbers()
    return topic, creation_policy_problem(view) or creation_problem(view, topic)


async def _create(
    controller: ControllerRequests,
    topics: Mapping[str, NewTopic],
    quota: MutationQuota,
    *,
    validate_only: bool,
) -> dict[str, ApiError]:
    problem = too_many_partitions(sum(map(_partitions, topics.values())))
    if problem is not None:
        return dict.fromkeys(topics, problem)
    partitions = {name: _partitions(topic) for name, topic in topics.items()}
    admitted = list(topics) if validate_only else quota.admitted(partitions)
    commands = [_command(topics[name], validate_only=validate_only) for name in admitted]
    outcomes = await controller.carry_out_all(commands)
    twins = Twins(controller.view)
    errors = dict.fromkeys(topics, THROTTLED) | {
        name: creation_error(twins, topics[name], outcome)
        for name, outcome in zip(admitted, outcomes, strict=True)
    }
    if not validate_only:
        quota.give_back(sum(partitions[name] for name in admitted if errors[name] != DONE))
    return errors


def _command(topic: NewTopic, *, validate_only: bool) -> CreateTopic:
    return CreateTopic(
        topic.name,
        partitions=_partitions(topic),
        replication_factor=None if topic.assignment else topic.replication_factor,
        assignment=topic.assignment or None,
        config={name: value for name, value in topic.config.items() if value is not None},
        awaits_replicas=True,
        validate_only=validate_only,
    )


def _partitions(topic: NewTopic) -> int:
    return len(topic.assignment) or topic.partitions


def is_led(topic: TopicView | None, partitions: int) -> bool:
    """Whether a topic has so many partitions, each with a leader."""
    return topic is not None and len(topic.partitions) >= partitions and not topic.leaderless


def _result(view: ClusterView, topic: NewTopic, *, is_described: bool) -> dict[str, object]:
    known = view.topics.get(topic.name)
    fields: dict[str, object] = {
        **fields_of(DONE),
        "topic_id": None if known is None else known.topic_id,
    }
    if not is_described:
        return {**fields, "topic_config_error_code": TOPIC_AUTHORIZATION_FAILED}
    replicas = next(iter(topic.assignment.values()), ())
    return {
        **fields,
        "topic_config_error_code": NONE,
        "num_partitions": _partitions(topic),
        "replication_factor": len(replicas) or topic.replication_factor,
        "configs": [
            {
                "name": name,
                "value": value,
                "read_only": False,
                "config_source": _DYNAMIC_TOPIC_CONFIG,
                "is_sensitive": False,
            }
            for name, value in sorted(topic.config.items())
        ],
    }


def _response(request: Request, results: list[tuple[str, Mapping[str, object]]]) -> Any:
    unset = {"topic_id": None, "configs": ()}
    return build_entity(
        CREATE_TOPICS.responses[request.header.api_version],
        {"topics": [{"name": name, **unset, **fields} for name, fields in results]},
    )


HANDLER: Final = MutationHandler(CREATE_TOPICS, _answer, strict_since=6)
