"""What Regent must not do: write without need, act without being the controller, get stuck."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from regent.kube.handlers import KOPF_FINALIZER
from regent.kube.operator import run_kube
from regent.kube.settings import KubeSettings
from regent.model.partition import ReplicaAssignment
from regent.model.topic import topic_id_to_text
from regent.resources.kafka_topic import FINALIZER
from regent.zk_data import paths
from regent.zk_data.operations import Create
from regent.zk_data.topics import TopicZNode, encode_topic
from sandbox.waiting import DEADLINE_S
from tests.integration.kube.conftest import (
    ROOT,
    Namespace,
    condition,
    running,
    topic,
    wait_for,
)
from tests.support.live_controller import LiveController

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("kubeconfig")]


def _versions(namespace: Namespace) -> dict[str, str]:
    return {name: body["metadata"]["resourceVersion"] for name, body in namespace.all().items()}


def _events(namespace: Namespace) -> list[dict[str, Any]]:
    return namespace.client.items(f"/api/v1/namespaces/{namespace.name}/events")


async def test_nothing_is_written_while_nothing_changes(
    namespace: Namespace, controller: LiveController
) -> None:
    async with running(
        controller, namespace, resync_interval_s=1.0, resync_spread_s=0.1
    ) as operator:
        namespace.apply(
            topic("orders", config={"retention.ms": 1}),
            topic("broken", config={"retention.mss": 1}),
        )
        await namespace.wait_condition("orders", "Ready", "True")
        await namespace.wait_condition("broken", "Stalled", "True")
        # Creation timestamps have whole seconds: make sure that they differ.
        await asyncio.sleep(1.1)
        namespace.apply(topic("copy", topicName="orders"))
        await namespace.wait_condition("copy", "Stalled", "True")
        before, writes = _versions(namespace), operator.writes
        reconciled = operator.reconciliations
        # Three reconciliations of each of the three: two resyncs at least have passed.
        await wait_for(
            lambda: operator.reconciliations - reconciled >= 9,
            describe="some resyncs to pass",
        )
        assert _versions(namespace) == before
        assert operator.writes == writes
        assert len(controller.changes) == 1


async def test_a_restart_writes_nothing(namespace: Namespace, controller: LiveController) -> None:
    controller.cluster.create_topic("existing", [(1, 2, 3)] * 2)
    async with running(controller, namespace):
        namespace.apply(
            topic("orders", config={"retention.ms": 1}),
            topic("existing", adoptionPolicy="Preview"),
            topic("broken", config={"retention.mss": 1}),
        )
        await namespace.wait_condition("orders", "Ready", "True")
        await namespace.wait_condition("existing", "Stalled", "True")
        await namespace.wait_condition("broken", "Stalled", "True")
    before = _versions(namespace)
    events = len(_events(namespace))

    # Another process, and another election.
    controller.expire_session()
    async with running(controller, namespace) as operator:
        await wait_for(
            lambda: operator.reconciliations >= 3 and operator.queue.is_idle,
            describe="all resources to be reconciled",
        )
        assert operator.writes == 0
        await operator.recorder.flush()
    assert _versions(namespace) == before
    assert len(_events(namespace)) == events
    assert len(controller.changes) == 1


async def test_a_wiped_status_is_written_again_and_foreign_annotations_stay(
    namespace: Namespace, controller: LiveController
) -> None:
    async with running(controller, namespace):
        namespace.apply(topic("orders"))
        before = await namespace.wait_condition("orders", "Ready", "True")
    annotated = {"metadata": {"annotations": {"team": "payments"}}}
    namespace.client.patch(f"{namespace.topics}/orders", annotated)
    namespace.patch_status("orders", None)
    # Another process, which does not remember the creation.
    async with running(controller, namespace):
        after = await namespace.wait_condition("orders", "Ready", "True")
        assert after["metadata"]["annotations"]["team"] == "payments"
        assert after["spec"] == before["spec"]
        # The id of the topic says that the resource created it.
        assert after["status"]["ownership"] == "Created"
        assert after["status"]["deletionPolicy"] == "Delete"


async def test_topic_belongs_to_the_resource_that_stored_its_id_before_a_crash(
    namespace: Namespace, controller: LiveController
) -> None:
    """The process has stored the id that it would create, and has created the topic."""
    own = uuid.uuid4()
    namespace.apply(topic("orders", adoptionPolicy="Refuse"))
    status = {"ownership": "Creating", "intendedTopicId": topic_id_to_text(own)}
    namespace.patch_status("orders", status)
    assignment = {partition: ReplicaAssignment((1, 2, 3)) for partition in range(3)}
    znode = encode_topic(TopicZNode(own, assignment))
    controller.cluster.write(Create(paths.topic("orders"), znode))
    async with running(controller, namespace):
        body = await namespace.wait_condition("orders", "Ready", "True")
    assert body["status"]["ownership"] == "Created"
    assert "intendedTopicId" not in body["status"]


async def test_kopf_leaves_regents_finalizer_alone(
    namespace: Namespace, controller: LiveController
) -> None:
    """kopf removes its own finalizer wherever no handler of its needs it."""
    manifest = topic("orders")
    manifest["metadata"]["finalizers"] = [KOPF_FINALIZER, FINALIZER]
    async with running(controller, namespace):
        namespace.apply(manifest)
        body = await namespace.wait(
            "orders",
            lambda body: KOPF_FINALIZER not in body["metadata"].get("finalizers", []),
            describe="kopf to remove its finalizer",
        )
        assert body["metadata"]["finalizers"] == [FINALIZER]


async def test_tasks_of_others_survive_the_end(
    namespace: Namespace, controller: LiveController
) -> None:
    async with running(controller, namespace):
        forever = asyncio.create_task(asyncio.Event().wait())
        before = asyncio.all_tasks()
    assert not forever.done()
    left = asyncio.all_tasks() - {asyncio.current_task(), forever}
    assert not [task for task in left if task in before and "kube" in task.get_name()]
    forever.cancel()


async def test_stopping_before_the_api_server_is_there(
    controller: LiveController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    stop = asyncio.Event()
    task = asyncio.create_task(run_kube(controller, KubeSettings(), stop_event=stop))
    await asyncio.sleep(0)
    stop.set()
    await asyncio.wait_for(task, timeout=DEADLINE_S)


async def test_the_example_converges(namespace: Namespace, controller: LiveController) -> None:
    example = yaml.safe_load((ROOT / "examples" / "kafkatopic.yaml").read_text())
    assert "namespace" not in example["metadata"]
    async with running(controller, namespace):
        namespace.apply(example)
        body = await namespace.wait_condition("orders", "Ready", "True")
    assert body["status"]["partitionSummary"] == "3/3"
    age = datetime.now(UTC) - datetime.fromisoformat(condition(body, "Ready")["lastTransitionTime"])
    assert age < timedelta(minutes=1)
