"""ListTransactions, versions 0 and 1: clients ask every node for those that it coordinates."""

from __future__ import annotations

import datetime
from typing import Any, Final

from kio.schema.errors import ErrorCode

from regent.endpoint.handling import Handler
from regent.protocol.served_apis import LIST_TRANSACTIONS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests


async def _answer(request: Request, _: ControllerRequests) -> Any:
    """None: the controller coordinates no transaction."""
    return _refusal(request, ErrorCode.none)


def _refusal(request: Request, error_code: int) -> Any:
    kind: Any = LIST_TRANSACTIONS.responses[request.header.api_version]
    return kind(
        throttle_time=datetime.timedelta(0),
        error_code=ErrorCode(error_code),
        unknown_state_filters=(),
        transaction_states=(),
    )


HANDLER: Final = Handler(LIST_TRANSACTIONS, _answer, _refusal, is_for_brokers=False)
