"""What a custom resource is called and how it looks: facts beside its schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

GROUP: Final = "kafka.regent.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
CATEGORY: Final = "regent"
ALL_NAMESPACES: Final = ""


@dataclass(frozen=True, slots=True)
class Cel:
    """A validation rule of the API server.

    Attributes:
        rule: CEL expression over ``self`` and, for a transition, ``oldSelf``.
        message: What is wrong and what to do, for people.
        field_path: Field that the error is attributed to, for instance ``.spec.topicName``.
    """

    rule: str
    message: str
    field_path: str | None = None

    def to_api(self) -> dict[str, str]:
        path = {} if self.field_path is None else {"fieldPath": self.field_path}
        return {"rule": self.rule, "message": self.message, **path}


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of ``kubectl get``; a ``wide`` one appears with ``-o wide`` only."""

    name: str
    type: str
    json_path: str
    description: str = ""
    wide: bool = False

    def to_api(self) -> dict[str, Any]:
        column: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.json_path}
        if self.description:
            column["description"] = self.description
        if self.wide:
            column["priority"] = 1
        return column


SUMMARY_COLUMNS: Final = (
    PrinterColumn("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
    PrinterColumn("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
    PrinterColumn("Age", "date", ".metadata.creationTimestamp"),
)
"""How a resource of any kind is doing."""

MOVE_COLUMNS: Final = (
    PrinterColumn("Bytes", "integer", ".status.progress.bytesTotal", wide=True),
    PrinterColumn("Copied", "integer", ".status.progress.bytesCopied", wide=True),
    PrinterColumn("Bytes/s", "integer", ".status.progress.bytesPerSecond", wide=True),
    PrinterColumn("End", "string", ".status.progress.estimatedEnd", wide=True),
    PrinterColumn("Plan", "string", ".status.plan.hash", wide=True),
)
"""How far a resource is that moves replicas by a plan."""

CLUSTER_COLUMN: Final = PrinterColumn("Cluster", "string", ".spec.clusterRef.name", wide=True)

MESSAGE_COLUMN: Final = PrinterColumn(
    "Message", "string", '.status.conditions[?(@.type=="Ready")].message', wide=True
)


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """Names and looks of a custom resource.

    Attributes:
        conditions: Types of the conditions in its status, in their order.
    """

    kind: str
    plural: str
    description: str
    short_names: tuple[str, ...] = ()
    columns: tuple[PrinterColumn, ...] = ()
    conditions: tuple[str, ...] = ()

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{GROUP}"

    def collection_path(self, namespace: str) -> str:
        """Path in the API of all objects in a namespace, or in ``ALL_NAMESPACES``."""
        scope = f"/namespaces/{namespace}" if namespace else ""
        return f"/apis/{API_VERSION}{scope}/{self.plural}"

    def object_path(self, namespace: str, name: str) -> str:
        """Path in the API of an object."""
        return f"{self.collection_path(namespace)}/{name}"
