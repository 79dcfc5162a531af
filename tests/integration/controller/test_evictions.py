"""``kubectl drain`` of a node waits until the brokers there are drained: real brokers, a real API
server, two Regents of which the standby is asked. No kubelet runs, so the test plays it."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox import KubernetesApi, ManagedProcess
from sandbox.errors import CommandError
from sandbox.pki import Authority
from sandbox.ports import LOOPBACK, lease_port
from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, regent
from tests.support.reassigning import create_topic
from tests.support.resources import Resources

pytestmark = [pytest.mark.integration]

TOKEN = "s3cr3t"
NODE = "node-a"
OWNERS = {
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
}

NEEDS_AN_OWNER = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "owners"},
            "spec": {
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": ["kafka.regent.dev"],
                            "apiVersions": ["*"],
                            "operations": ["CREATE"],
                            "resources": ["brokerdrains"],
                        }
                    ]
                },
                "validations": [
                    {
                        "expression": "'owner' in object.metadata.?labels.orValue({})",
                        "message": "owner missing",
                    }
                ],
            },
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "owners"},
            "spec": {"policyName": "owners", "validationActions": ["Deny"]},
        },
    ],
}
"""An admission policy as many clusters have."""


class Node:
    """A node of Kubernetes with pods, as the scheduler and the kubelet would have made them."""

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    def run(self, name: str, *, labels: dict[str, str], owner: str = "StatefulSet") -> str:
        """A pod that is Ready; its uid."""
        reference = {
            "apiVersion": OWNERS[owner],
            "kind": owner,
            "name": "owner",
            "uid": "6f1e9a3c-0000-4000-8000-000000000000",
            "controller": True,
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels, "ownerReferences": [reference]},
            "spec": {
                "nodeName": NODE,
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "one", "image": "none"}],
            },
        }
        self._kubectl("apply", "-f", "-", stdin=json.dumps(pod))
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        patch = json.dumps({"status": status})
        body = self._kubectl(
            "patch", "pod", name, "--subresource=status", "--type=merge", "-p", patch, "-o", "json"
        )
        return str(json.loads(body)["metadata"]["uid"])

    def pods(self) -> list[str]:
        return self._kubectl("get", "pods", "-o", "name").split()

    def clear(self) -> None:
        """No pods any more; they are deleted, which asks nobody."""
        self._kubectl("delete", "pods", "--all")

    def drain(self, *, timeout_s: int) -> str:
        """``kubectl drain``; CommandError if the time is not enough."""
        return self.api.kubectl("drain", NODE, f"--timeout={timeout_s}s")

    @contextmanager
    def refused_drain(
        self, cluster: Cluster, directory: Path, answer: str, *options: str
    ) -> Iterator[None]:
        """``kubectl drain``, which has had this answer, and tries again until the end of the
        block."""
        kubectl, kubeconfig = self.api.binaries.path("kubectl"), self.api.kubeconfig
        process = ManagedProcess(
            "kubectl-drain",
            [kubectl, "--kubeconfig", kubeconfig, "drain", NODE, *options],
            log_path=directory / "drain.log",
        )
        process.start()
        try:
            cluster.wait(
                process.log_of_this_run,
                f"the answer {answer!r}",
                until=lambda said: re.search(answer, said),
                watch=[process],
            )
            yield
        finally:
            process.kill()

    def evict(self, pod: str) -> str:
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": self.namespace},
        }
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/eviction"
        return self.api.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))

    def _kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.api.kubectl("-n", self.namespace, *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def node(resources: Resources) -> Node:
    manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    resources.api.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
    resources.api.kubectl(
        "label", "namespace", resources.namespace, "kafka.regent.dev/eviction-hook=true"
    )
    return Node(resources.api, resources.namespace)


@pytest.fixture(scope="module")
def drains(resources: Resources) -> Resources:
    return resources.of("drain")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def regents(
    cluster: Cluster, resources: Resources, node: Node, authority: Authority
) -> Iterator[tuple[RegentProcess, RegentProcess]]:
    """The one that leads, and a standby, which the API server asks."""
    files = authority.issue()
    token_file = files.key.with_name("token")
    token_file.write_text(f"{TOKEN}\n")

    def with_hook(name: str, port: int) -> AbstractContextManager[RegentProcess]:
        return regent(
            cluster,
            name=name,
            kubeconfig=resources.api.kubeconfig,
            namespace=resources.namespace,
            eviction_host=LOOPBACK,
            eviction_port=port,
            eviction_certificate_file=str(files.certificate),
            eviction_key_file=str(files.key),
            eviction_token_file=str(token_file),
            eviction_pods="app=kafka",
            eviction_namespace=resources.namespace,
        )

    with lease_port() as port, with_hook("leading", 0) as leading:
        leading.wait_until_active()
        with with_hook("standby", port.port) as standby:
            apply_webhook(resources, port=port.port, authority=authority.certificate)
            wait_until_asked(cluster, node)
            yield leading, standby


def apply_webhook(resources: Resources, *, port: int, authority: Path) -> None:
    """What the chart makes, but with an address instead of a Service."""
    webhook = {
        "name": "evictions.kafka.regent.dev",
        "clientConfig": {
            "url": f"https://{LOOPBACK}:{port}/evictions/{TOKEN}",
            "caBundle": base64.b64encode(authority.read_bytes()).decode(),
        },
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods/eviction"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"kafka.regent.dev/eviction-hook": "true"}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "NoneOnDryRun",
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
    }
    manifest = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "regent-evictions"},
        "webhooks": [webhook],
    }
    resources.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))


def wait_until_asked(cluster: Cluster, node: Node) -> None:
    """Wait until the API server knows of the webhook, and Regent answers: it refuses a pod that
    nobody else would."""
    node.run("nobody", labels={"app": "kafka"})

    def refusal() -> str:
        try:
            node.evict("nobody")
        except CommandError as error:
            return str(error)
        node.run("nobody", labels={"app": "kafka"})
        return ""

    message = cluster.wait(
        refusal, "the webhook to be asked", until=lambda text: "denied the request" in text
    )
    assert "pod nobody is not one of a StatefulSet with a number at the end of its name" in message
    node.api.kubectl("-n", node.namespace, "delete", "pod", "nobody")


def leaders_of(cluster: Cluster, topic: str) -> list[Any]:
    states = cluster.znodes.states(topic)
    return [state["leader"] for _, state in sorted(states.items())]


def names(drains: Resources) -> list[str]:
    return drains.kubectl("get", "drain", "-o", "name").split()


def test_a_node_is_drained_once_its_broker_is_and_the_leaders_come_back_with_the_pod(
    cluster: Cluster,
    drains: Resources,
    node: Node,
    regents: tuple[RegentProcess, RegentProcess],
    tmp_path: Path,
) -> None:
    _, standby = regents
    assert not (standby.status() or {"isActive": True})["isActive"]
    create_topic(cluster, "orders", {0: [1, 2, 3], 1: [1, 3, 2], 2: [2, 1, 3]})
    create_topic(cluster, "alone", {0: [1]})
    cluster.wait_for_leader("orders", 1)
    uid = node.run("broker-1", labels={"app": "kafka"})
    node.run("web", labels={"app": "web"}, owner="ReplicaSet")

    not_yet = "broker 1 is not drained yet"
    with node.refused_drain(cluster, tmp_path, not_yet, "--dry-run=server"):
        assert names(drains) == []
        assert len(node.pods()) == 2

    created = r"will retry after 5s.*was created for this eviction"
    with node.refused_drain(cluster, tmp_path, created):
        cluster.wait(
            node.pods,
            "what is no broker not to wait",
            until=lambda pods: pods == ["pod/broker-1"],
        )
    assert names(drains) == ["brokerdrain.kafka.regent.dev/eviction-broker-1"]
    drain = drains.get("eviction-broker-1")
    assert drain["spec"] == {
        **drain["spec"],
        "brokers": [1],
        "mode": "Leadership",
        "desiredState": "Drained",
    }
    assert drain["metadata"]["annotations"]["kafka.regent.dev/evicted-pod-uid"] == uid
    # the topic with one replica keeps the broker
    cluster.wait(lambda: 1 not in leaders_of(cluster, "orders"), "leaders to have left")
    cluster.wait(
        lambda: drains.get("eviction-broker-1")["status"].get("blockers"), "the blocker to be named"
    )
    with node.refused_drain(cluster, tmp_path, "1 blockers; alone-0: "):
        pass

    cluster.znodes.client.create("/admin/delete_topics/alone")
    node.drain(timeout_s=120)
    assert node.pods() == []
    assert drains.get("eviction-broker-1")["spec"]["desiredState"] == "Drained"
    assert 1 not in leaders_of(cluster, "orders")

    node.run("broker-1", labels={"app": "kafka"})
    cluster.wait(lambda: names(drains) == [], "the BrokerDrain to be undone and removed")
    assert cluster.znodes.assignment("orders") == {0: [1, 2, 3], 1: [1, 3, 2], 2: [2, 1, 3]}
    cluster.wait(lambda: leaders_of(cluster, "orders") == [1, 1, 2], "leaders to be back")


def test_a_broker_that_no_drain_may_be_made_for_stays(
    cluster: Cluster,
    drains: Resources,
    node: Node,
    regents: tuple[RegentProcess, RegentProcess],
    tmp_path: Path,
) -> None:
    """Also if the API server is to evict where Regent cannot be asked: here it answers."""
    webhook = ("ValidatingWebhookConfiguration", "regent-evictions", "--type=json", "-p")
    failure_policy = '[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "%s"}]'
    drains.kubectl("patch", *webhook, failure_policy % "Ignore")
    drains.kubectl("apply", "-f", "-", stdin=json.dumps(NEEDS_AN_OWNER))
    cluster.wait(lambda: refusal_of_a_drain(drains), "the policy to hold")
    node.clear()
    node.run("broker-3", labels={"app": "kafka"})
    try:
        refused = "broker 3 is not drained yet: the API server refuses BrokerDrain .*owner missing"
        with node.refused_drain(cluster, tmp_path, refused):
            pass
        assert node.pods() == ["pod/broker-3"]
        assert names(drains) == []
    finally:
        drains.kubectl("delete", "-f", "-", stdin=json.dumps(NEEDS_AN_OWNER))
        cluster.wait(lambda: not refusal_of_a_drain(drains), "the policy to be gone")
        drains.kubectl("patch", *webhook, failure_policy % "Fail")
        node.clear()


def refusal_of_a_drain(drains: Resources) -> str:
    """Why the API server takes no new BrokerDrain; empty: it does."""
    drain = {
        "apiVersion": "kafka.regent.dev/v1alpha1",
        "kind": "BrokerDrain",
        "metadata": {"name": "any"},
        "spec": {"brokers": [9]},
    }
    try:
        drains.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(drain))
    except CommandError as error:
        return str(error)
    return ""


def test_a_pod_with_another_number_than_its_broker_stays(
    cluster: Cluster,
    drains: Resources,
    node: Node,
    regents: tuple[RegentProcess, RegentProcess],
    tmp_path: Path,
) -> None:
    """Ids of brokers begin at 1 here, and numbers of pods at 0."""
    node.clear()
    node.run("broker-0", labels={"app": "kafka"})
    with node.refused_drain(cluster, tmp_path, "has no broker 0, .*broker-0 is Ready; say which"):
        pass
    assert node.pods() == ["pod/broker-0"]
    assert names(drains) == ["brokerdrain.kafka.regent.dev/eviction-broker-0"]
    node.clear()
    drains.delete("eviction-broker-0")


def test_evictions_at_the_same_moment_are_all_answered(
    node: Node, regents: tuple[RegentProcess, RegentProcess]
) -> None:
    """``kubectl drain`` evicts all pods of a node side by side. An API server that gets no answer
    evicts a broker's pod undrained, unless failurePolicy is Fail."""
    node.run("web-0", labels={"app": "web"})
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web-0", "namespace": node.namespace},
        "deleteOptions": {"dryRun": ["All"]},
    }
    path = f"/api/v1/namespaces/{node.namespace}/pods/web-0/eviction?dryRun=All"
    context = ssl.create_default_context(cafile=str(node.api.ca_certificate))
    address = node.api.server.removeprefix("https://")
    headers = {"Authorization": f"Bearer {node.api.token}", "Content-Type": "application/json"}

    def evict_again_and_again(_: int) -> list[str]:
        connection = http.client.HTTPSConnection(address, timeout=60, context=context)
        refused = []
        with closing(connection):
            for _ in range(25):
                connection.request("POST", path, json.dumps(eviction), headers)
                answer = connection.getresponse()
                text = answer.read().decode()
                if answer.status >= 300:
                    refused.append(text)
        return refused

    with ThreadPoolExecutor(4) as pool:
        refused = [each for some in pool.map(evict_again_and_again, range(4)) for each in some]
    node.api.kubectl("-n", node.namespace, "delete", "pod", "web-0")
    assert refused == []


