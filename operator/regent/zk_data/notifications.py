"""What brokers report through sequential nodes: ISR changes and failed log directories."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from regent.model.partition import TopicPartition
from regent.zk_data.admin import decode_partitions, encode_partitions
from regent.zk_data.decoding import BrokerId, json_decoder, json_object

LOG_DIR_FAILURE: Final = 1
"""The only type of log directory event."""


class _LogDirEvent(msgspec.Struct):
    broker: BrokerId


_decode_log_dir_event = json_decoder(_LogDirEvent)


def decode_isr_change_notification(path: str, data: bytes) -> tuple[TopicPartition, ...]:
    """Partitions whose leader has changed the ISR in ZooKeeper, without repetitions.

    Raises:
        MalformedZNodeError: If the notification does not decode.
    """
    return decode_partitions(path, data)


def encode_isr_change_notification(partitions: Iterable[TopicPartition]) -> bytes:
    """Inverse of :func:`decode_isr_change_notification`."""
    return encode_partitions(partitions)


def decode_log_dir_event(path: str, data: bytes) -> int:
    """Id of the broker that has lost a log directory. The event type is not looked at, as in Kafka.

    Raises:
        MalformedZNodeError: If the notification does not decode.
    """
    return _decode_log_dir_event(path, data).broker


def encode_log_dir_event(broker: int) -> bytes:
    """Inverse of :func:`decode_log_dir_event`."""
    return json_object([("version", 1), ("broker", broker), ("event", LOG_DIR_FAILURE)])
