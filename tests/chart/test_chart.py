"""The Helm chart: what it renders, what it refuses, and whether the rights it gives are enough."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from regent.kube.client import KubeClient
from regent.kube.errors import KubeApiError
from regent.kube.lease import Lease
from regent.kube.operator import run_kube
from regent.kube.settings import KubeSettings
from regent.resources.crd import render_crds
from regent.settings import Settings
from sandbox import KubernetesApi, wait_until_async
from sandbox.errors import CommandError
from sandbox.kubernetes_binaries import kubernetes_binaries
from sandbox.process import run_guarded
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "regent"


def value_paths() -> list[str]:
    """Every value that the templates look into, as keyword arguments for ``render``."""
    as_they_are = ("Context", "Probe", "resources", "strategy")

    def walk(values: dict[str, Any], prefix: str) -> Iterator[str]:
        for name, value in values.items():
            yield prefix + name
            if isinstance(value, dict) and not name.endswith(as_they_are):
                yield from walk(value, f"{prefix}{name}__")

    return list(walk(yaml.safe_load((CHART / "values.yaml").read_text()), ""))


Rendered = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Rendered]


def test_the_chart_carries_the_generated_definitions() -> None:
    carried = {path.name: path.read_text() for path in (CHART / "files" / "crds").iterdir()}
    assert carried == render_crds()


def test_the_schema_knows_every_value_and_no_other() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert schema["properties"].keys() - {"global"} == values.keys()


def test_the_readme_names_every_value() -> None:
    readme = (CHART / "README.md").read_text()
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [name for name in values if f"`{name}" not in readme] == []


def test_the_kind_configuration_is_one() -> None:
    config = yaml.safe_load((ROOT / "kind-config.yaml").read_text())
    assert (config["kind"], config["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
    assert [node["role"] for node in config["nodes"]].count("control-plane") == 1


@pytest.fixture(scope="module")
def render() -> Render:
    """Render the chart with values; the objects by kind and name."""
    helm = kubernetes_binaries().path("helm")

    def run(*, release: str = "demo", namespace: str = "kafka", **values: Any) -> Rendered:
        arguments: list[str | Path] = [helm, "template", release, CHART, "--namespace", namespace]
        arguments += ["--kube-version", "1.34.0"]
        for name, value in ({"zookeeper": "zk:2181/kafka"} | values).items():
            arguments += ["--set-json", f"{name.replace('__', '.')}={json.dumps(value)}"]
        outcome = run_guarded(arguments, timeout_s=180)
        if outcome.exit_code:
            raise CommandError(outcome.stderr)
        documents = (d for d in yaml.safe_load_all(outcome.stdout) if d)
        return {(d["kind"], d["metadata"]["name"]): d for d in documents}

    return run


@pytest.mark.integration
class TestRendering:
    def test_an_endpoint_is_announced_under_the_address_of_its_pod(self, render: Render) -> None:
        rendered = render(endpoint__enabled=True)
        (container,) = rendered["Deployment", "demo-regent"]["spec"]["template"]["spec"][
            "containers"
        ]
        assert {"name": "kafka", "containerPort": 9092} in container["ports"]
        assert container["env"] == [
            {
                "name": "REGENT_ENDPOINT_ADVERTISED_HOST",
                "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
            }
        ]
        service = rendered["Service", "demo-regent-endpoint"]["spec"]
        assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
        settings = yaml.safe_load(rendered["ConfigMap", "demo-regent"]["data"]["settings.yaml"])
        assert (settings["endpoint_host"], settings["endpoint_port"]) == ("0.0.0.0", 9092)
        assert "endpoint_advertised_host" not in settings
        Settings(**settings)

    def test_or_under_a_name_of_its_own(self, render: Render) -> None:
        name = "demo-regent-endpoint.kafka.svc"
        rendered = render(endpoint__enabled=True, endpoint__advertisedHost=name)
        settings = yaml.safe_load(rendered["ConfigMap", "demo-regent"]["data"]["settings.yaml"])
        assert settings["endpoint_advertised_host"] == name
        (container,) = rendered["Deployment", "demo-regent"]["spec"]["template"]["spec"][
            "containers"
        ]
        assert "env" not in container

    @pytest.mark.parametrize(
        "values", [{"warmStandby__enabled": True}, {"settings__warm_standby": True}]
    )
    def test_a_warm_standby_takes_over_from_the_old_pod(
        self, render: Render, values: dict[str, Any]
    ) -> None:
        rendered = render(**values)
        deployment = rendered["Deployment", "demo-regent"]["spec"]
        assert deployment["strategy"] == {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        }
        (container,) = deployment["template"]["spec"]["containers"]
        assert container["env"] == [
            {
                "name": "REGENT_REPLICA_ADVERTISED_HOST",
                "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
            }
        ]
        assert {"name": "replicas", "containerPort": 9096} in container["ports"]
        settings = yaml.safe_load(rendered["ConfigMap", "demo-regent"]["data"]["settings.yaml"])
        assert (settings["warm_standby"], settings["replica_port"]) == (True, 9096)
        Settings(**settings)

    def test_pods_are_replaced_as_the_strategy_says(self, render: Render) -> None:
        for values, expected in (
            ({}, "Recreate"),
            ({"warmStandby__enabled": True, "strategy__type": "Recreate"}, "Recreate"),
            ({"strategy__type": "RollingUpdate"}, "RollingUpdate"),
        ):
            deployment = render(**values)["Deployment", "demo-regent"]["spec"]
            assert deployment["strategy"] == {"type": expected}

    def test_defaults(self, render: Render) -> None:
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
            "Role",
            "Role",
            "RoleBinding",
            "RoleBinding",
            "ServiceAccount",
            "ServiceAccount",
        ]
        pod = rendered["Deployment", "demo-regent"]["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }

    def test_the_settings_are_those_of_the_program(self, render: Render) -> None:
        rendered = render(
            namespaces=["a", "b"],
            settings={"log_level": "debug", "broker_request_timeout_ms": 600000},
        )
        text = rendered["ConfigMap", "demo-regent"]["data"]["settings.yaml"]
        settings = Settings(**yaml.safe_load(text))
        assert settings.zookeeper == "zk:2181/kafka"
        assert settings.namespaces == ("a", "b")
        assert (settings.http_host, settings.http_port) == ("0.0.0.0", 8080)
        assert settings.broker_request_timeout_ms == 600_000
        assert settings.log_level == "debug"

    def test_a_cluster_is_named_to_the_program_and_to_the_hook(self, render: Render) -> None:
        def named(**values: Any) -> tuple[Settings, set[str]]:
            rendered = render(**values)
            text = rendered["ConfigMap", "demo-regent"]["data"]["settings.yaml"]
            template = rendered["Job", "demo-regent-release"]["spec"]["template"]
            arguments = set(template["spec"]["containers"][0]["args"])
            return Settings(**yaml.safe_load(text)), {
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

    def test_other_settings_take_other_pods(self, render: Render) -> None:
        def checksum(**values: Any) -> str:
            template = render(**values)["Deployment", "demo-regent"]["spec"]["template"]
            return str(template["metadata"]["annotations"]["checksum/settings"])

        assert checksum() == checksum(replicas=2)
        assert checksum() != checksum(settings={"log_level": "debug"})

    def test_namespaces_mean_roles_and_no_cluster_role(self, render: Render) -> None:
        rendered = render(namespaces=["a", "b"], rbac__aggregateToView=False)
        kinds = [kind for kind, _ in rendered]
        assert "ClusterRole" not in kinds
        assert "ClusterRoleBinding" not in kinds
        # Same name in each namespace, so the last one is what is left of them here.
        assert rendered["Role", "kafka-demo-regent"]["metadata"]["namespace"] == "b"

    def test_the_lease_is_the_only_one_it_may_change(self, render: Render) -> None:
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
        settings = yaml.safe_load(rendered["ConfigMap", "demo-regent"]["data"]["settings.yaml"])
        assert (settings["lease_namespace"], settings["lease_name"]) == ("kafka", "demo-regent")

    def test_alerts_and_dashboard_only_if_asked_for(self, render: Render) -> None:
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

    def test_names_that_look_like_numbers_are_text(self, render: Render) -> None:
        rendered = render(
            release="1e5",
            namespace="123",
            namespaces=["007"],
            replicas=2,
            endpoint__enabled=True,
            metrics__service=True,
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

    def test_what_all_namespaces_share_differs_between_releases_with_long_names(
        self, render: Render
    ) -> None:
        """Helm refuses to install what belongs to another release."""

        def cluster_wide(release: str) -> set[tuple[str, str]]:
            rendered = render(release=release, namespace="n" * 63)
            return {key for key in rendered if key[0].startswith("ClusterRole")}

        assert not cluster_wide("r" * 52 + "a") & cluster_wide("r" * 52 + "b")

    def test_a_disruption_budget_only_with_replicas(self, render: Render) -> None:
        assert ("PodDisruptionBudget", "demo-regent") not in render()
        assert ("PodDisruptionBudget", "demo-regent") in render(replicas=2)

    def test_definitions_can_be_left_out_or_given_up(self, render: Render) -> None:
        name = ("CustomResourceDefinition", "kafkatopics.kafka.regent.dev")
        assert render()[name]["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        assert "annotations" not in render(crds__keep=False)[name]["metadata"]
        assert name not in render(crds__enabled=False)

    def test_an_image_by_digest(self, render: Render) -> None:
        digest = "sha256:" + "a" * 64
        deployment = render(image__digest=digest)["Deployment", "demo-regent"]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"] == f"regent@{digest}"

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"zookeeper": ""}, "zookeeper"),
            ({"zookeeper": "zk:2181 zk:2182"}, "zookeeper"),
            ({"replicas": -1}, "replicas"),
            ({"replica": 2}, "replica"),
            ({"settings": {"http_port": 1}}, "http_port"),
            ({"settings": {"cluster_name": "east"}}, "cluster_name"),
            ({"cluster": {"name": "East!", "default": False}}, "name"),
            ({"settings": {"controller_id": 1}}, "controller_id"),
            ({"settings": {"log_levle": "debug"}}, "log_levle"),
            ({"settings": {"log_level": "loud"}}, "log_level"),
            ({"settings": {"zookeeper_tls": "yes"}}, "zookeeper_tls"),
            ({"settings": {"broker_request_timeout_ms": 5}}, "broker_request_timeout_ms"),
            ({"namespaces": ["Not_A_Namespace"]}, "namespaces"),
            ({"image__digest": "latest"}, "digest"),
        ],
    )
    def test_bad_values_are_refused(
        self, render: Render, values: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(CommandError, match=message):
            render(**values)

    @pytest.mark.parametrize("path", value_paths())
    def test_null_means_nothing_or_is_refused_by_name(self, render: Render, path: str) -> None:
        try:
            rendered = render(**{"replicas": 2, "metrics__podMonitor__enabled": True, path: None})
        except CommandError as error:
            message = str(error)
            assert "values don't meet the specifications of the schema" in message
            assert path.rpartition("__")[2] in message
        else:
            assert ("Deployment", "demo-regent") in rendered

    @pytest.mark.parametrize("probe", ["livenessProbe", "readinessProbe"])
    def test_a_probe_can_be_left_out(self, render: Render, probe: str) -> None:
        def container(**values: Any) -> dict[str, Any]:
            deployment = render(**values)["Deployment", "demo-regent"]
            (only,) = deployment["spec"]["template"]["spec"]["containers"]
            return dict(only)

        assert container()[probe]["httpGet"]["port"] == "http"
        assert container(**{probe: {"periodSeconds": 1}})[probe]["httpGet"]["port"] == "http"
        assert probe not in container(**{probe: None})

    def test_writing_topics_is_not_given_to_everybody_who_may_edit(self, render: Render) -> None:
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

    def test_a_service_does_not_become_a_setting(self, render: Render) -> None:
        """Its variables begin with its name in capitals, as those of the settings do."""
        for (kind, name), rendered in render().items():
            if kind in ("Deployment", "Job"):
                assert rendered["spec"]["template"]["spec"]["enableServiceLinks"] is False, name

    def test_the_hook_can_be_left_out(self, render: Render) -> None:
        assert ("Job", "demo-regent-release") in render()
        for values in ({"uninstall__releaseTopics": False}, {"rbac__create": False}):
            kinds = {kind for kind, name in render(**values) if name.endswith("-release")}
            assert kinds == set()

    def test_the_hook_is_not_taken_for_a_pod_of_the_deployment(self, render: Render) -> None:
        rendered = render()
        selector = rendered["Deployment", "demo-regent"]["spec"]["selector"]["matchLabels"]
        labels = rendered["Job", "demo-regent-release"]["spec"]["template"]["metadata"]["labels"]
        assert not selector.items() <= labels.items()

    def test_lint(self) -> None:
        helm = kubernetes_binaries().path("helm")
        outcome = run_guarded(
            [helm, "lint", "--strict", CHART, "--set", "zookeeper=zk:2181"], timeout_s=60
        )
        assert outcome.exit_code == 0, outcome.stdout + outcome.stderr


@pytest.fixture(scope="module")
def api() -> Iterator[KubernetesApi]:
    with KubernetesApi(users={"regent": []}) as server:
        yield server


@pytest.mark.integration
@pytest.mark.parametrize("namespaces", [[], ["team-a", "team-b"]], ids=["cluster", "namespaces"])
async def test_installed_for_real_and_the_rights_are_enough(
    api: KubernetesApi,
    namespaces: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for namespace in ("team-a", "team-b"):
        api.kubectl("apply", "-f", "-", stdin=_namespace(namespace))
    api.helm(
        "install", "demo", CHART, "--namespace", "kafka", "--create-namespace",
        "--set-json", "zookeeper=\"zk:2181/kafka\"",
        "--set-json", f"namespaces={json.dumps(namespaces)}",
    )  # fmt: skip
    try:
        kinds = ["rolebinding"] if namespaces else ["clusterrolebinding"]
        _bind_to_user(api, kinds[0], namespaces)
        config = tmp_path / "kubeconfig"
        config.write_text(api.kubeconfig_for("regent").read_text())
        monkeypatch.setenv("KUBECONFIG", str(config))
        await _one_life(api, tuple(namespaces))
        await _keep_a_lease(api)
    finally:
        api.helm("uninstall", "demo", "--namespace", "kafka", "--no-hooks")  # no pod ever runs
    # crds.keep
    assert "kafkatopics.kafka.regent.dev" in api.kubectl("get", "crd", "-o", "name")


@pytest.mark.integration
def test_a_second_release_leaves_the_definitions_to_the_first(api: KubernetesApi) -> None:
    install = ["--create-namespace", "--set", "zookeeper=zk:2181"]
    api.helm("install", "demo", CHART, "--namespace", "kafka", *install)
    notes = api.helm("install", "demo", CHART, "--namespace", "other", *install)
    try:
        assert "kafkatopics.kafka.regent.dev belongs to the release kafka/demo" in notes
        api.helm("upgrade", "demo", CHART, "--namespace", "other", "--reuse-values")
        api.helm("upgrade", "demo", CHART, "--namespace", "kafka", "--reuse-values")
        api.helm("uninstall", "demo", "--namespace", "other", "--no-hooks")
        assert "helm.sh/chart" in api.kubectl("get", "crd", "-o", "yaml")
    finally:
        api.helm("uninstall", "demo", "--namespace", "kafka", "--no-hooks")


@pytest.mark.integration
def test_definitions_from_somewhere_else_are_left_alone(api: KubernetesApi) -> None:
    api.kubectl("delete", "crd", "--all")
    api.kubectl("apply", "-f", ROOT / "crds")
    api.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    before = api.kubectl("get", "crd", "-o", "yaml")
    notes = api.helm(
        "install", "demo", CHART, "--namespace", "kafka", "--create-namespace",
        "--set", "zookeeper=zk:2181", "--set", "crds.keep=false",
    )  # fmt: skip
    api.helm("uninstall", "demo", "--namespace", "kafka", "--no-hooks")
    assert "kafkatopics.kafka.regent.dev belongs to somebody without Helm" in notes
    assert api.kubectl("get", "crd", "-o", "yaml") == before
    api.kubectl("delete", "crd", "--all")


@pytest.mark.integration
def test_definitions_can_be_moved_to_a_release_as_the_readme_says(api: KubernetesApi) -> None:
    api.kubectl("delete", "crd", "--all")
    api.kubectl("apply", "-f", ROOT / "crds")
    where = ("--namespace", "kafka")
    options = ("--create-namespace", "--set", "zookeeper=zk:2181")
    api.helm("install", "demo", CHART, *where, *options)
    assert "CustomResourceDefinition" not in api.helm("get", "manifest", "demo", *where)
    name = "kafkatopics.kafka.regent.dev"
    api.kubectl(
        "annotate", "crd", name, "--overwrite", "meta.helm.sh/release-name=demo",
        "meta.helm.sh/release-namespace=kafka", "helm.sh/resource-policy=keep",
    )  # fmt: skip
    api.kubectl("label", "crd", name, "--overwrite", "app.kubernetes.io/managed-by=Helm")
    api.helm("upgrade", "demo", CHART, *where, "--reuse-values")
    assert "CustomResourceDefinition" in api.helm("get", "manifest", "demo", *where)
    api.helm("uninstall", "demo", *where, "--no-hooks")
    assert name in api.kubectl("get", "crd", "-o", "name")
    api.kubectl("delete", "crd", "--all")


def _namespace(name: str) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def _bind_to_user(api: KubernetesApi, kind: str, namespaces: list[str]) -> None:
    """Give the chart's roles to a user with a token: no token controller runs here."""
    subjects = [{"kind": "User", "name": "regent", "apiGroup": "rbac.authorization.k8s.io"}]
    patch = json.dumps({"subjects": subjects})
    for where in [["-n", namespace] for namespace in namespaces] or [[]]:
        api.kubectl(*where, "patch", kind, "kafka-demo-regent", "--type=merge", "-p", patch)
    lease = "rolebinding/demo-regent-lease"
    api.kubectl("-n", "kafka", "patch", lease, "--type=merge", "-p", patch)


