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
from tests.support.helm_chart import CHART, Render, helm_arguments

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
    content = render(**values)["ConfigMap", "demo-regent"]["data"]["settings.yaml"]
    settings = Settings(**yaml.safe_load(content))
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
