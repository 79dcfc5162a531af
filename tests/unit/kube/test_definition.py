"""A CustomResourceDefinition that is older than Regent is named."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import kopf
import pytest
from aiohttp import web

from regent.kube.client import KubeClient
from regent.kube.definition import DefinitionCheck, dropped_fields
from regent.kube.health import KubeHealth
from regent.kube.settings import KubeSettings
from regent.kube.waiting import cancel
from regent.reconcile.drains.kind import BROKER_DRAIN
from regent.reconcile.kinds import KindDescriptor
from regent.reconcile.reassignments.kind import PARTITION_REASSIGNMENT
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.resources.base import CustomResource
from regent.resources.broker_drain import BrokerDrain
from regent.resources.crd import crd
from regent.resources.kafka_topic import KafkaTopic
from regent.resources.partition_reassignment import PartitionReassignment
from tests.support import waiting

FIELDS = {"spec": {"partitions", "clusterRef"}, "status": {"phase"}}


def schemas(
    *fields: str, kind: str = "KafkaTopic", status: tuple[str, ...] = ("phase",)
) -> dict[str, Any]:
    """What the API server says of a kind whose spec and status have these fields."""
    spec = {"type": "object", "properties": {field: {} for field in fields}}
    name = {"group": "kafka.regent.dev", "kind": kind, "version": "v1alpha1"}
    parts = {"spec": spec, "status": {"properties": {field: {} for field in status}}}
    schema = {"properties": parts, "x-kubernetes-group-version-kind": [name]}
    return {"components": {"schemas": {f"dev.regent.kafka.v1alpha1.{kind}": schema}}}


class ApiServer:
    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}
        self.status = 200
        self.requests = 0

    async def asked(self) -> int:
        return self.requests

    async def handle(self, request: web.Request) -> web.Response:
        self.requests += 1
        assert request.path == "/openapi/v3/apis/kafka.regent.dev/v1alpha1"
        return web.json_response({"openapi": "3.0.0", **self.schemas}, status=self.status)


@pytest.fixture
async def server() -> ApiServer:
    return ApiServer()


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[KubeClient]:
    app = web.Application()
    app.router.add_get("/{path:.*}", server.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()

    async def credentials() -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=f"http://127.0.0.1:{runner.addresses[0][1]}")

    async with KubeClient(
        max_connections=1, request_timeout_s=30, credentials=credentials
    ) as opened:
        yield opened
    await runner.cleanup()


def names_in(schema: Mapping[str, Any]) -> frozenset[str]:
    """Names of the fields that a schema has, also of those within others."""
    properties = schema.get("properties", {})
    for elements in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(elements, Mapping):
            return names_in(elements)
    inner = (f"{name}.{each}" for name, node in properties.items() for each in names_in(node))
    return frozenset((*properties, *inner))


@pytest.mark.parametrize(
    ("model", "descriptor"),
    [
        (KafkaTopic, KAFKA_TOPIC),
        (PartitionReassignment, PARTITION_REASSIGNMENT),
        (BrokerDrain, BROKER_DRAIN),
    ],
)
def test_the_fields_of_the_descriptor_are_those_of_the_definition(
    model: type[CustomResource], descriptor: KindDescriptor[Any, Any]
) -> None:
    [version] = crd(model)["spec"]["versions"]
    parts = version["schema"]["openAPIV3Schema"]["properties"]
    assert descriptor.spec_fields == names_in(parts["spec"])
    assert descriptor.status_fields == names_in(parts["status"])


def test_fields_that_the_api_server_does_not_know_are_dropped() -> None:
    def parts(*spec: str, status: str = "phase") -> dict[str, Any]:
        return {
            "spec": {"properties": {key: {} for key in spec}},
            "status": {"properties": {status: {}}},
        }

    assert dropped_fields(parts("partitions", "replicas"), FIELDS) == ("spec.clusterRef",)
    newer = ("partitions", "clusterRef", "added")
    assert dropped_fields(parts(*newer, status="conditions"), FIELDS) == ("status.phase",)
    assert dropped_fields(parts(*newer), FIELDS) == ()


def test_a_field_of_a_field_is_dropped_unseen_as_well() -> None:
    """A throttle without the only member that it has is no throttle."""
    fields = {"spec": PARTITION_REASSIGNMENT.spec_fields}
    [version] = crd(PartitionReassignment)["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert dropped_fields({"spec": spec}, fields) == ()
    del spec["properties"]["throttle"]["properties"]["bytesPerSecond"]
    del spec["properties"]["assignments"]["items"]["properties"]["partition"]
    dropped = ("spec.assignments.partition", "spec.throttle.bytesPerSecond")
    assert dropped_fields({"spec": spec}, fields) == dropped
    spec["properties"]["throttle"]["x-kubernetes-preserve-unknown-fields"] = True
    assert dropped_fields({"spec": spec}, fields) == dropped[:1]


@asynccontextmanager
async def checking(client: KubeClient) -> AsyncIterator[KubeHealth]:
    """The check of the definition of KafkaTopics, and where it says what is wrong."""
    health = KubeHealth()
    check = DefinitionCheck(
        client,
        KAFKA_TOPIC.kind,
        FIELDS,
        KubeSettings(check_interval_s=0.01),
        health=health.of("KafkaTopic"),
    )
    running = asyncio.create_task(check.run())
    try:
        yield health
    finally:
        await cancel((running,))


async def remark_of(health: KubeHealth, *, until: Callable[[str], bool]) -> str:
    return await waiting.until(lambda: health.remark() or "", "another remark", until=until)


async def test_an_old_definition_is_named_until_it_is_updated(
    server: ApiServer, client: KubeClient
) -> None:
    server.schemas = schemas("partitions")
    async with checking(client) as health:
        named = await remark_of(health, until=bool)
        assert "drops spec.clusterRef; `regent crds | kubectl apply -f -`" in named
        assert health.problem() is None, "the process stays in service"
        server.status, asked = 500, server.requests
        await waiting.until(server.asked, "two checks", until=lambda n: n > asked + 1)
        assert health.remark() == named, "an API server that does not answer corrects nothing"
        server.status = 200
        server.schemas = schemas("partitions", "clusterRef")
        await remark_of(health, until=lambda said: not said)


@pytest.mark.parametrize("status", [200, 403, 404, 500])
async def test_nothing_is_said_of_a_definition_that_is_not_shown(
    server: ApiServer, client: KubeClient, status: int
) -> None:
    server.status, server.schemas = status, schemas("partitions", kind="KafkaTopicList")
    async with checking(client) as health:
        await waiting.until(server.asked, "two checks", until=lambda n: n > 1)
        assert health.remark() is None
