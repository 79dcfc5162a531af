"""The cluster for kind: configuration, manifests and page fit each other."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from sandbox import DEFAULT_VERSION, KubernetesApi
from sandbox.node.installation import STATEFUL_SETS
from tests.support.helm_chart import CHART, ROOT

CONFIG = yaml.safe_load((ROOT / "kind-config.yaml").read_text())
MANIFESTS = ROOT / "examples" / "kind" / "kafka.yaml"
PAGE = (ROOT / "docs" / "kind.md").read_text()
ZONE = "topology.kubernetes.io/zone"


def objects(kind: str) -> dict[str, dict[str, Any]]:
    """The objects of a kind by name."""
    documents = yaml.safe_load_all(MANIFESTS.read_text())
    return {d["metadata"]["name"]: d["spec"] for d in documents if d["kind"] == kind}


def environment(pod: dict[str, Any]) -> dict[str, str]:
    (container,) = pod["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


def brokers() -> dict[str, dict[str, Any]]:
    sets = objects("StatefulSet")
    return {n: s["template"]["spec"] for n, s in sets.items() if n.startswith("kafka-")}


def test_the_configuration_is_one_of_kind() -> None:
    assert (CONFIG["kind"], CONFIG["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
    assert [node["role"] for node in CONFIG["nodes"]].count("control-plane") == 1
    assert f"--name {CONFIG['name']}" in PAGE


def test_there_is_a_broker_in_each_zone_and_the_zone_is_its_rack() -> None:
    zones = [node["labels"][ZONE] for node in CONFIG["nodes"] if node["role"] == "worker"]
    pods = brokers().values()
    assert [pod["nodeSelector"][ZONE] for pod in pods] == zones
    assert [environment(pod)["KAFKA_BROKER_RACK"] for pod in pods] == zones
    assert len({environment(pod)["KAFKA_BROKER_ID"] for pod in pods}) == len(zones)


def test_everybody_is_reached_under_the_name_that_is_announced() -> None:
    services = objects("Service")
    for name, pod in brokers().items():
        variables = environment(pod)
        advertised = f"PLAINTEXT://{name}-0.kafka.kafka.svc:9092"
        assert variables["KAFKA_ADVERTISED_LISTENERS"] == advertised
        assert objects("StatefulSet")[name]["serviceName"] == "kafka"
        assert f"--set zookeeper={variables['KAFKA_ZOOKEEPER_CONNECT']} " in PAGE
        assert pod["enableServiceLinks"] is False
    assert (services["kafka"]["clusterIP"], services["kafka"]["ports"]) == (
        "None",
        [{"port": 9092}],
    )
    assert services["zookeeper"]["ports"] == [{"port": 2181}]
    assert "kubectl create namespace kafka\n" in PAGE


def test_the_page_names_files_and_an_image_that_exist() -> None:
    for name in re.findall(r"(?:--config|-f) ([a-z][\w./-]+)", PAGE):
        assert (ROOT / name).is_file(), name
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    image = f"{values['image']['repository']}:{chart['appVersion']}"
    assert set(re.findall(r"regent:[\d.]+\d", PAGE)) == {image}
    waited = re.search(r"for name in (.*); do", PAGE)
    assert waited is not None
    assert waited[1].split() == list(objects("StatefulSet"))


@pytest.mark.integration
def test_an_api_server_takes_the_manifests(api: KubernetesApi) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kafka"}}
    api.kubectl("apply", "-f", "-", stdin=json.dumps(namespace))
    taken = api.kubectl(
        *("-n", "kafka", "apply", "--dry-run=server", "--validate=strict", "-o", "name"),
        *("-f", MANIFESTS),
    )
    count = sum(1 for _ in yaml.safe_load_all(MANIFESTS.read_text()))
    assert len(taken.split()) == count


@pytest.mark.integration
def test_on_one_node_the_same_manifests_have_other_images_and_no_zones(api: KubernetesApi) -> None:
    """With images that the sandbox builds, none of which a registry is asked for."""
    made = list(yaml.safe_load_all(api.kubectl("kustomize", ROOT / "examples" / "node")))
    pods = {
        document["metadata"]["name"]: document["spec"]["template"]["spec"]
        for document in made
        if document["kind"] == "StatefulSet"
    }
    assert sorted(pods) == sorted(STATEFUL_SETS) == sorted(objects("StatefulSet"))
    images = {name: pod["containers"][0].pop("image") for name, pod in pods.items()}
    assert set(images.values()) == {
        f"localhost/kafka:{DEFAULT_VERSION}",
        f"localhost/zookeeper:{DEFAULT_VERSION}",
    }
    original = {name: spec["template"]["spec"] for name, spec in objects("StatefulSet").items()}
    for pod in original.values():
        pod["containers"][0].pop("image")
        pod.pop("nodeSelector", None)
    assert pods == original
