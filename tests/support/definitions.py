"""Regent's CustomResourceDefinitions in a real API server: installed and removed."""

from __future__ import annotations

import yaml

from regent.resources.crd import RESOURCES
from regent.resources.kind import ALL_NAMESPACES
from sandbox import KubernetesApi, wait_until
from tests.support.helm_chart import ROOT
from tests.support.kubernetes_client import DEFINITIONS, KubernetesClient

_KINDS = {resource.kind.crd_name: resource.kind for resource in RESOURCES}


def install_definitions(api: KubernetesApi) -> None:
    """Apply Regent's CRDs, and wait until the API server serves their resources."""
    client = KubernetesClient(api)
    for file in sorted((ROOT / "crds").iterdir()):
        client.apply(yaml.safe_load(file.read_text()))

    def not_established() -> list[str]:
        return [
            body["metadata"]["name"]
            for body in client.items(DEFINITIONS)
            if ("Established", "True")
            not in {(c["type"], c["status"]) for c in body["status"].get("conditions") or []}
        ]

    wait_until(
        not_established,
        until=lambda missing: not missing,
        describe="the definitions to be established",
    )


def remove_definitions(api: KubernetesApi, *names: str) -> None:
    """Delete those of Regent's CRDs that are there (all by default), and wait until they and their
    resources are gone."""
    client = KubernetesClient(api)
    wanted = set(names or _KINDS)

    def present() -> set[str]:
        return wanted & {body["metadata"]["name"] for body in client.items(DEFINITIONS)}

    for name in present():
        # The API server opens the storage of a kind at the first request. If the deletion makes
        # this request, it fails, and the next attempt can be five minutes later.
        client.items(_KINDS[name].collection_path(ALL_NAMESPACES))
        client.delete(f"{DEFINITIONS}/{name}")
    wait_until(
        present,
        until=lambda left: not left,
        describe=f"{', '.join(sorted(wanted))} to be gone",
    )
