"""The eviction hook in the chart: its objects fit together, and its rights are enough."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509 import DNSName, SubjectAlternativeName, load_pem_x509_certificate

from regent.kube.client import KubeClient
from regent.kube.errors import KubeApiError
from regent.kube.eviction.hook import EvictionHook
from regent.kube.eviction.keeper import EvictionKeeper
from regent.kube.eviction.reviews import EvictionReview
from regent.kube.object_cache import ObjectKey
from regent.kube.settings import KubeSettings
from regent.resources.broker_drain import BrokerDrain
from regent.servers.eviction_settings import eviction_settings
from regent.settings import Settings
from sandbox import KubernetesApi
from tests.chart.conftest import give_to_user, installed
from tests.support.helm_chart import (
    CHART,
    Render,
    Rendered,
    container_of,
    helm_arguments,
    settings_of,
)
from tests.support.kubernetes_client import KubernetesClient

pytestmark = pytest.mark.integration

HOOK: dict[str, Any] = {
    "evictionHook__enabled": True,
    "evictionHook__podNamespaces": ["brokers"],
    "evictionHook__brokerPods": {"app.kubernetes.io/name": "kafka", "tier": "data"},
}
NAME = "demo-regent-evictions"
UNREADY = f"{NAME}-unready"
WEBHOOK = ("ValidatingWebhookConfiguration", "kafka-demo-regent")


def webhook(rendered: Rendered) -> dict[str, Any]:
    """The webhook that asks the pods that are ready."""
    found, *_ = rendered[WEBHOOK]["webhooks"]
    return dict(found)


def text_of(rendered: Rendered, secret: str, key: str) -> str:
    return base64.b64decode(rendered["Secret", secret]["data"][key]).decode()


def test_a_pod_that_ends_answers_until_nobody_asks_it_any_more(render: Render) -> None:
    """Evictions of a node's pods come side by side, that of a Regent among them."""

    assert "lifecycle" not in container_of(render())
    assert container_of(render(**HOOK))["lifecycle"] == {
        "preStop": {"exec": {"command": ["sleep", "5"]}}
    }


def test_the_settings_are_those_of_the_program(render: Render) -> None:
    rendered = render(**HOOK, evictionHook__brokerIdLabel="id", evictionHook__mode="Replicas")
    settings = Settings(**settings_of(rendered))
    evictions = eviction_settings(settings)
    assert evictions is not None
    assert evictions.pod_labels == HOOK["evictionHook__brokerPods"]
    assert (evictions.broker_id_label, evictions.mode) == ("id", "Replicas")
    assert evictions.namespace == "kafka"
    template = rendered["Deployment", "demo-regent"]["spec"]["template"]["spec"]
    (container,) = template["containers"]
    assert {"name": "evictions", "containerPort": settings.eviction_port} in container["ports"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "evictions"]
    (volume,) = [each for each in template["volumes"] if each["name"] == "evictions"]
    mounted = {
        f"{mount['mountPath']}/{item['path']}"
        for source in volume["projected"]["sources"]
        for item in source["secret"]["items"]
    }
    assert mounted == {
        str(settings.eviction_certificate_file),
        str(settings.eviction_key_file),
        str(settings.eviction_token_file),
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "kafka"),
        ({"namespaces": ["a", "kafka"]}, "kafka"),
        ({"namespaces": ["a", "b"]}, "a"),
        ({"namespaces": ["a", "b"], "evictionHook__drainNamespace": "b"}, "b"),
    ],
)
def test_drains_are_made_where_they_are_served(
    render: Render, values: dict[str, Any], expected: str
) -> None:
    rendered = render(**HOOK, **values)
    settings = settings_of(rendered)
    assert settings["eviction_namespace"] == expected
    role = rendered["Role", "kafka-demo-regent-drains"]
    assert role["metadata"]["namespace"] == expected
    assert role["rules"] == [
        {
            "apiGroups": ["kafka.regent.dev"],
            "resources": ["brokerdrains"],
            "verbs": ["create", "delete"],
        }
    ]
    pods = rendered["Role", "kafka-demo-regent-pods"]
    assert pods["metadata"]["namespace"] == "brokers"
    assert pods["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]


def test_the_api_server_trusts_the_certificate_and_knows_the_path(render: Render) -> None:
    rendered = render(**HOOK)
    asked = webhook(rendered)
    config = asked["clientConfig"]
    service = config["service"]
    assert (service["name"], service["namespace"]) == (NAME, "kafka")
    assert service["path"] == f"/evictions/{text_of(rendered, NAME, 'token')}"
    assert len(text_of(rendered, NAME, "token")) == 40
    authority = load_pem_x509_certificate(base64.b64decode(config["caBundle"]))
    certificate = load_pem_x509_certificate(text_of(rendered, f"{NAME}-tls", "tls.crt").encode())
    certificate.verify_directly_issued_by(authority)
    assert certificate.not_valid_after_utc - datetime.now(UTC) > timedelta(days=3600)
    assert (asked["failurePolicy"], asked["sideEffects"]) == ("Ignore", "NoneOnDryRun")
    assert asked["namespaceSelector"] == {
        "matchLabels": {"kafka.regent.dev/eviction-hook": "true"},
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["brokers"]}
        ],
    }
    ports = rendered["Service", NAME]["spec"]["ports"]
    assert [(each["port"], each["targetPort"]) for each in ports] == [(443, "evictions")]


