"""Brokers that are shutting down: ``/regent/shutting_down_brokers/<broker>``.

These nodes are Regent's own. Kafka's controllers neither read nor remove them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from regent.zk_data.decoding import json_decoder, json_object

SHUTTING_DOWN_BROKERS: Final = "/regent/shutting_down_brokers"
PARENTS: Final = ("/regent", SHUTTING_DOWN_BROKERS)
"""To be created, in this order, before the first node."""


class _ShuttingDownBroker(msgspec.Struct):
    broker_epoch: int = msgspec.field(name="brokerEpoch")


_decode = json_decoder(_ShuttingDownBroker)


def shutting_down_broker(broker_id: int) -> str:
    """The node of one broker."""
    return f"{SHUTTING_DOWN_BROKERS}/{broker_id}"


def encode_shutting_down_broker(broker_epoch: int) -> bytes:
    """Content of a node: version 1, and which life of the broker is meant (the czxid of its
    registration)."""
    return json_object([("version", 1), ("brokerEpoch", broker_epoch)])


def decode_shutting_down_broker(path: str, data: bytes) -> int:
    """Broker epoch of the broker that was shutting down.

    Raises:
        MalformedZNodeError: If the node does not decode.
    """
    return _decode(path, data).broker_epoch
