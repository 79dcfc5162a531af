"""What is refused: by the API server at once, by Regent through conditions."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from regent.admin.commands import Accepted, AlterPartitionReassignments
from regent.kube.client import KubeClient
from regent.kube.event_recorder import EventRecorder
from regent.kube.object_cache import CachedObject, ObjectKey
from regent.kube.waiting import cancel
from regent.model.partition import TopicPartition
from regent.reconcile.plan import PlannedEvent
from sandbox import KubernetesApi, wait_until_async
from sandbox.errors import CommandError
from tests.integration.kube.conftest import Namespace, condition, topic
from tests.support.kubernetes_client import KubernetesClient
from tests.support.live_controller import LiveController

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"partitions": 0}, "spec.partitions in body should be greater than or equal to 1"),
        ({"replicas": 0}, "spec.replicas in body should be greater than or equal to 1"),
        (
            {"partitions": 1, "replicas": 1, "replicaAssignment": [[1]]},
            "set replicas or replicaAssignment, not both",
        ),
        ({"partitions": 2, "replicaAssignment": [[1]]}, "as many entries as partitions"),
        ({"partitions": 1, "replicaAssignment": [[1, 1]]}, "Duplicate value"),
        ({"partitions": 2, "replicaAssignment": [[1, 2], [1]]}, "same number of replicas"),
        ({"partitions": 1, "replicaAssignment": [[]]}, "should have at least 1 items"),
        ({"topicName": "a/b"}, "spec.topicName in body should match"),
        ({"topicName": "."}, "reserved"),
        ({"topicName": "x" * 250}, "Too long"),
        ({"deletionPolicy": "Destroy"}, "Unsupported value"),
        ({"config": {f"k{i}": 1 for i in range(101)}}, "must have at most 100 items"),
        ({"partitions": "many"}, "must be of type integer"),
    ],
)
def test_the_api_server_refuses(namespace: Namespace, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        namespace.client.create(namespace.topics, topic("orders", **spec))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({}, {"topicName": "other"}, "topicName is immutable"),
        ({"topicName": "other"}, {"topicName": "another"}, "topicName is immutable"),
        ({"topicName": "other"}, {}, "topicName is immutable"),
    ],
)
def test_the_api_server_refuses_the_change(
    namespace: Namespace, before: dict[str, Any], after: dict[str, Any], message: str
) -> None:
    namespace.apply(topic("orders", **before))
    with pytest.raises(CommandError, match=message):
        namespace.apply(topic("orders", **after))


def test_naming_the_default_topic_name_is_no_change(namespace: Namespace) -> None:
    namespace.apply(topic("orders"))
    namespace.apply(topic("orders", topicName="orders"))


@pytest.mark.usefixtures("operator")
async def test_growth_onto_a_broker_that_is_down_goes_on_when_it_returns(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", partitions=1, replicaAssignment=[[1, 2]]))
    await namespace.wait_condition("orders", "Ready", "True")
    controller.cluster.stop_broker(3)
    namespace.patch("orders", partitions=2, replicaAssignment=[[1, 2], [3, 1]])
    body = await namespace.wait_condition("orders", "Reconciling", "True", "BrokersUnavailable")
    assert condition(body, "Stalled")["status"] == "False"
    controller.cluster.start_broker(3)
    await namespace.wait_condition("orders", "Ready", "True")
    assert controller.cluster.replicas("orders") == [(1, 2), (3, 1)]


@pytest.mark.usefixtures("operator")
async def test_what_cannot_be_changed_does_not_stand_in_the_way(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", partitions=2, replicaAssignment=[[1, 2], [2, 3]]))
    await namespace.wait_condition("orders", "Ready", "True")

    assignment = [[1, 2], [3, 1], [1, 3], [2, 1]]
    namespace.patch(
        "orders", partitions=4, replicaAssignment=assignment, config={"retention.ms": 7}
    )
    await namespace.wait_condition("orders", "Stalled", "True", "ReplicaAssignmentMismatch")
    body = await namespace.wait(
        "orders",
        lambda body: len(body["status"]["drift"]) == 1,
        describe="everything but the place of replicas to be changed",
    )
    assert body["status"]["drift"] == [
        {"field": "replicaAssignment[1]", "desired": "[3, 1]", "actual": "[2, 3]"}
    ]
    assert (body["status"]["partitionSummary"], body["status"]["replicaSummary"]) == ("4/4", "2/2")
    assert controller.cluster.config("orders") == {"retention.ms": "7"}

    # A PartitionReassignment moves the partition.
    controller.cluster.expect_move("orders", 1, (3, 1))
    move = AlterPartitionReassignments({TopicPartition("orders", 1): (3, 1)})
    (outcome,) = await controller.submit([move])
    assert isinstance(outcome, Accepted), outcome
    await namespace.wait_condition("orders", "Ready", "True")


@pytest.mark.usefixtures("operator")
async def test_brokers_that_are_drained_are_waited_for_until_their_drain_is_gone(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", partitions=1, replicas=2))
    await namespace.wait_condition("orders", "Ready", "True")
    (replicas,) = controller.cluster.replicas("orders")
    (added,) = {1, 2, 3} - set(replicas)
    target = (*replicas, added)
    controller.cluster.expect_move("orders", 0, target)
    drain = {
        "apiVersion": "kafka.regent.dev/v1alpha1",
        "kind": "BrokerDrain",
        "metadata": {"name": "maintenance"},
        "spec": {"brokers": [added]},
    }
    namespace.apply(drain)

    async def cordoned() -> tuple[int, ...]:
        return controller.view.cordoned

    await wait_until_async(
        cordoned, until=lambda now: now == (added,), describe=f"cordon of {added}"
    )
    namespace.patch("orders", replicas=3)
    await namespace.wait_condition("orders", "Reconciling", "True", "NotEnoughBrokers")
    await asyncio.to_thread(
        namespace.kubectl, "delete", "brokerdrain", "maintenance", "--wait=false"
    )
    await namespace.wait_condition("orders", "Ready", "True")
    assert controller.cluster.replicas("orders") == [target]


@pytest.mark.usefixtures("kubeconfig")
async def test_a_namespace_that_is_being_deleted_takes_no_events_and_nobody_is_warned(
    api: KubernetesApi, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "regent.kube.event_recorder")
    held = {"name": "going", "finalizers": ["example.test/held"]}
    kubernetes = KubernetesClient(api)
    kubernetes.create("/api/v1/namespaces", {"metadata": held})
    kubernetes.delete("/api/v1/namespaces/going")
    subject = CachedObject(ObjectKey("KafkaTopic", "going", "orders"), "u1", "1", {})
    async with KubeClient(max_connections=1, request_timeout_s=60) as client:
        recorder = EventRecorder(client, now=lambda: datetime.now(UTC), instance="pod-1")
        sending = asyncio.create_task(recorder.run())
        for number in range(3):
            recorder.record(subject, PlannedEvent("Bad", f"broken {number}", is_warning=True))
        await recorder.flush()
        await cancel((sending,))
    kubernetes.patch("/api/v1/namespaces/going", {"metadata": {"finalizers": None}})
    (entry,) = caplog.records
    assert entry.levelname == "INFO"
    assert entry.message == "A namespace is being deleted and takes no Events any more"
