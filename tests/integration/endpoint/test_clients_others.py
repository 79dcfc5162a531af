"""Clients that are not Java's (librdkafka, kafka-python), with nothing but Regent's address."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import kafka  # type: ignore[import-untyped]
import kafka.admin  # type: ignore[import-untyped]
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ResourceType,
)

from tests.integration.endpoint.clients_support import (
    PARTITIONS,
    TOPIC,
    ServedCluster,
    brokers_of,
)
from tests.support.librdkafka import TIMEOUT_S, consumed, produce

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    brokers_of("3.9.1", others=("1.1.1",)),
]

MESSAGES = 50

_numbers = itertools.count(1)


def librdkafka(served: ServedCluster, **options: Any) -> dict[str, Any]:
    named = {name.replace("_", "."): value for name, value in options.items()}
    return {"bootstrap.servers": served.address, **named}


def produced(served: ServedCluster, prefix: str, **options: Any) -> list[str]:
    """Messages that librdkafka's producer got acknowledged."""
    messages = [f"{prefix}-{number}" for number in range(MESSAGES)]
    produce(librdkafka(served, **options), TOPIC, messages)
    return messages


def consumed_by(served: ServedCluster, group: str, wanted: set[str]) -> set[str]:
    """Messages that librdkafka's consumer read until it had those wanted."""
    with consumed(librdkafka(served), TOPIC, group, until=lambda found: wanted <= set(found)) as (
        consumer,
        found,
    ):
        consumer.commit(asynchronous=False)
        partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        committed = consumer.committed(partitions, timeout=TIMEOUT_S)
        assert sum(max(each.offset, 0) for each in committed) >= len(wanted)
        return set(found)


def test_librdkafka_produces_and_consumes(served: ServedCluster) -> None:
    prefix = f"librdkafka-{next(_numbers)}"
    messages = produced(served, prefix)
    assert set(messages) <= consumed_by(served, prefix, set(messages))


def test_librdkafka_produces_idempotently(served: ServedCluster) -> None:
    assert produced(served, f"idempotent-{next(_numbers)}", enable_idempotence=True)


def test_librdkafkas_admin_client_sees_the_cluster(served: ServedCluster) -> None:
    admin = AdminClient(librdkafka(served))
    metadata = admin.list_topics(timeout=TIMEOUT_S)
    assert metadata.controller_id == served.controller_id
    assert sorted(metadata.brokers) == [1, 2, 3, served.controller_id]
    assert len(metadata.topics[TOPIC].partitions) == PARTITIONS
    replicas = {r for p in metadata.topics[TOPIC].partitions.values() for r in p.replicas}
    assert replicas == {1, 2, 3}
    for kind, name, has_any in (
        (ResourceType.TOPIC, TOPIC, True),
        (ResourceType.BROKER, str(served.controller_id), False),
        (ResourceType.BROKER, "2", True),
    ):
        (answer,) = admin.describe_configs([ConfigResource(kind, name)]).values()
        assert bool(answer.result(TIMEOUT_S)) is has_any, name


def test_groups_are_listed_once(served: ServedCluster) -> None:
    """Each node is asked for those that it coordinates."""
    group = f"once-{next(_numbers)}"
    messages = set(produced(served, group))
    consumed_by(served, group, messages)
    admin = AdminClient(librdkafka(served))
    listed = [each.group_id for each in admin.list_consumer_groups().result(TIMEOUT_S).valid]
    assert listed.count(group) == 1


def test_kafka_python_produces_consumes_and_administers(served: ServedCluster) -> None:
    prefix = f"kafka-python-{next(_numbers)}"
    patient: dict[str, Any] = {
        "bootstrap_servers": served.address,
        "api_version_auto_timeout_ms": TIMEOUT_S * 1000,  # two seconds otherwise
    }
    producer = kafka.KafkaProducer(**patient, acks="all")
    messages = {f"{prefix}-{number}".encode() for number in range(MESSAGES)}
    futures = [producer.send(TOPIC, message) for message in sorted(messages)]
    for future in futures:
        future.get(timeout=TIMEOUT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        TOPIC,
        **patient,
        group_id=prefix,
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_S * 1000,
    )
    found: set[bytes] = set()
    for message in consumer:
        found.add(message.value)
        if messages <= found:
            break
    consumer.close()
    assert messages <= found
    admin = kafka.admin.KafkaAdminClient(**patient)
    try:
        nodes = {each["node_id"] for each in admin.describe_cluster()["brokers"]}
        assert nodes == {1, 2, 3, served.controller_id}
    finally:
        admin.close()


def test_many_clients_at_once_while_a_broker_is_killed(served: ServedCluster) -> None:
    results: dict[int, set[str]] = {}

    def client(number: int) -> None:
        prefix = f"many-{number}-{next(_numbers)}"
        messages = set(produced(served, prefix))
        results[number] = messages - consumed_by(served, prefix, messages)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    served.cluster.kill_broker(3)
    for thread in threads:
        thread.join()
    served.cluster.kafka.start()
    served.cluster.wait_in_sync(TOPIC)
    served.wait_until_announced()
    assert results == {number: set() for number in range(6)}
