"""ListGroups, versions 0 to 5: clients ask every node for the groups that it coordinates."""

from __future__ import annotations

import datetime
from typing import Any, Final

from kio.schema.errors import ErrorCode

from regent.endpoint.handling import Handler
from regent.protocol.served_apis import LIST_GROUPS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_THROTTLED_SINCE: Final = 1


async def _answer(request: Request, _: ControllerRequests) -> Any:
    """None: the controller coordinates no group."""
    return _refusal(request, ErrorCode.none)


def _refusal(request: Request, error_code: int) -> Any:
    version = request.header.api_version
    throttle = {"throttle_time": datetime.timedelta(0)} if version >= _THROTTLED_SINCE else {}
    kind: Any = LIST_GROUPS.responses[version]
    return kind(error_code=ErrorCode(error_code), groups=(), **throttle)


HANDLER: Final = Handler(LIST_GROUPS, _answer, _refusal, is_for_brokers=False)
