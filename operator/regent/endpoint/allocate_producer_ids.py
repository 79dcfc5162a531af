"""AllocateProducerIds, version 0."""

from __future__ import annotations

import datetime
from typing import Any, Final

from kio.schema.errors import ErrorCode

from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from regent.endpoint.handling import Handler
from regent.protocol.served_apis import ALLOCATE_PRODUCER_IDS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests


async def _answer(request: Request, controller: ControllerRequests) -> Any:
    entity = request.entity
    asked = AllocateProducerIdsRequest(entity.broker_id, entity.broker_epoch)
    return _encode(request, await controller.allocate_producer_ids(asked))


def _refusal(request: Request, error_code: int) -> Any:
    return _encode(request, AllocateProducerIdsResponse(error_code))


def _encode(request: Request, answer: AllocateProducerIdsResponse) -> Any:
    return ALLOCATE_PRODUCER_IDS.responses[request.header.api_version](
        throttle_time=datetime.timedelta(0),
        error_code=ErrorCode(answer.error_code),
        producer_id_start=answer.first_id,
        producer_id_len=answer.size,
    )


HANDLER: Final = Handler(ALLOCATE_PRODUCER_IDS, _answer, _refusal)
