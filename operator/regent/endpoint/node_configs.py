"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, as they reach the controller's node.

What concerns topics, users, the default of all brokers or another broker is passed on to a broker.
What concerns the node of the controller itself is answered here: it has no broker's settings.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode

from regent.endpoint.handling import Handler
from regent.protocol.entity_reader import element_class
from regent.protocol.error_codes import INVALID_REQUEST
from regent.protocol.served_apis import (
    ALTER_CONFIGS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    Api,
)
from regent.protocol.server_codec import Request
from regent.protocol.serving import PassOn
from regent.runtime.ports import ControllerRequests

_NODE_RESOURCES: Final = {4, 8}
"""Kinds of resources that stand for one node: BROKER and BROKER_LOGGER."""

_DELETE: Final = 1
"""Kafka's number of the operation that removes a setting."""

_NOT_CHANGEABLE: Final = (
    "The settings of Regent are those of its process: they cannot be changed by a request"
)


class _Results(NamedTuple):
    """Where the results of an API are, and what they say of a node's settings."""

    field: str
    own: Callable[[type[Any], Any], Any]


def _described(kind: type[Any], resource: Any) -> Any:
    return _result(kind, resource, configs=())


def _not_changed(kind: type[Any], resource: Any) -> Any:
    return _result(kind, resource, error=INVALID_REQUEST, message=_NOT_CHANGEABLE)


def _changed_if_deleted(kind: type[Any], resource: Any) -> Any:
    """What is not set can be deleted: kafka-reassign-partitions does so with the throttles of every
    node, and fails, with the topics' throttles left, if one of them refuses."""
    if all(config.config_operation == _DELETE for config in resource.configs):
        return _result(kind, resource)
    return _not_changed(kind, resource)


def _result(
    kind: type[Any], resource: Any, *, error: int = 0, message: str | None = None, **fields: Any
) -> Any:
    return kind(
        error_code=ErrorCode(error),
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        **fields,
    )


async def _answer(
    request: Request, controller: ControllerRequests, *, api: Api, results: _Results
) -> Any:
    entity = request.entity
    own: list[Any] = []
    others: list[Any] = []
    for resource in entity.resources:
        (own if _is_ours(resource, controller) else others).append(resource)
    if not own:
        return PassOn()
    kind: Any = api.responses[request.header.api_version]
    element = element_class(kind, results.field)
    answers = tuple(results.own(element, each) for each in own)
    if not others:
        return kind(throttle_time=datetime.timedelta(0), **{results.field: answers})
    return PassOn(
        request=dataclasses.replace(entity, resources=tuple(others)),
        merged=lambda answer: dataclasses.replace(
            answer, **{results.field: (*getattr(answer, results.field), *answers)}
        ),
    )


def _is_ours(resource: Any, controller: ControllerRequests) -> bool:
    view = controller.view
    return (
        resource.resource_type in _NODE_RESOURCES
        and view.is_active
        and resource.resource_name == str(view.controller_id)
    )


def _refusal(request: Request, error_code: int, *, api: Api, results: _Results) -> Any:
    kind: Any = api.responses[request.header.api_version]
    element = element_class(kind, results.field)
    fields: dict[str, Any] = {"configs": ()} if api is DESCRIBE_CONFIGS else {}
    refused = tuple(
        _result(element, each, error=error_code, **fields) for each in request.entity.resources
    )
    return kind(throttle_time=datetime.timedelta(0), **{results.field: refused})


def _handler(api: Api, results: _Results) -> Handler:
    return Handler(
        api,
        partial(_answer, api=api, results=results),
        partial(_refusal, api=api, results=results),
        is_for_brokers=False,
    )


DESCRIBE_HANDLER: Final = _handler(DESCRIBE_CONFIGS, _Results("results", _described))
ALTER_HANDLER: Final = _handler(ALTER_CONFIGS, _Results("responses", _not_changed))
INCREMENTAL_HANDLER: Final = _handler(
    INCREMENTAL_ALTER_CONFIGS, _Results("responses", _changed_if_deleted)
)