def test_unready_pods_are_asked_when_a_missing_answer_evicts(render: Render) -> None:
    """Without ZooKeeper no pod is ready. A pod that starts or ends must not be the only one asked,
    since it may not answer: so the ready pods keep a Service of their own."""
    rendered = render(**HOOK)
    of_ready, of_all = rendered[WEBHOOK]["webhooks"]
    assert of_all == {
        **of_ready,
        "name": "unready.evictions.kafka.regent.dev",
        "clientConfig": {
            **of_ready["clientConfig"],
            "service": {**of_ready["clientConfig"]["service"], "name": UNREADY},
        },
    }
    ready, unready = rendered["Service", NAME]["spec"], rendered["Service", UNREADY]["spec"]
    assert unready == {**ready, "publishNotReadyAddresses": True}
    assert "publishNotReadyAddresses" not in ready
    certificate = load_pem_x509_certificate(text_of(rendered, f"{NAME}-tls", "tls.crt").encode())
    names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    assert names.get_values_for_type(DNSName) == [f"{NAME}.kafka.svc", f"{UNREADY}.kafka.svc"]


def test_only_ready_pods_are_asked_when_a_missing_answer_refuses(render: Render) -> None:
    """A pod that starts would make evictions fail of pods that are no brokers."""
    rendered = render(**HOOK, evictionHook__failurePolicy="Fail")
    (asked,) = rendered[WEBHOOK]["webhooks"]
    assert (asked["failurePolicy"], asked["clientConfig"]["service"]["name"]) == ("Fail", NAME)
    assert ("Service", UNREADY) not in rendered


def test_certificates_of_somebody_else(render: Render) -> None:
    own = render(
        **HOOK, evictionHook__certificates={"secretName": "mine", "caBundle": "-----BEGIN"}
    )
    assert ("Secret", f"{NAME}-tls") not in own
    assert webhook(own)["clientConfig"]["caBundle"] == base64.b64encode(b"-----BEGIN").decode()
    assert '"name": "mine"' in json.dumps(own["Deployment", "demo-regent"])
    issuer = {"name": "issuer", "kind": "ClusterIssuer"}
    managed = render(
        **HOOK, evictionHook__certificates__certManager={"enabled": True, "issuerRef": issuer}
    )
    spec = managed["Certificate", f"{NAME}-tls"]["spec"]
    assert spec["dnsNames"] == [f"{NAME}.kafka.svc", f"{UNREADY}.kafka.svc"]
    assert spec["issuerRef"] == issuer
    assert "caBundle" not in webhook(managed)["clientConfig"]
    assert managed[WEBHOOK]["metadata"]["annotations"] == {
        "cert-manager.io/inject-ca-from": f"kafka/{NAME}-tls"
    }
    assert f'"name": "{NAME}-tls"' in json.dumps(managed["Deployment", "demo-regent"])