def test_who_does_not_know_the_path_is_not_answered(
    regents: tuple[RegentProcess, RegentProcess],
    resources: Resources,
    node: Node,
    drains: Resources,
    authority: Authority,
    cluster: Cluster,
) -> None:
    """Anybody in the cluster reaches the port."""
    _, standby = regents
    command = standby.process.command
    port = int(command[command.index("--eviction-port") + 1])
    node.run("broker-2", labels={"app": "kafka"})
    for path in ("/evictions", "/evictions/guess", "/"):
        status, _ = post(port, path, authority.certificate, json.dumps(review("broker-2")).encode())
        assert status == 404, path
    assert names(drains) == []
    status, text = post(port, f"/evictions/{TOKEN}", authority.certificate, b"{}")
    assert (status, text) == (
        400,
        "the body is no AdmissionReview of admission.k8s.io/v1 with a request\n",
    )
    allowed = json.dumps(review("broker-17", namespace=resources.namespace)).encode()
    status, text = post(port, f"/evictions/{TOKEN}", authority.certificate, allowed)
    assert (status, json.loads(text)["response"]) == (200, {"uid": "u", "allowed": True})


def test_a_certificate_that_is_renewed_in_place_is_shown(
    regents: tuple[RegentProcess, RegentProcess], authority: Authority
) -> None:
    _, standby = regents
    command = standby.process.command
    port = int(command[command.index("--eviction-port") + 1])

    def shown() -> str:
        return ssl.get_server_certificate((LOOPBACK, port)).strip()

    before = shown()
    files = authority.issue()
    assert shown() == files.certificate.read_text().strip() != before


def review(pod: str, *, namespace: str = "default") -> dict[str, Any]:
    request = {
        "uid": "u",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "eviction",
        "operation": "CREATE",
        "namespace": namespace,
        "name": pod,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def post(port: int, path: str, authority: Path, body: bytes) -> tuple[int, str]:
    context = ssl.create_default_context(cafile=str(authority))
    connection = http.client.HTTPSConnection(LOOPBACK, port, context=context, timeout=30)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
