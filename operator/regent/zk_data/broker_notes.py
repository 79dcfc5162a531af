"""Notes about one life of a broker each: ``/regent/shutting_down_brokers/<broker>`` and
``/regent/deposed_controllers/<broker>``.

These nodes are Regent's own. Kafka's controllers neither read nor remove them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from regent.zk_data.decoding import json_decoder, json_object


class BrokerNotes(msgspec.Struct, frozen=True):
    """Notes that say the same of their brokers.

    Attributes:
        parent: Where they are.
    """

    parent: str

    @property
    def parents(self) -> tuple[str, ...]:
        """To be created, in this order, before the first note."""
        return ("/regent", self.parent)

    def path(self, broker_id: int) -> str:
        """The note about a broker."""
        return f"{self.parent}/{broker_id}"


SHUTTING_DOWN: Final = BrokerNotes("/regent/shutting_down_brokers")
"""The broker has asked to be shut down."""

DEPOSED: Final = BrokerNotes("/regent/deposed_controllers")
"""Regent has taken ``/controller`` from the broker's own controller."""


class _Note(msgspec.Struct):
    broker_epoch: int = msgspec.field(name="brokerEpoch")


_decode = json_decoder(_Note)


def encode_broker_note(broker_epoch: int) -> bytes:
    """Content of a note: version 1, and which life of the broker is meant (the czxid of its
    registration)."""
    return json_object([("version", 1), ("brokerEpoch", broker_epoch)])


def decode_broker_note(path: str, data: bytes) -> int:
    """Broker epoch of the life that is meant.

    Raises:
        MalformedZNodeError: If the node does not decode.
    """
    return _decode(path, data).broker_epoch