def test_without_roles_of_the_chart_there_are_none(render: Render) -> None:
    rendered = render(**HOOK, rbac__create=False)
    assert not [kind for kind, _ in rendered if kind in ("Role", "RoleBinding")]


@pytest.fixture(scope="module")
def options(api: KubernetesApi) -> Iterator[list[str]]:
    """Arguments that install or upgrade the release, which is installed."""
    client = KubernetesClient(api)
    for name in ("brokers", "elsewhere"):
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    given = helm_arguments(HOOK)
    with installed(api, *given):
        yield given


def test_an_upgrade_keeps_certificate_and_path(api: KubernetesApi, options: list[str]) -> None:
    def kept() -> Any:
        where = ("-n", "kafka", "get", "secret", NAME, f"{NAME}-tls")
        secrets = json.loads(api.kubectl(*where, "-o", "json"))["items"]
        hook = json.loads(api.kubectl("get", *WEBHOOK, "-o", "json"))["webhooks"][0]
        return [each["data"] for each in secrets], hook["clientConfig"]

    before = kept()
    api.helm("upgrade", "demo", CHART, "--namespace", "kafka", *options)
    assert kept() == before


async def test_the_rights_are_enough(
    api: KubernetesApi, options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bindings = (
        "clusterrolebindings/kafka-demo-regent",
        "namespaces/kafka/rolebindings/kafka-demo-regent-drains",
        "namespaces/brokers/rolebindings/kafka-demo-regent-pods",
    )
    give_to_user(api, bindings, monkeypatch, tmp_path)
    client = KubernetesClient(api)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "kafka-1",
            "labels": HOOK["evictionHook__brokerPods"],
            "annotations": {"kafka.regent.dev/broker-id": "1"},
        },
        "spec": {"nodeName": "a", "containers": [{"name": "one", "image": "none"}]},
    }
    pods = "/api/v1/namespaces/brokers/pods"
    client.create(pods, pod)
    client.patch(f"{pods}/kafka-1/status", {"status": {"phase": "Running"}})
    await _evict(client)


async def _evict(kubernetes: KubernetesClient) -> None:
    """Ask twice, so that a BrokerDrain is made and changed; undo it; have it removed."""
    evictions = eviction_settings(
        Settings(
            zookeeper="zk:2181",
            eviction_port=0,
            eviction_pods=("app.kubernetes.io/name=kafka",),
            eviction_namespace="kafka",
        )
    )
    assert evictions is not None
    times = [datetime(2026, 3, 1, 12, minute, tzinfo=UTC) for minute in (0, 0, 5, 5)]
    later = datetime(2026, 3, 2, tzinfo=UTC)
    key = ObjectKey("BrokerDrain", "kafka", "eviction-broker-1")
    drains = BrokerDrain.kind.collection_path("kafka")
    async with KubeClient(max_connections=1, request_timeout_s=60) as client:
        hook = EvictionHook(client, evictions, KubeSettings(), now=lambda: times.pop(0))
        dry = await hook.verdict(EvictionReview("u", "brokers", "kafka-1", is_dry_run=True))
        assert "BrokerDrain kafka/eviction-broker-1" in dry.message
        assert kubernetes.items(drains) == []
        times.insert(0, times[0])
        for _ in range(2):
            asked = EvictionReview("u", "brokers", "kafka-1", is_dry_run=False)
            assert (await hook.verdict(asked)).refused_with == 429
        (drain,) = kubernetes.items(drains)
        annotations = drain["metadata"]["annotations"]
        assert annotations["kafka.regent.dev/eviction-asked-at"] == "2026-03-01T12:05:00+00:00"
        with pytest.raises(KubeApiError, match="forbidden"):
            await hook.verdict(EvictionReview("u", "elsewhere", "kafka-1", is_dry_run=False))
        keeper = EvictionKeeper(client, evictions, keys=lambda: (key,), now=lambda: later)
        await keeper.look_after(key)
        (drain,) = kubernetes.items(drains)
        assert drain["spec"]["desiredState"] == "Undone"
        status = {"phase": "Undone", "observedGeneration": drain["metadata"]["generation"]}
        kubernetes.patch(f"{drains}/{key.name}/status", {"status": status})
        await keeper.look_after(key)
        assert kubernetes.items(drains) == []
