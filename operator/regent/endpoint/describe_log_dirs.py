"""DescribeLogDirs, versions 0 to 4: clients ask a node for its own log directories."""

from __future__ import annotations

import datetime
from typing import Any, Final

from kio.schema.errors import ErrorCode

from regent.endpoint.handling import Handler
from regent.protocol.entity_reader import element_class
from regent.protocol.served_apis import DESCRIBE_LOG_DIRS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_ERROR_SINCE: Final = 3

_LOG_DIR: Final = "/dev/null"
"""Clients from 3.0 on take an answer without any directory for CLUSTER_AUTHORIZATION_FAILED."""


async def _answer(request: Request, _: ControllerRequests) -> Any:
    """A single directory, with nothing in it: the controller has no replicas."""
    kind: Any = DESCRIBE_LOG_DIRS.responses[request.header.api_version]
    directory = element_class(kind, "results")(
        error_code=ErrorCode.none, log_dir=_LOG_DIR, topics=()
    )
    return _encode(request, ErrorCode.none, (directory,))


def _refusal(request: Request, error_code: int) -> Any:
    return _encode(request, error_code, ())


def _encode(request: Request, error_code: int, results: tuple[Any, ...]) -> Any:
    version = request.header.api_version
    error = {"error_code": ErrorCode(error_code)} if version >= _ERROR_SINCE else {}
    kind: Any = DESCRIBE_LOG_DIRS.responses[version]
    return kind(throttle_time=datetime.timedelta(0), results=results, **error)


HANDLER: Final = Handler(DESCRIBE_LOG_DIRS, _answer, _refusal, is_for_brokers=False)
