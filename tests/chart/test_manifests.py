"""What the chart renders is what a real API server takes, and the pods are restricted ones.

Sent as a server-side dry run: defaults, validation and admission are real, nothing is stored.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from sandbox import KubernetesApi
from sandbox.definitions import wait_until_established
from sandbox.errors import CommandError
from tests.support.helm_chart import Render, manifests

pytestmark = pytest.mark.integration

NAMESPACES = ("kafka", "team-a", "team-b")
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}

_STRING = {"type": "string"}
_LABELS = {"type": "object", "additionalProperties": _STRING}
_POD_MONITOR = {
    "selector": {"type": "object", "properties": {"matchLabels": _LABELS}},
    "podMetricsEndpoints": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "port": _STRING,
                "path": {"type": "string", "pattern": "^/"},
                "interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m)$"},
            },
        },
    },
}
_PROMETHEUS_RULE = {
    "groups": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": _STRING,
                "rules": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["expr"],
                        "properties": {
                            "alert": _STRING,
                            "expr": _STRING,
                            "for": {"type": "string", "pattern": "^([0-9]+(ms|s|m|h|d))+$"},
                            "labels": _LABELS,
                            "annotations": _LABELS,
                        },
                    },
                },
            },
        },
    }
}

VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": {
        "replicas": 3,
        "namespaces": ["team-a", "team-b"],
        "cluster": {"name": "east", "default": True},
        "settings": {"log_level": "debug", "endpoint_tls": True},
        "imagePullSecrets": [{"name": "registry"}],
        "endpoint__enabled": True,
        "endpoint__listeners": [{"name": "EXTERNAL", "port": 9093, "advertisedPort": 9095}],
        "evictionHook__enabled": True,
        "evictionHook__podNamespaces": ["kafka", "team-a"],
        "evictionHook__brokerPods": {"app": "kafka"},
        "evictionHook__drainNamespace": "team-b",
        "metrics__service": True,
        "metrics__podMonitor": {"enabled": True, "interval": "1m", "labels": {"team": "kafka"}},
        "metrics__prometheusRule": {"enabled": True, "labels": {"team": "kafka"}},
        "metrics__dashboard__enabled": True,
        "networkPolicy__enabled": True,
        "networkPolicy__metrics__from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}],
        "networkPolicy__endpoint__from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
        "networkPolicy__apiServer__to": [{"ipBlock": {"cidr": "10.96.0.1/32"}}],
        "networkPolicy__brokers": {"to": [{"podSelector": {}}], "ports": [9092]},
        "podDisruptionBudget__maxUnavailable": "50%",
        "rbac__aggregateToEdit": True,
        "serviceAccount__annotations": {"team": "kafka"},
        "podAnnotations": {"team": "kafka"},
        "podLabels": {"team": "kafka"},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
            }
        ],
        "priorityClassName": "system-cluster-critical",
        "sampling__enabled": True,
        "sampling__image__repository": "example.test/regent-sample",
        "sampling__volume__storageClassName": "fast",
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraVolumes": [{"name": "tls", "secret": {"secretName": "regent-tls"}}],
        "extraVolumeMounts": [{"name": "tls", "mountPath": "/tls", "readOnly": True}],
    },
    "one pod behind a name": {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "endpoint__enabled": True,
        "endpoint__advertisedHost": "demo-regent-endpoint.kafka.svc",
    },
    "as little as possible": {
        "crds__enabled": False,
        "rbac": {"create": False, "aggregateToView": False, "aggregateToEdit": False},
        "serviceAccount": {"create": False, "name": "own", "annotations": {}},
        "podDisruptionBudget__enabled": False,
        "uninstall__releaseTopics": False,
        "livenessProbe": None,
        "readinessProbe": None,
        "networkPolicy__enabled": True,
        "networkPolicy__apiServer": {"to": [], "ports": []},
        "networkPolicy__dns__to": [],
        "networkPolicy__brokers__ports": [9092],
    },
}


@pytest.fixture(scope="module", autouse=True)
def _surroundings(api: KubernetesApi) -> None:
    """The kinds of the Prometheus operator, and restricted namespaces."""
    definitions = [
        _definition("PodMonitor", "podmonitors", _POD_MONITOR),
        _definition("PrometheusRule", "prometheusrules", _PROMETHEUS_RULE),
    ]
    namespaces = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": _RESTRICTED},
        }
        for name in NAMESPACES
    ]
    api.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([*definitions, *namespaces]))
    wait_until_established(api.kubectl, "crd")


def _definition(kind: str, plural: str, spec: dict[str, Any]) -> dict[str, Any]:
    """As much of a kind of the Prometheus operator as the chart uses: nothing else is accepted."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def dry_run(api: KubernetesApi, documents: str, *arguments: str) -> list[str]:
    """Have the API server take documents without storing them; their kinds and names."""
    options = ("--dry-run=server", "--validate=strict", "-o", "name", "-f", "-")
    return api.kubectl("apply", *arguments, *options, stdin=documents).split()


def test_a_field_that_does_not_exist_would_be_noticed(api: KubernetesApi) -> None:
    documents = manifests(metrics__podMonitor__enabled=True)
    fields = ("terminationGracePeriodSeconds", "podMetricsEndpoints")
    for field in fields:
        documents = documents.replace(f"{field}:", f"{field}X:")
    with pytest.raises(CommandError) as refused:
        dry_run(api, documents)
    for field in fields:
        assert re.search(f'unknown field "[\\w.]*{field}X"', str(refused.value))


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_the_api_server_takes_every_object_and_a_restricted_namespace_the_pods(
    api: KubernetesApi, render: Render, values: dict[str, Any]
) -> None:
    rendered = render(**values)
    templates = [
        body["spec"]["template"]
        for (kind, _), body in rendered.items()
        if kind in ("Deployment", "Job")
    ]
    templates += [
        body["spec"]["jobTemplate"]["spec"]["template"]
        for (kind, _), body in rendered.items()
        if kind == "CronJob"
    ]
    released, sampled = "uninstall__releaseTopics" not in values, "sampling__enabled" in values
    assert len(templates) == 1 + released + sampled
    pods = "".join(f"\n---\n{json.dumps(_pod(template))}" for template in templates)
    documents = manifests(**values)
    count = sum(document is not None for document in yaml.safe_load_all(documents))
    taken = dry_run(api, documents + pods)
    assert taken.count("pod/regent") == len(templates)
    assert len(taken) == count + len(templates)


def test_a_pod_that_is_not_restricted_would_be_refused(api: KubernetesApi, render: Render) -> None:
    rendered = render(securityContext={"allowPrivilegeEscalation": True})
    pod = _pod(rendered["Deployment", "demo-regent"]["spec"]["template"])
    with pytest.raises(CommandError, match='violates PodSecurity "restricted:latest"'):
        dry_run(api, json.dumps(pod))


def _pod(template: dict[str, Any]) -> dict[str, Any]:
    """The pod that a controller makes of a template."""
    metadata = {**template["metadata"], "name": "regent", "namespace": "kafka"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
