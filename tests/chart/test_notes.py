"""NOTES.txt: what it tells people to do is right, whatever the values are."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import pytest
import yaml

from regent.reconcile.selection import ClusterSelection
from regent.settings import Settings
from sandbox import KubernetesApi
from tests.support.helm_chart import CHART, Render, helm_arguments, settings_of
from tests.support.kubernetes_client import KubernetesClient

pytestmark = pytest.mark.integration


def notes(api: KubernetesApi, **values: Any) -> str:
    """What helm prints after an installation; it installs nothing."""
    printed = api.helm(
        *("install", "demo", CHART, "--namespace", "kafka", "--dry-run=server"),
        *helm_arguments(values),
    )
    return printed.partition("NOTES:\n")[2]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"namespaces": ["team-a", "team-b"]},
        {"cluster": {"name": "east", "default": False}},
        {"cluster": {"name": "east", "default": True}, "namespaces": ["team-b"]},
    ],
    ids=["plain", "namespaces", "named", "default"],
)
def test_the_topic_that_it_shows_is_one_that_the_release_serves(
    api: KubernetesApi, render: Render, values: dict[str, Any]
) -> None:
    text = notes(api, **values)
    found = re.search(r"<<YAML\n(.*?)\n +YAML\n", text, re.DOTALL)
    assert found is not None, text
    topic = yaml.safe_load(textwrap.dedent(found[1]))
    settings = Settings(**settings_of(render(**values)))
    selection = ClusterSelection(name=settings.cluster_name, is_default=settings.default_cluster)
    assert selection.serves(topic)
    namespace = topic["metadata"]["namespace"]
    assert namespace in (settings.namespaces or ["default"])
    assert f"kubectl -n {namespace} wait" in text


def test_its_selector_finds_the_pods(api: KubernetesApi, render: Render) -> None:
    found = re.search(r"logs -l (\S+)", notes(api, nameOverride="controller"))
    assert found is not None
    selected = dict(pair.split("=") for pair in found[1].split(","))
    rendered = render(nameOverride="controller")
    (deployment,) = (o for (kind, _), o in rendered.items() if kind == "Deployment")
    assert selected == deployment["spec"]["selector"]["matchLabels"]


def test_what_is_not_served_is_said(api: KubernetesApi) -> None:
    assert "leaves such\na cluster alone" in notes(api)
    assert "inter.broker.protocol.version" not in notes(api, endpoint__enabled=True)
    assert "a broker remains the controller" in notes(api, replicas=0)
    assert "regent release --all" in notes(api, uninstall__releaseTopics=False)


@pytest.mark.parametrize(
    ("former", "values", "commands"),
    [
        ({"namespaces": ["a", "b"]}, {"namespaces": ["a", "b", "c"]}, []),
        ({"namespaces": ["a", "b"]}, {}, []),
        ({"namespaces": ["a", "b"]}, {"namespaces": ["b"]}, ["--namespace a"]),
        ({}, {"namespaces": ["b"]}, ["--namespace NAMESPACE"]),
        ({}, {"cluster": {"name": "east", "default": True}}, []),
        ({}, {"cluster": {"name": "east", "default": False}}, [""]),
        (
            {"cluster": {"name": "east", "default": True}, "namespaces": ["a", "b"]},
            {"cluster": {"name": "west", "default": False}, "namespaces": ["b"]},
            [
                "--namespace a --cluster-name east --default-cluster",
                "--namespace a --namespace b --cluster-name east --default-cluster",
            ],
        ),
        (
            {"cluster": {"name": "east", "default": True}},
            {"cluster": {"name": "east", "default": False}},
            [""],
        ),
        (
            {"cluster": {"name": "east", "default": True}},
            {"cluster": {"name": "west", "default": True}},
            ["--cluster-name east"],
        ),
    ],
)
def test_an_upgrade_says_how_to_release_what_is_not_served_any_more(
    api: KubernetesApi,
    render: Render,
    former: dict[str, Any],
    values: dict[str, Any],
    commands: list[str],
) -> None:
    """Nothing else does: its conditions stay as they were, and it cannot be deleted."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kafka"}}
    former_settings = render(**former)["ConfigMap", "demo-regent"]
    former_settings["metadata"]["annotations"] = {
        "meta.helm.sh/release-name": "demo",
        "meta.helm.sh/release-namespace": "kafka",
    }
    client, collection = KubernetesClient(api), "/api/v1/namespaces/kafka/configmaps"
    client.apply(namespace)
    client.create(collection, former_settings)
    try:
        text = notes(api, **values)
    finally:
        client.delete(f"{collection}/demo-regent")
    assert re.findall(r"^  regent release --all ?(.*)$", text, re.MULTILINE) == commands
