"""AllocateProducerIds: blocks of producer ids for brokers (KIP-730, protocol version 3.0 and up).

The blocks for all brokers that wait are one write, conditional on the version of the node: brokers
of a rolling upgrade still write it themselves. A block counts as given away once it is written,
whether or not its broker gets the answer: so no id is given twice. Nor is it where the node was
set back, as far as this process has given ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    Asked,
)
from regent.controller.log import (
    PRODUCER_IDS_CONTENDED,
    PRODUCER_IDS_EXHAUSTED,
    PRODUCER_IDS_MALFORMED,
    PRODUCER_IDS_NOT_WRITTEN,
    PRODUCER_IDS_SET_BACK,
    PRODUCER_IDS_UNREADABLE,
)
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import MalformedZNodeError
from regent.protocol.error_codes import (
    BROKER_ID_NOT_REGISTERED,
    NONE,
    STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR,
)
from regent.zk_data import paths
from regent.zk_data.effects import Write
from regent.zk_data.operations import Create, SetData, Written, ZkError
from regent.zk_data.permitted_reads import UnreadableZNode, read_permitted
from regent.zk_data.producer_ids import (
    BLOCK_SIZE,
    MAX_PRODUCER_ID,
    decode_next_producer_id,
    encode_producer_id_block,
)

ATTEMPTS: Final = 10
"""At a node that brokers write at the same time. A broker that gets an error asks again."""


async def process_allocate_producer_ids(
    active: ActiveController, asked: Sequence[Asked[AllocateProducerIdsRequest]]
) -> list[AllocateProducerIdsResponse]:
    """Give a block to each broker. Returns an answer for each request."""
    errors = [_error_of(active.context, each.request) for each in asked]
    entitled = [
        each.request.broker_id for each, error in zip(asked, errors, strict=True) if error == NONE
    ]
    first_ids = iter(await _allocate(active, entitled) if entitled else ())
    answers: list[AllocateProducerIdsResponse] = []
    for error in errors:
        first_id = next(first_ids, None) if error == NONE else None
        if first_id is None:
            answers.append(AllocateProducerIdsResponse(error or UNKNOWN_SERVER_ERROR))
        else:
            answers.append(AllocateProducerIdsResponse(NONE, first_id, BLOCK_SIZE))
    return answers


def _error_of(context: ControllerContext, request: AllocateProducerIdsRequest) -> int:
    broker = context.cluster.brokers.get(request.broker_id)
    if broker is None:
        return BROKER_ID_NOT_REGISTERED
    return NONE if broker.epoch == request.broker_epoch else STALE_BROKER_EPOCH


async def _allocate(active: ActiveController, broker_ids: Sequence[int]) -> list[int]:
    """The first id of a block for each broker; nothing if there is none to give."""
    path, guard = paths.PRODUCER_ID_BLOCK, epoch_guard(active.context)
    for _ in range(ATTEMPTS):
        (node,) = await read_permitted([path])
        if isinstance(node, UnreadableZNode):
            active.log.error(PRODUCER_IDS_UNREADABLE, path=path)
            return []
        try:
            next_id = decode_next_producer_id(None if node is None else node.data)
        except MalformedZNodeError as error:
            active.log.error(PRODUCER_IDS_MALFORMED, path=path, reason=error.reason)
            return []
        next_id = _above_given(active, next_id)
        last_block = next_id + (len(broker_ids) - 1) * BLOCK_SIZE
        if last_block + BLOCK_SIZE - 1 > MAX_PRODUCER_ID:
            active.log.error(PRODUCER_IDS_EXHAUSTED, next_id=next_id)
            return []
        data = encode_producer_id_block(broker_ids[-1], last_block)
        operation = Create(path, data) if node is None else SetData(path, data, node.version)
        (result,) = await Write([operation], guard=guard)
        if isinstance(result, Written):
            active.context.cluster.given_producer_ids.note(last_block + BLOCK_SIZE)
            return [next_id + i * BLOCK_SIZE for i in range(len(broker_ids))]
        if result not in (ZkError.BAD_VERSION, ZkError.NODE_EXISTS, ZkError.NO_NODE):
            active.log.error(PRODUCER_IDS_NOT_WRITTEN, path=path, answer=result.value)
            return []
    active.log.warning(PRODUCER_IDS_CONTENDED, path=path)
    return []


def _above_given(active: ActiveController, next_id: int) -> int:
    """The first id that nobody has got, by the node and by what we have given ourselves."""
    known = active.context.cluster.given_producer_ids.next_id
    if next_id < known:
        active.log.warning(
            PRODUCER_IDS_SET_BACK,
            path=paths.PRODUCER_ID_BLOCK,
            stored=next_id,
            next_id=known,
        )
    return max(next_id, known)
