"""ControlledShutdown, versions 0 to 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from regent.admin.commands import Accepted
from regent.controller.commands import ControlledShutdown, ControlledShutdownResult
from regent.endpoint.handling import Handler
from regent.model.partition import NO_EPOCH, TopicPartition
from regent.protocol.entities.controlled_shutdown import CONTROLLED_SHUTDOWN_RESPONSE
from regent.protocol.error_codes import NOT_CONTROLLER
from regent.protocol.served_apis import CONTROLLED_SHUTDOWN
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_BROKER_EPOCH_SINCE: Final = 2


async def _answer(request: Request, controller: ControllerRequests) -> Any:
    entity = request.entity
    has_epoch = request.header.api_version >= _BROKER_EPOCH_SINCE
    epoch = entity.broker_epoch if has_epoch else NO_EPOCH
    outcome = await controller.carry_out(ControlledShutdown(entity.broker_id, epoch))
    if not isinstance(outcome, Accepted):
        return _refusal(request, NOT_CONTROLLER)
    result: ControlledShutdownResult = outcome.result
    return _encode(request, result.error_code, result.remaining_partitions)


def _refusal(request: Request, error_code: int) -> Any:
    return _encode(request, error_code, ())


def _encode(request: Request, error_code: int, remaining: Sequence[TopicPartition]) -> Any:
    version = request.header.api_version
    partition = CONTROLLED_SHUTDOWN_RESPONSE.nested("RemainingPartition", version)
    return CONTROLLED_SHUTDOWN_RESPONSE[version](
        error_code=ErrorCode(error_code),
        remaining_partitions=tuple(
            partition(topic_name=tp.topic, partition_index=tp.partition) for tp in remaining
        ),
    )


HANDLER: Final = Handler(CONTROLLED_SHUTDOWN, _answer, _refusal)
