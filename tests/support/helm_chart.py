"""The Helm chart of the repository, rendered by the real helm."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from sandbox.errors import CommandError
from sandbox.kubernetes_binaries import kubernetes_binaries
from sandbox.process import run_guarded

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "regent"

EVICTION_HOOK: dict[str, Any] = {
    "evictionHook__enabled": True,
    "evictionHook__podNamespaces": ["kafka"],
    "evictionHook__brokerPods": {"app": "kafka"},
}
"""Values with which the chart installs an eviction hook."""

Rendered = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Rendered]


def helm_arguments(values: dict[str, Any]) -> list[str]:
    """Values as arguments of helm: ``metrics__service`` is ``metrics.service``."""
    return [
        argument
        for name, value in ({"zookeeper": "zk:2181/kafka"} | values).items()
        for argument in ("--set-json", f"{name.replace('__', '.')}={json.dumps(value)}")
    ]


def manifests(*, release: str = "demo", namespace: str = "kafka", **values: Any) -> str:
    """Return the manifests that ``helm template`` makes of values."""
    return _template(release, namespace, *helm_arguments(values))


@functools.cache
def _template(release: str, namespace: str, *arguments: str) -> str:
    outcome = run_guarded(
        [
            kubernetes_binaries().path("helm"),
            *("template", release, CHART, "--namespace", namespace, "--kube-version", "1.34.0"),
            *arguments,
        ],
        timeout_s=180,
    )
    if outcome.exit_code:
        raise CommandError(outcome.stderr)
    return outcome.stdout


def render_chart(**values: Any) -> Rendered:
    """The objects of ``manifests`` by kind and name."""
    # in C: in Python it takes longer than helm
    documents = yaml.load_all(manifests(**values), yaml.CSafeLoader)
    return {(d["kind"], d["metadata"]["name"]): d for d in documents if d}


def settings_of(rendered: Rendered) -> dict[str, Any]:
    """Return the file of settings that Regent's pods read."""
    text = rendered["ConfigMap", "demo-regent"]["data"]["settings.yaml"]
    settings: dict[str, Any] = yaml.safe_load(text)
    return settings


def container_of(rendered: Rendered) -> dict[str, Any]:
    """Return the only container of Regent's pods."""
    template = rendered["Deployment", "demo-regent"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    return dict(container)
