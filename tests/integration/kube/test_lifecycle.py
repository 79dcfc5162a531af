"""KafkaTopics from creation to deletion, against a real API server."""

from __future__ import annotations

import asyncio

import pytest
from regent.controller.commands import AlterTopicConfig, CreatePartitions, CreateTopic, DeleteTopic
from regent.kube.operator import KubeOperator
from regent.resources.kafka_topic import FINALIZER

from tests.integration.kube.conftest import Namespace, condition, topic
from tests.integration.kube.memory_controller import MemoryController

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]


async def test_a_topic_is_created_and_becomes_ready(
    namespace: Namespace, controller: MemoryController
) -> None:
    namespace.apply(topic("orders", config={"min.insync.replicas": 2, "preallocate": True}))
    await asyncio.to_thread(
        namespace.kubectl, "wait", "--for=condition=Ready", "ktopic/orders", "--timeout=20s"
    )

    assert controller.changes == [
        CreateTopic(
            topic="orders",
            partitions=3,
            replication_factor=3,
            config={"min.insync.replicas": "2", "preallocate": "true"},
        )
    ]
    body = namespace.get("orders")
    assert body["metadata"]["finalizers"] == [FINALIZER]
    assert "kopf" not in str(body["metadata"])
    status = body["status"]
    assert status["observedGeneration"] == body["metadata"]["generation"]
    assert (status["partitionSummary"], status["replicaSummary"]) == ("3/3", "3/3")
    assert (status["leaderless"], status["underReplicated"]) == (0, 0)
    assert status["ownership"] == "Created"
    assert status["managedConfig"] == ["min.insync.replicas", "preallocate"]
    assert len(status["topicId"]) == 22
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "Ready": "True",
        "Reconciling": "False",
        "Stalled": "False",
        "Synced": "True",
        "Healthy": "True",
    }
