"""What brokers report through sequential nodes: ISR changes and failed log directories."""

from __future__ import annotations

import msgspec

from regent.model.partition import TopicPartition
from regent.zk_data.decoding import BrokerId, PartitionId, json_decoder


class _Partition(msgspec.Struct):
    topic: str
    partition: PartitionId


class _IsrChange(msgspec.Struct):
    partitions: list[_Partition]


class _LogDirEvent(msgspec.Struct):
    broker: BrokerId


_decode_isr_change = json_decoder(_IsrChange)
_decode_log_dir_event = json_decoder(_LogDirEvent)


def decode_isr_change_notification(path: str, data: bytes) -> tuple[TopicPartition, ...]:
    """Partitions whose leader has changed the ISR in ZooKeeper, without repetitions.

    Raises:
        MalformedZNodeError: If the notification does not decode.
    """
    listed = _decode_isr_change(path, data).partitions
    return tuple(dict.fromkeys(TopicPartition(p.topic, p.partition) for p in listed))


def decode_log_dir_event(path: str, data: bytes) -> int:
    """Id of the broker that has lost a log directory. The event type is not looked at, as in Kafka.

    Raises:
        MalformedZNodeError: If the notification does not decode.
    """
    return _decode_log_dir_event(path, data).broker