async def _keep_a_lease(api: KubernetesApi) -> None:
    """Take, renew and release the Lease, with the rights of the chart, and no other one."""

    def lease(name: str, identity: str) -> Lease:
        return Lease(
            client,
            namespace="kafka",
            name=name,
            identity=identity,
            duration_s=15,
            now=lambda: datetime.now(UTC),
        )

    async with KubeClient(max_connections=1, request_timeout_s=10) as client:
        one, other = lease("demo-regent", "one"), lease("demo-regent", "other")
        assert await one.take(by_force=True)
        assert await one.take(by_force=False)
        assert not await other.take(by_force=False)
        assert await other.take(by_force=True)
        await other.release()
        with pytest.raises(KubeApiError, match="forbidden"):
            await lease("somebody-elses", "one").take(by_force=True)
    spec = json.loads(api.kubectl("-n", "kafka", "get", "lease", "demo-regent", "-o", "json"))[
        "spec"
    ]
    assert "holderIdentity" not in spec
    assert spec["leaseTransitions"] == 1
    api.kubectl("-n", "kafka", "delete", "lease", "demo-regent")


async def _one_life(api: KubernetesApi, namespaces: tuple[str, ...]) -> None:
    """Create and delete a topic, with the rights of the chart."""
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        await _serve_one_life(api, controller, namespaces)
        assert cluster.topics == ()


async def _serve_one_life(
    api: KubernetesApi, controller: LiveController, namespaces: tuple[str, ...]
) -> None:
    stop = asyncio.Event()
    task = asyncio.create_task(
        run_kube(controller, KubeSettings(namespaces=namespaces), stop_event=stop)
    )
    try:
        example = (ROOT / "examples" / "kafkatopic.yaml").read_text()
        example = example.replace("  name: orders", "  name: orders\n  namespace: team-b")
        await asyncio.to_thread(api.kubectl, "apply", "-f", "-", stdin=example)
        await asyncio.to_thread(
            api.kubectl, "-n", "team-b", "wait", "--for=condition=Ready", "ktopic/orders",
            "--timeout=120s",
        )  # fmt: skip
        await asyncio.to_thread(api.kubectl, "-n", "team-b", "delete", "ktopic", "orders")

        async def events() -> str:
            return await asyncio.to_thread(api.kubectl, "-n", "team-b", "get", "events")

        await wait_until_async(
            events,
            until=lambda text: "TopicDeleted" in text,
            describe="the Events to be recorded",
            timeout_s=60,
        )
    finally:
        stop.set()
        await task
