"""Producing and consuming with librdkafka, given the options of a client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Producer

from sandbox import wait_until

TIMEOUT_S: Final = 120.0

Options = Mapping[str, Any]


def produce(options: Options, topic: str, messages: Sequence[str]) -> None:
    """Produce with acks=all; every message is acknowledged."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({**options, "acks": "all"})
    for message in messages:
        producer.produce(topic, message, on_delivery=delivered)
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []


@contextmanager
def consumed(
    options: Options, topic: str, group: str, *, until: Callable[[list[str]], bool]
) -> Iterator[tuple[Consumer, list[str]]]:
    """A consumer of a group, and the messages that it has read from the beginning until then."""
    consumer = Consumer({**options, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[str] = []

    def poll() -> bool:
        for message in consumer.consume(100, timeout=1.0):
            assert message.error() is None, message.error()
            found.append((message.value() or b"").decode())
        return until(found)

    try:
        wait_until(poll, describe="the messages", interval_s=0.01)
        yield consumer, found
    finally:
        consumer.close()
