"""A Regent that has no ZooKeeper, and so is not ready, answers evictions: brokers stay."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from sandbox import wait_until
from sandbox.pki import Authority
from sandbox.ports import LOOPBACK, lease_port
from sandbox.regent_process import RegentProcess
from tests.integration.controller.test_evictions import TOKEN, Node, names, post, review
from tests.support.resources import Resources

pytestmark = [pytest.mark.integration]


def test_eviction_of_a_broker_is_refused_without_zookeeper(
    resources: Resources, tmp_path: Path
) -> None:
    """The chart has the API server ask pods that are not ready, too."""
    authority = Authority(tmp_path)
    files = authority.issue()
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    node = Node(resources.api, resources.namespace)
    node.run("broker-1", labels={"app": "kafka"})
    node.run("web-1", labels={"app": "web"})
    with lease_port() as port, lease_port() as nothing:
        process = RegentProcess(
            zookeeper=f"{LOOPBACK}:{nothing.port}",
            kubeconfig=resources.api.kubeconfig,
            forked=True,
            settings={
                "namespace": resources.namespace,
                "eviction_host": LOOPBACK,
                "eviction_port": port.port,
                "eviction_certificate_file": str(files.certificate),
                "eviction_key_file": str(files.key),
                "eviction_token_file": str(token),
                "eviction_pods": "app=kafka",
                "eviction_namespace": resources.namespace,
            },
        )

        def asked(pod: str) -> dict[str, Any] | None:
            body = json.dumps(review(pod, namespace=resources.namespace)).encode()
            try:
                _, text = post(port.port, f"/evictions/{TOKEN}", authority.certificate, body)
            except (ConnectionError, ssl.SSLError):
                return None
            return dict(json.loads(text)["response"])

        try:
            process.launch()
            first = wait_until(lambda: asked("broker-1"), describe="an answer to the API server")
            assert process.status() is not None
            assert process.get("/readyz") is None, "it is ready"
            again, other = asked("broker-1"), asked("web-1")
            process.stop()
        finally:
            process.close()
    assert again is not None
    for answer, why in ((first, "was created for this eviction"), (again, "no Regent has looked")):
        assert (answer["allowed"], answer["status"]["code"]) == (False, 429)
        assert f"broker 1 is not drained yet: BrokerDrain {resources.namespace}" in (
            message := answer["status"]["message"]
        )
        assert why in message
    assert other == {"uid": "u", "allowed": True}
    drains = resources.of("drain")
    assert names(drains) == ["brokerdrain.kafka.regent.dev/eviction-broker-1"]
    drains.delete("eviction-broker-1")
    node.clear()
