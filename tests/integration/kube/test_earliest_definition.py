"""The definition of KafkaTopics is replaced by the earliest one and back: what that leaves in their
specs, the API server has put there, and nobody has asked for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import KubernetesApi, wait_until
from sandbox.definitions import apply_definitions
from tests.integration.kube.conftest import ROOT, Namespace, running, topic
from tests.support.live_controller import LiveController

pytestmark = pytest.mark.integration

CRD = "kafkatopics.kafka.regent.dev"
EARLIEST = Path(__file__).parent / "earliest_kafkatopics.yaml"
PRESENT = ROOT / "crds" / f"{CRD}.yaml"

IGNORED = ("applied", "server-side", "created", "early-applied", "early-created")
WISHED = ("wished", "early-wished")


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    """An API server of the test's own: others need the definition."""
    with KubernetesApi(users={"regent": []}) as server:
        apply_definitions(server.kubectl, ROOT / "crds")
        yield server


def install(namespace: Namespace, definition: Path, *, has_default: bool) -> None:
    """Replace the definition, and wait until the API server reads and writes by it."""
    namespace.api.kubectl("apply", "-f", definition)

    def fills_in() -> bool:
        namespace.kubectl("delete", "ktopic", "probe", "--ignore-not-found")
        create(namespace, "probe")
        return "deletionPolicy" in namespace.get("probe")["spec"]

    wait_until(
        fills_in,
        until=lambda filled_in: filled_in is has_default,
        describe="the API server to take the definition up",
        timeout_s=60,
    )
    namespace.kubectl("delete", "ktopic", "probe")


def create(namespace: Namespace, name: str, **spec: str) -> None:
    namespace.kubectl("create", "-f", "-", stdin=json.dumps(topic(name, **spec)))


async def test_no_adopted_topic_is_deleted_by_a_default_that_was_filled_in(
    api: KubernetesApi, namespace: Namespace, controller: LiveController, kubeconfig: None
) -> None:
    for name in (*IGNORED, *WISHED):
        controller.cluster.create_topic(name, [(1, 2, 3)] * 3)
    namespace.apply(topic("applied"), topic("wished", deletionPolicy="Delete"))
    namespace.apply(topic("server-side"), server_side=True)
    create(namespace, "created")
    async with running(controller, namespace):
        for name in ("applied", "server-side", "created"):
            body = await namespace.wait_condition(name, "Ready", "True")
            assert body["status"]["ownership"] == "Adopted"

    install(namespace, EARLIEST, has_default=True)
    namespace.kubectl("label", "ktopic", "--all", "written=under-the-earliest")
    namespace.apply(topic("early-applied"))
    create(namespace, "early-created")
    namespace.apply(topic("early-wished", deletionPolicy="Delete"), server_side=True)

    install(namespace, PRESENT, has_default=False)
    stored = namespace.all()
    assert {each["spec"]["deletionPolicy"] for each in stored.values()} == {"Delete"}
    assert stored.keys() == {*IGNORED, *WISHED}
    async with running(controller, namespace):
        for name in IGNORED:
            await namespace.wait_event(name, "Warning", "DeletionPolicyIgnored")
            body = await namespace.wait_condition(name, "Ready", "True")
            assert body["status"]["deletionPolicy"] == "Retain"
            assert "nobody has asked for Delete" in body["status"]["conditions"][0]["message"]
            await namespace.delete_and_wait(name)
        for name in WISHED:
            body = await namespace.wait_condition(name, "Ready", "True")
            assert body["status"]["deletionPolicy"] == "Delete"
            assert not [each for each in namespace.events(name) if "Ignored" in each[1]]
            await namespace.delete_and_wait(name)
    assert controller.view.topics.keys() == set(IGNORED)


async def test_whoever_asks_for_it_has_the_topic_deleted(
    api: KubernetesApi, namespace: Namespace, controller: LiveController, kubeconfig: None
) -> None:
    controller.cluster.create_topic("orders", [(1, 2, 3)] * 3)
    install(namespace, EARLIEST, has_default=True)
    create(namespace, "orders")
    install(namespace, PRESENT, has_default=False)
    async with running(controller, namespace):
        await namespace.wait_event("orders", "Warning", "DeletionPolicyIgnored")
        # The value is there already: nothing changes but who manages it.
        namespace.apply(topic("orders", deletionPolicy="Delete"), server_side=True)
        await namespace.wait(
            "orders",
            lambda body: body["status"]["deletionPolicy"] == "Delete",
            describe="the policy that was asked for",
        )
        await namespace.delete_and_wait("orders")
    assert "orders" not in controller.view.topics


async def test_no_adopted_topic_is_deleted_after_its_resource_was_written_with_the_default(
    api: KubernetesApi, namespace: Namespace, controller: LiveController, kubeconfig: None
) -> None:
    names = ("replaced", "recreating", "unnoted")
    for name in names:
        controller.cluster.create_topic(name, [(1, 2, 3)] * 3)
    namespace.apply(topic("replaced"), topic("unnoted"))
    install(namespace, EARLIEST, has_default=True)
    namespace.kubectl("label", "ktopic", "--all", "written=under-the-earliest")
    create(namespace, "recreating")
    install(namespace, PRESENT, has_default=False)

    read = json.loads(namespace.kubectl("get", "ktopic", "replaced", "-o", "json"))
    read["metadata"]["labels"]["written"] = "now"
    namespace.kubectl("replace", "-f", "-", stdin=json.dumps(read))
    change = json.dumps({"spec": {"onForeignDeletion": "Recreate"}})
    namespace.kubectl(
        *("patch", "ktopic", "recreating", "--type=merge", "-p", change),
        "--field-manager=kubectl-create",
    )
    forget = json.dumps({"metadata": {"managedFields": [{}], "annotations": None}})
    namespace.kubectl("patch", "ktopic", "unnoted", "--type=merge", "-p", forget)
    namespace.apply(topic("unnoted"), server_side=True)

    stored = namespace.all()
    assert {each["spec"]["deletionPolicy"] for each in stored.values()} == {"Delete"}
    assert stored.keys() == {*names}
    async with running(controller, namespace):
        for name in names:
            await namespace.wait_event(name, "Warning", "DeletionPolicyIgnored")
            await namespace.delete_and_wait(name)
    assert controller.view.topics.keys() == set(names)
