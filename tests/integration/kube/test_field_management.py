"""What the API server notes about who manages which fields of a KafkaTopic."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from regent.resources.crd import crd
from regent.resources.kafka_topic import KafkaTopic
from sandbox import KubernetesApi, wait_until
from sandbox.definitions import wait_until_established
from tests.integration.kube.conftest import Namespace, topic

pytestmark = pytest.mark.integration


def _status_fields(body: dict[str, Any]) -> list[Any]:
    """What each manager of the status manages of it."""
    entries = body["metadata"]["managedFields"]
    return [entry["fieldsV1"] for entry in entries if entry.get("subresource") == "status"]


@pytest.mark.usefixtures("operator")
async def test_the_status_is_one_field_and_the_spec_stays_with_its_owner(
    namespace: Namespace,
) -> None:
    namespace.apply(topic("orders", partitions=3))
    await namespace.wait_condition("orders", "Ready", "True")
    shown = namespace.kubectl("get", "ktopic", "orders", "-o", "json", "--show-managed-fields")
    assert _status_fields(json.loads(shown)) == [{"f:status": {}}]
    # Without force: nothing of the spec became anybody else's.
    namespace.kubectl(
        "apply", "--server-side", "-f", "-", stdin=json.dumps(topic("orders", partitions=4))
    )
    await namespace.wait_condition("orders", "Ready", "True")
    assert namespace.get("orders")["status"]["partitions"] == 4


class _Definition:
    """The definition of KafkaTopic in a group of the test's own: as it is now, and as it was while
    each field of a status had managers of its own and the status had no default."""

    group = "upgraded.regent.dev"
    plural = f"kafkatopics.{group}"

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._now = crd(KafkaTopic)
        self._now["metadata"]["name"] = self.plural
        self._now["spec"]["group"] = self.group
        for name in ("shortNames", "categories"):
            del self._now["spec"]["names"][name]

    def apply(self, *, is_former: bool) -> None:
        document = json.loads(json.dumps(self._now))
        version = document["spec"]["versions"][0]
        if is_former:
            status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
            for name in ("x-kubernetes-map-type", "default"):
                del status[name]
        self._api.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(document))
        wait_until_established(self._api.kubectl, "crd", self.plural)


def test_a_status_of_an_earlier_definition_is_written_on(
    api: KubernetesApi, namespace: Namespace
) -> None:
    definition = _Definition(api)

    def write(status: dict[str, Any]) -> dict[str, Any]:
        namespace.kubectl(
            "patch", definition.plural, "orders", "--subresource=status", "--type=merge",
            "-p", json.dumps({"status": status}),
        )  # fmt: skip
        body: dict[str, Any] = json.loads(
            namespace.kubectl(
                "get", definition.plural, "orders", "-o", "json", "--show-managed-fields"
            )
        )
        return body

    definition.apply(is_former=True)
    body = topic("orders") | {"apiVersion": f"{definition.group}/v1alpha1"}
    namespace.kubectl("create", "-f", "-", stdin=json.dumps(body))
    before = write({"partitions": 3, "topicName": "orders"})
    fields: dict[str, Any] = {"f:partitions": {}, "f:topicName": {}}
    assert _status_fields(before) == [{"f:status": {".": {}, **fields}}]

    definition.apply(is_former=False)
    counts = iter(range(4, 1000))
    # The API server takes a new definition up a moment after it was stored.
    after = wait_until(
        lambda: write({"partitions": next(counts)}),
        until=lambda written: _status_fields(written) == [{"f:status": {}}],
        describe="the status to be one field",
    )
    assert after["status"]["topicName"] == "orders"
    assert after["status"]["partitions"] > 3
