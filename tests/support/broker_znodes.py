"""What brokers write to ZooKeeper, and a controller never does: for stand-ins of brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.decoding import json_object

_LOG_DIR_FAILURE: Final = 1
"""The only type of log directory event."""


def encode_isr_change_notification(partitions: Iterable[TopicPartition]) -> bytes:
    """Inverse of ``decode_isr_change_notification``."""
    listed = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return json_object([("version", 1), ("partitions", listed)])


def encode_preferred_replica_election(partitions: Iterable[TopicPartition]) -> bytes:
    """What Kafka's tools write to ask for preferred leaders."""
    listed = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return json_object([("version", 1), ("partitions", listed)])


def encode_log_dir_event(broker: int) -> bytes:
    """Inverse of ``decode_log_dir_event``."""
    return json_object([("version", 1), ("broker", broker), ("event", _LOG_DIR_FAILURE)])


def isr_change_notification_prefix() -> str:
    """To be created as a sequential node."""
    return f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_"


def log_dir_event_notification_prefix() -> str:
    """To be created as a sequential node."""
    return f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_"


def encode_delegation_token(
    token_id: str, *, issued_ms: int, expiry_ms: int, max_ms: int, owner: str = "User:alice"
) -> bytes:
    """A delegation token as brokers 3.3 and newer write it (version 3, with its requester)."""
    return json_object(
        [
            ("version", 3),
            ("owner", owner),
            ("tokenRequester", owner),
            ("renewers", []),
            ("issueTimestamp", issued_ms),
            ("maxTimestamp", max_ms),
            ("expiryTimestamp", expiry_ms),
            ("tokenId", token_id),
        ]
    )
