"""How a broker gets producer ids: from 3.0 on it asks the controller, before that it takes a block.

Source: ``RPCProducerIdManager``, ``ZkProducerIdManager``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from regent.protocol.error_codes import NONE
from regent.zk_data import paths
from regent.zk_data.operations import Create, Operation, SetData, Written, ZNode
from regent.zk_data.producer_ids import (
    BLOCK_SIZE,
    decode_next_producer_id,
    encode_producer_id_block,
)

if TYPE_CHECKING:
    from tests.simulation.broker import SimulatedBroker
    from tests.simulation.controller_channel import ControllerChannel
    from tests.simulation.world import World

ASKED_FOR_SINCE = (3, 0)


class ProducerIds:
    """The blocks of ids of one life of a broker."""

    def __init__(self, world: World, broker: SimulatedBroker, channel: ControllerChannel) -> None:
        self._world = world
        self._broker = broker
        self._channel = channel
        self._is_asking = False

    def need(self) -> bool:
        """The block is used up. Whether another one is asked for, or taken."""
        if self._broker.protocol < ASKED_FOR_SINCE:
            return self._take_one()
        if self._is_asking:
            return False
        self._is_asking = True
        request = AllocateProducerIdsRequest(self._broker.broker_id, self._broker.epoch)
        self._channel.send(request, self._answered)
        return True

    def _answered(self, answer: AllocateProducerIdsResponse) -> None:
        self._is_asking = False
        if answer.error_code != NONE and self._world.is_turbulent:
            self.need()

    def _take_one(self) -> bool:
        client = self._broker.client
        if client is None or not client.is_connected:
            return False
        (node,) = client.get_data([paths.PRODUCER_ID_BLOCK])
        first_id, operation = next_block(node, self._broker.broker_id)
        (result,) = client.multi([operation])
        assert isinstance(result, Written), "nobody else moves during a step"
        self._world.safety.broker_requests.gave_producer_ids(
            self._broker.name, first_id, BLOCK_SIZE
        )
        return True


def next_block(node: ZNode | None, broker_id: int) -> tuple[int, Operation]:
    """The first id of the next block, and what takes it, on condition of the node's version."""
    path = paths.PRODUCER_ID_BLOCK
    first_id = decode_next_producer_id(None if node is None else node.data)
    data = encode_producer_id_block(broker_id, first_id)
    return first_id, Create(path, data) if node is None else SetData(path, data, node.version)
