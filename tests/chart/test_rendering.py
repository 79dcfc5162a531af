"""What the chart renders from values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from regent.settings import Settings
from sandbox.kubernetes_binaries import kubernetes_binaries
from sandbox.process import run_guarded
from tests.support.helm_chart import CHART, Render, container_of, manifests, settings_of

pytestmark = pytest.mark.integration


def test_an_endpoint_is_announced_under_the_address_of_its_pod(render: Render) -> None:
    rendered = render(endpoint__enabled=True, warmStandby__enabled=False)
    container = container_of(rendered)
    assert {"name": "kafka", "containerPort": 9092} in container["ports"]
    assert container["env"] == [
        {
            "name": "REGENT_ENDPOINT_ADVERTISED_HOST",
            "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
        }
    ]
    service = rendered["Service", "demo-regent-endpoint"]["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    settings = settings_of(rendered)
    assert (settings["endpoint_host"], settings["endpoint_port"]) == ("0.0.0.0", 9092)
    assert "endpoint_advertised_host" not in settings
    Settings(**settings)


def test_or_under_a_name_of_its_own(render: Render) -> None:
    name = "demo-regent-endpoint.kafka.svc"
    rendered = render(
        endpoint__enabled=True,
        endpoint__advertisedHost=name,
        warmStandby__enabled=False,
        replicas=1,
        strategy={"type": "Recreate"},
    )
    settings = settings_of(rendered)
    assert settings["endpoint_advertised_host"] == name
    container = container_of(rendered)
    assert "env" not in container


def test_a_listener_with_a_port_of_its_own(render: Render) -> None:
    rendered = render(
        endpoint__enabled=True,
        endpoint__listeners=[
            {"name": "EXTERNAL", "port": 9093, "advertisedPort": 9095},
            {"name": "OTHER", "port": 9094},
        ],
    )
    settings = Settings(**settings_of(rendered))
    assert settings.endpoint_further_listeners == ("EXTERNAL://:9093", "OTHER://:9094")
    assert settings.endpoint_advertised_listeners == ("EXTERNAL://:9095",)
    container = container_of(rendered)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports.items() >= {"kafka": 9092, "kafka-9093": 9093, "kafka-9094": 9094}.items()
    for port in rendered["Service", "demo-regent-endpoint"]["spec"]["ports"]:
        assert ports[port["targetPort"]] == port["port"]
        assert port["name"] == port["targetPort"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [("kafka.example", "EXTERNAL://kafka.example:9093"), ("fd00::5", "EXTERNAL://[fd00::5]:9093")],
)
def test_or_with_a_name_of_its_own(render: Render, host: str, expected: str) -> None:
    rendered = render(
        endpoint__enabled=True,
        endpoint__listeners=[{"name": "EXTERNAL", "port": 9093, "advertisedHost": host}],
        replicas=1,
        strategy={"type": "Recreate"},
    )
    settings = Settings(**settings_of(rendered))
    assert settings.endpoint_advertised_listeners == (expected,)


def test_defaults(render: Render) -> None:
    rendered = render()
    assert sorted(kind for kind, _ in rendered) == [
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterRoleBinding",
        "ConfigMap",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "Deployment",
        "Job",
        "PodDisruptionBudget",
        "Role",
        "Role",
        "RoleBinding",
        "RoleBinding",
        "ServiceAccount",
        "ServiceAccount",
    ]
    pod = rendered["Deployment", "demo-regent"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    container = container_of(rendered)
    assert [port["name"] for port in container["ports"]] == ["http", "replicas"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    for_options = ("eviction", "planner", "spark")
    assert not [name for name in settings_of(rendered) if name.startswith(for_options)]
    rules = rendered["ClusterRole", "kafka-demo-regent"]["rules"]
    resources = {resource for rule in rules for resource in rule["resources"]}
    assert not resources & {"secrets", "pods/log", "sparkapplications"}


def test_the_settings_are_those_of_the_program(render: Render) -> None:
    rendered = render(
        namespaces=["a", "b"],
        settings={"log_level": "debug", "broker_request_timeout_ms": 600000},
    )
    settings = Settings(**settings_of(rendered))
    assert settings.zookeeper == "zk:2181/kafka"
    assert settings.namespaces == ("a", "b")
    assert (settings.http_host, settings.http_port) == ("0.0.0.0", 8080)
    assert settings.broker_request_timeout_ms == 600_000
    assert settings.log_level == "debug"


def test_a_cluster_is_named_to_the_program_and_to_the_hook(render: Render) -> None:
    def named(**values: Any) -> tuple[Settings, set[str]]:
        rendered = render(**values)
        template = rendered["Job", "demo-regent-release"]["spec"]["template"]
        arguments = set(template["spec"]["containers"][0]["args"])
        return Settings(**settings_of(rendered)), {
            argument for argument in arguments if "cluster" in argument
        }

    settings, hook = named()
    assert (settings.cluster_name, settings.default_cluster) == (None, False)
    assert hook == {"--default-cluster"}
    settings, hook = named(cluster={"name": "east", "default": False})
    assert (settings.cluster_name, settings.default_cluster) == ("east", False)
    assert hook == {"--cluster-name=east"}
    settings, hook = named(cluster={"name": "east", "default": True})
    assert settings.default_cluster
    assert hook == {"--cluster-name=east", "--default-cluster"}


def test_other_settings_take_other_pods(render: Render) -> None:
    def checksum(**values: Any) -> str:
        template = render(**values)["Deployment", "demo-regent"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/settings"])

    assert checksum() == checksum(replicas=3)
    assert checksum() != checksum(settings={"log_level": "debug"})


def test_labels_and_annotations_of_pods_are_there_once_and_leave_those_that_something_depends_on(
    render: Render,
) -> None:
    name, version = "app.kubernetes.io/name", "app.kubernetes.io/version"
    values: dict[str, Any] = {
        "podLabels": {name: "mine", version: "7", "team": "kafka"},
        "podAnnotations": {"checksum/settings": "none", "team": "kafka"},
    }
    spec = render(**values)["Deployment", "demo-regent"]["spec"]
    metadata = spec["template"]["metadata"]
    assert spec["selector"]["matchLabels"].items() <= metadata["labels"].items()
    assert (metadata["labels"][version], metadata["labels"]["team"]) == ("7", "kafka")
    assert metadata["annotations"]["checksum/settings"] != "none"
    assert metadata["annotations"]["team"] == "kafka"
    deployment = manifests(**values).partition("kind: Deployment")[2].partition("---")[0]
    pods = deployment.partition("template:")[2].partition("spec:")[0]
    assert pods.count(f"{version}:") == pods.count("checksum/settings:") == 1


def test_namespaces_mean_roles_and_no_cluster_role(render: Render) -> None:
    rendered = render(namespaces=["a", "b"], rbac__aggregateToView=False)
    kinds = [kind for kind, _ in rendered]
    assert "ClusterRole" not in kinds
    assert "ClusterRoleBinding" not in kinds
    # Same name in each namespace, so the last one is what is left of them here.
    assert rendered["Role", "kafka-demo-regent"]["metadata"]["namespace"] == "b"


def test_the_lease_is_the_only_one_it_may_change(render: Render) -> None:
    rendered = render()
    role = rendered["Role", "demo-regent-lease"]
    assert role["metadata"]["namespace"] == "kafka"
    assert role["rules"] == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["demo-regent"],
            "verbs": ["get", "patch"],
        },
    ]
    settings = settings_of(rendered)
    assert (settings["lease_namespace"], settings["lease_name"]) == ("kafka", "demo-regent")


def test_alerts_and_dashboard_only_if_asked_for(render: Render) -> None:
    rule, dashboard = ("PrometheusRule", "demo-regent"), ("ConfigMap", "demo-regent-dashboard")
    assert not {rule, dashboard} & render().keys()
    rendered = render(
        metrics__prometheusRule__enabled=True,
        metrics__prometheusRule__labels={"team": "kafka"},
        metrics__dashboard__enabled=True,
    )
    assert rendered[rule]["metadata"]["labels"]["team"] == "kafka"
    (group,) = rendered[rule]["spec"]["groups"]
    assert "RegentTopicLost" in [alert["alert"] for alert in group["rules"]]
    assert rendered[dashboard]["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(rendered[dashboard]["data"]["regent.json"])["title"] == "Regent"


def test_unready_pods_are_reached_by_a_service_of_each_port(render: Render) -> None:
    """Without ZooKeeper no pod is ready, and the API server, brokers, drivers and people ask."""
    rendered = render(
        endpoint__enabled=True,
        metrics__service=True,
        planner__spark__enabled=True,
        planner__spark__images=["spark:*"],
        planner__spark__serviceAccounts=["driver"],
        evictionHook__enabled=True,
        evictionHook__podNamespaces=["brokers"],
        evictionHook__brokerPods={"app": "kafka"},
    )
    services = [each["spec"] for (kind, _), each in rendered.items() if kind == "Service"]
    ports = {port["targetPort"] for each in services for port in each["ports"]}
    assert ports == {"kafka", "http", "exchange", "evictions"}
    published = [each for each in services if each.get("publishNotReadyAddresses")]
    assert {port["targetPort"] for each in published for port in each["ports"]} == ports


def test_names_that_look_like_numbers_are_text(render: Render) -> None:
    rendered = render(
        release="1e5",
        namespace="123",
        namespaces=["007"],
        replicas=2,
        endpoint__enabled=True,
        metrics__service=True,
        metrics__podMonitor__enabled=True,
        metrics__prometheusRule__enabled=True,
        metrics__dashboard__enabled=True,
        networkPolicy__enabled=True,
        networkPolicy__endpoint__from=[{"podSelector": {}}],
        networkPolicy__brokers__ports=[9092],
        fullnameOverride="42",
        nameOverride="43",
        serviceAccount__name="44",
    )
    for document in rendered.values():
        metadata = document["metadata"]
        names = [metadata["name"], metadata.get("namespace", ""), *metadata["labels"].values()]
        assert all(isinstance(name, str) for name in names), metadata
    assert ("Role", "123-42") in rendered
    template = rendered["Deployment", "42"]["spec"]["template"]
    assert template["metadata"]["labels"]["app.kubernetes.io/instance"] == "1e5"
    assert template["spec"]["serviceAccountName"] == "44"


def test_what_all_namespaces_share_differs_between_releases_with_long_names(render: Render) -> None:
    """Helm refuses to install what belongs to another release."""

    def cluster_wide(release: str) -> set[tuple[str, str]]:
        rendered = render(release=release, namespace="n" * 63)
        return {key for key in rendered if key[0].startswith("ClusterRole")}

    assert not cluster_wide("r" * 52 + "a") & cluster_wide("r" * 52 + "b")


def test_a_disruption_budget_only_with_replicas(render: Render) -> None:
    name = ("PodDisruptionBudget", "demo-regent")
    assert name not in render(replicas=1)
    assert name not in render(podDisruptionBudget__enabled=False)
    budget = render()[name]["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")


def test_replicas_avoid_each_others_nodes_unless_told_otherwise(render: Render) -> None:
    def affinity(**values: Any) -> Any:
        spec = render(**values)["Deployment", "demo-regent"]["spec"]
        return spec["template"]["spec"].get("affinity")

    (term,) = affinity()["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    selector = render()["Deployment", "demo-regent"]["spec"]["selector"]
    assert term["podAffinityTerm"] == {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": selector,
    }
    assert affinity(replicas=1) is None
    own: dict[str, Any] = {"nodeAffinity": {}}
    assert affinity(affinity=own) == own


def test_two_pods_that_elect_one_are_the_default(render: Render) -> None:
    spec = render()["Deployment", "demo-regent"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (2, {"type": "RollingUpdate"})


@pytest.mark.parametrize(
    "values", [{}, {"warmStandby__enabled": False, "settings__warm_standby": True}]
)
def test_pods_of_a_warm_standby_know_each_other(render: Render, values: dict[str, Any]) -> None:
    rendered = render(**values)
    container = container_of(rendered)
    assert container["env"] == [
        {
            "name": "REGENT_REPLICA_ADVERTISED_HOST",
            "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
        }
    ]
    assert {"name": "replicas", "containerPort": 9096} in container["ports"]
    settings = settings_of(rendered)
    assert (settings["warm_standby"], settings["replica_port"]) == (True, 9096)
    Settings(**settings)


def test_pods_that_never_lead_need_not_know_each_other(render: Render) -> None:
    rendered = render(mode="client")
    container = container_of(rendered)
    assert "env" not in container
    settings = settings_of(rendered)
    assert "warm_standby" not in settings


def test_definitions_can_be_left_out_or_given_up(render: Render) -> None:
    name = ("CustomResourceDefinition", "kafkatopics.kafka.regent.dev")
    assert render()[name]["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert "annotations" not in render(crds__keep=False)[name]["metadata"]
    assert name not in render(crds__enabled=False)


def test_an_image_by_digest(render: Render) -> None:
    digest = "sha256:" + "a" * 64
    assert container_of(render(image__digest=digest))["image"] == f"regent@{digest}"


@pytest.mark.parametrize("probe", ["livenessProbe", "readinessProbe"])
def test_a_probe_can_be_left_out(render: Render, probe: str) -> None:
    for values in ({}, {probe: {"periodSeconds": 1}}):
        assert container_of(render(**values))[probe]["httpGet"]["port"] == "http"
    assert probe not in container_of(render(**{probe: None}))


def test_regent_may_see_that_its_definition_is_deleted_and_no_other(render: Render) -> None:
    (rule,) = (
        rule
        for rule in render()["ClusterRole", "kafka-demo-regent"]["rules"]
        if rule["apiGroups"] == ["apiextensions.k8s.io"]
    )
    assert (rule["resourceNames"], rule["verbs"]) == (["kafkatopics.kafka.regent.dev"], ["get"])


def test_writing_topics_is_not_given_to_everybody_who_may_edit(render: Render) -> None:
    def aggregated(**values: Any) -> set[str]:
        roles = (o for (kind, _), o in render(**values).items() if kind == "ClusterRole")
        return {
            verb
            for role in roles
            if "rbac.authorization.k8s.io/aggregate-to-edit" in role["metadata"]["labels"]
            for rule in role["rules"]
            for verb in rule["verbs"]
        }

    reading = {"get", "list", "watch"}
    assert aggregated() == reading
    assert aggregated(rbac__aggregateToView=False) == set()
    assert aggregated(rbac__aggregateToEdit=True) >= reading | {"create", "delete"}


def test_a_service_does_not_become_a_setting(render: Render) -> None:
    """Its variables begin with its name in capitals, as those of the settings do."""
    for (kind, name), rendered in render().items():
        if kind in ("Deployment", "Job"):
            assert rendered["spec"]["template"]["spec"]["enableServiceLinks"] is False, name


def test_the_hook_can_be_left_out(render: Render) -> None:
    assert ("Job", "demo-regent-release") in render()
    for values in ({"uninstall__releaseTopics": False}, {"rbac__create": False}):
        kinds = {kind for kind, name in render(**values) if name.endswith("-release")}
        assert kinds == set()


def test_the_hook_is_not_taken_for_a_pod_of_the_deployment(render: Render) -> None:
    rendered = render()
    selector = rendered["Deployment", "demo-regent"]["spec"]["selector"]["matchLabels"]
    labels = rendered["Job", "demo-regent-release"]["spec"]["template"]["metadata"]["labels"]
    assert not selector.items() <= labels.items()


def test_lint() -> None:
    helm = kubernetes_binaries().path("helm")
    outcome = run_guarded(
        [helm, "lint", "--strict", CHART, "--set", "zookeeper=zk:2181"], timeout_s=60
    )
    assert outcome.exit_code == 0, outcome.stdout + outcome.stderr
