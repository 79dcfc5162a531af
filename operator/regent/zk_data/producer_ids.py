"""Blocks of producer ids: ``/latest_producer_id_block``."""

from __future__ import annotations

from typing import Final

import msgspec

from regent.model.errors import MalformedZNodeError
from regent.zk_data import paths
from regent.zk_data.decoding import Int32, decimal, json_decoder, json_object

PRODUCER_ID_BLOCK_SIZE: Final = 1000


class ProducerIdBlock(msgspec.Struct, frozen=True):
    """A range of producer ids given to one broker.

    Attributes:
        first_producer_id: First id of the block.
        last_producer_id: Last id of the block, inclusive.
    """

    broker: int
    first_producer_id: int
    last_producer_id: int


class _Block(msgspec.Struct):
    broker: Int32
    block_start: str
    block_end: str


_decode = json_decoder(_Block)


def decode_producer_id_block(data: bytes) -> ProducerIdBlock:
    """The block that was given out last.

    The node is created empty: callers must treat empty data as "no block yet" themselves.

    Raises:
        MalformedZNodeError: If the node does not decode or the block ends before it starts.
    """
    path = paths.PRODUCER_ID_BLOCK
    block = _decode(path, data)
    first = decimal(path, block.block_start, of="block_start")
    last = decimal(path, block.block_end, of="block_end")
    if not 0 <= first <= last:
        raise MalformedZNodeError(path, f"block {first} to {last}")
    return ProducerIdBlock(block.broker, first, last)


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    """Inverse of :func:`decode_producer_id_block`."""
    return json_object(
        [
            ("version", 1),
            ("broker", block.broker),
            ("block_start", str(block.first_producer_id)),
            ("block_end", str(block.last_producer_id)),
        ]
    )
