"""Finds out whether the API server's CustomResourceDefinition is older than this Regent.

The API server drops fields that it does not know, and reports no error. Without
``spec.clusterRef`` a resource that is for another Kafka cluster is served by the default Regent;
without a field of its status Regent forgets what it has done, or says less than it should. Helm
leaves definitions as they are when it upgrades.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Set
from typing import Any, Final

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
        fields: Names of the fields of the kind's spec and status, by part.
        health: Where it is said what is missing.
    """

    def __init__(
        self,
        client: KubeClient,
        kind: ResourceKind,
        fields: Mapping[str, Set[str]],
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
            parts = await _parts(self._client, self._kind)
            problem = None if parts is None else self._problem(parts)
            if parts is not None:
                self._health.dropping(problem)
            is_current = parts is not None and problem is None
            await asyncio.sleep(
                self._settings.resync_interval_s if is_current else self._settings.check_interval_s
            )

    def _problem(self, parts: Mapping[str, Any]) -> str | None:
        """What is wrong with a definition, by the schemas of spec and status; None: nothing."""
        dropped = dropped_fields(parts, self._fields)
        return _described(self._kind, dropped) if dropped else None


async def _parts(client: KubeClient, kind: ResourceKind) -> Mapping[str, Any] | None:
    """The schemas of the parts of a kind's objects; None: the API server does not say."""
    try:
        document = await client.get(_SCHEMAS)
    except KubeError:
        return None
    for schema in document.get("components", {}).get("schemas", {}).values():
        names = schema.get("x-kubernetes-group-version-kind", ())
        if any(name.get("kind") == kind.kind for name in names):
            parts: Mapping[str, Any] = schema.get("properties", {})
            return parts
    return None


def dropped_fields(parts: Mapping[str, Any], fields: Mapping[str, Set[str]]) -> tuple[str, ...]:
    """Paths of those fields that the API server does not know, sorted.

    Args:
        parts: The schemas of the parts of an object.
        fields: Names of fields by the part of an object that has them; of a field within another
            one it is ``plan.hash``. Of what is dropped as a whole, nothing within it is named.
    """
    return tuple(
        f"{part}.{name}"
        for part in sorted(fields)
        for name in _dropped(fields[part], parts.get(part, {}))
    )


def _dropped(fields: Set[str], schema: Mapping[str, Any]) -> list[str]:
    dropped = {name for name in fields if not _is_kept(name, schema)}
    return sorted(name for name in dropped if name.rpartition(".")[0] not in dropped)


def _is_kept(name: str, schema: Mapping[str, Any]) -> bool:
    node = schema
    for step in name.split("."):
        node = _of_elements(node)
        if node.get("x-kubernetes-preserve-unknown-fields"):
            return True
        properties = node.get("properties", {})
        if step not in properties:
            return False
        node = properties[step]
    return True


def _of_elements(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of what is in a list or a map; of anything else, the schema itself."""
    while True:
        elements = schema.get("items", schema.get("additionalProperties"))
        if not isinstance(elements, Mapping):
            return schema
        schema = elements


def _described(kind: ResourceKind, dropped: tuple[str, ...]) -> str:
    problem = (
        f"the CustomResourceDefinition {kind.crd_name} is older than this Regent: the API server "
        f"drops {', '.join(dropped)}; `regent crds | kubectl apply -f -` updates it"
    )
    if any(field.startswith("spec.") for field in dropped):
        problem += f", and {kind.kind}s that have these fields must be applied again"
    return problem
