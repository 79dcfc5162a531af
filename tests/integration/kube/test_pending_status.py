"""Resources that no Regent has reconciled yet: no tool takes them for ready."""

from __future__ import annotations

from typing import Any

import pytest

from regent.resources.base import CustomResource
from regent.resources.broker_drain import BrokerDrain, parse_broker_drain
from regent.resources.broker_drain_status import BrokerDrainStatus
from regent.resources.crd import RESOURCES
from regent.resources.kafka_topic import KafkaTopic, parse_kafka_topic
from regent.resources.kafka_topic_status import KafkaTopicStatus
from regent.resources.kind import API_VERSION
from regent.resources.partition_reassignment import (
    PartitionReassignment,
    parse_partition_reassignment,
)
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus
from sandbox.errors import CommandError
from tests.integration.kube.conftest import Namespace, is_reconciled
from tests.support.kstatus import KStatus, kstatus

pytestmark = pytest.mark.integration

SPECS: dict[type[CustomResource], dict[str, Any]] = {
    KafkaTopic: {"partitions": 1},
    PartitionReassignment: {
        "assignments": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]
    },
    BrokerDrain: {"brokers": [1]},
}


def create(namespace: Namespace, model: type[CustomResource]) -> dict[str, Any]:
    """Create a resource; the answer."""
    manifest = {
        "apiVersion": API_VERSION,
        "kind": model.kind.kind,
        "metadata": {"name": "new"},
        "spec": SPECS[model],
    }
    return namespace.client.create(model.kind.collection_path(namespace.name), manifest)


def read(namespace: Namespace, model: type[CustomResource]) -> dict[str, Any]:
    return namespace.client.get(model.kind.object_path(namespace.name, "new"))


@pytest.mark.parametrize("model", RESOURCES)
def test_new_resource_is_in_progress_until_regent_writes_a_status(
    namespace: Namespace, model: type[CustomResource]
) -> None:
    created = create(namespace, model)
    assert kstatus(created) is KStatus.IN_PROGRESS
    found = read(namespace, model)
    assert found == created
    conditions = found["status"]["conditions"]
    assert [each["type"] for each in conditions] == list(model.kind.conditions)
    assert {each["status"] for each in conditions} == {"Unknown"}
    with pytest.raises(CommandError, match="condition not met"):
        namespace.kubectl(
            "wait", "--for=condition=Ready", "--timeout=0", f"{model.kind.plural}/new"
        )
    row = namespace.kubectl("get", model.kind.plural, "new", "--no-headers").split()
    assert row[-3:-1] == ["Unknown", "Pending"]


@pytest.mark.parametrize(
    ("model", "parse", "empty"),
    [
        (KafkaTopic, parse_kafka_topic, KafkaTopicStatus()),
        (PartitionReassignment, parse_partition_reassignment, PartitionReassignmentStatus()),
        (BrokerDrain, parse_broker_drain, BrokerDrainStatus()),
    ],
)
def test_regent_reads_the_supplied_status_as_none(
    namespace: Namespace, model: type[CustomResource], parse: Any, empty: Any
) -> None:
    resource = parse(create(namespace, model))
    assert isinstance(resource, model)
    assert resource.status == empty  # type: ignore[attr-defined]


def test_removed_status_is_in_progress_again(namespace: Namespace) -> None:
    create(namespace, KafkaTopic)

    namespace.patch_status("new", {"observedGeneration": 1})
    assert is_reconciled(read(namespace, KafkaTopic))
    namespace.patch_status("new", None)
    removed = read(namespace, KafkaTopic)
    assert kstatus(removed) is KStatus.IN_PROGRESS
    assert parse_kafka_topic(removed).status == KafkaTopicStatus()
