"""The last block of producer ids that was given away: ``/latest_producer_id_block``."""

from __future__ import annotations

from typing import Final

import msgspec

from regent.model.errors import MalformedZNodeError
from regent.zk_data import paths
from regent.zk_data.decoding import BrokerId, decimal, json_decoder, json_object

BLOCK_SIZE: Final = 1000
"""As in Kafka (``ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE``)."""

MAX_PRODUCER_ID: Final = 2**63 - 1


class _Block(msgspec.Struct):
    broker: BrokerId
    block_start: str
    block_end: str


_decode = json_decoder(_Block)


def decode_next_producer_id(data: bytes | None) -> int:
    """The first id that nobody has got.

    Args:
        data: None where the node has no data, as brokers create it.

    Raises:
        MalformedZNodeError: If the node says nothing sound.
    """
    path = paths.PRODUCER_ID_BLOCK
    if not data:
        return 0
    block = _decode(path, data)
    last = decimal(path, block.block_end, of="block_end")
    if not 0 <= last <= MAX_PRODUCER_ID:
        raise MalformedZNodeError(path, f"block_end {last} is no producer id")
    return last + 1


def encode_producer_id_block(broker_id: int, first_id: int) -> bytes:
    """A block as brokers and Kafka's controller write it."""
    return json_object(
        [
            ("version", 1),
            ("broker", broker_id),
            ("block_start", str(first_id)),
            ("block_end", str(first_id + BLOCK_SIZE - 1)),
        ]
    )
