"""Finds out whether the API server's CustomResourceDefinition is older than this Regent.

The API server drops fields that it does not know, and reports no error. Without
``spec.clusterRef`` a resource that is for another Kafka cluster is served by the default Regent.
"""

from __future__ import annotations

import asyncio
from typing import Final

from regent.kube.client import KubeClient
from regent.kube.errors import KubeError
from regent.kube.health import KindHealth
from regent.kube.settings import KubeSettings
from regent.resources.kind import API_VERSION, ResourceKind

_SCHEMAS: Final = f"/openapi/v3/apis/{API_VERSION}"
"""Every authenticated user may read it (``system:discovery``), unlike the definitions."""


class DefinitionCheck:
    """Compares the definition of one kind with what is needed.

    Args:
        fields: Names of the fields of the kind's spec.
        health: Where it is said what is missing.
    """

    def __init__(
        self,
        client: KubeClient,
        kind: ResourceKind,
        fields: frozenset[str],
        settings: KubeSettings,
        *,
        health: KindHealth,
    ) -> None:
        self._client = client
        self._kind = kind
        self._fields = fields
        self._settings = settings
        self._health = health

    async def run(self) -> None:
        """Compare again and again, until cancelled: soon while something is missing or cannot be
        found out, then as often as everything is listed.
        """
        while True:
            dropped = await dropped_fields(self._client, self._kind, self._fields)
            if dropped is not None:
                self._health.dropping(_problem(self._kind, dropped) if dropped else None)
            is_current = dropped is not None and not dropped
            await asyncio.sleep(
                self._settings.resync_interval_s if is_current else self._settings.check_interval_s
            )


async def dropped_fields(
    client: KubeClient, kind: ResourceKind, fields: frozenset[str]
) -> frozenset[str] | None:
    """Those of the fields that the API server does not know; None: it does not say."""
    try:
        document = await client.get(_SCHEMAS)
    except KubeError:
        return None
    for schema in document.get("components", {}).get("schemas", {}).values():
        names = schema.get("x-kubernetes-group-version-kind", ())
        if any(name.get("kind") == kind.kind for name in names):
            spec = schema.get("properties", {}).get("spec", {})
            return fields.difference(spec.get("properties", {}))
    return None


def _problem(kind: ResourceKind, dropped: frozenset[str]) -> str:
    named = ", ".join(f"spec.{field}" for field in sorted(dropped))
    return (
        f"the CustomResourceDefinition {kind.crd_name} is older than this Regent: the API server "
        f"drops {named}; `regent crds | kubectl apply -f -` updates it, and {kind.kind}s that have "
        "these fields must be applied again"
    )
