"""What all models of the Kubernetes API have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, get_args

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from regent.resources.kind import Cel, ResourceKind


class ApiModel(BaseModel):
    """Base of everything that is read from or written to the Kubernetes API.

    Fields are snake_case here and camelCase there. Unknown fields are ignored, so that an older
    Regent can read what a newer one stored.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
    )

    cel_rules: ClassVar[tuple[Cel, ...]] = ()
    """Rules by which the API server checks an object of this shape."""

    def to_api(self) -> dict[str, Any]:
        """The JSON form: camelCase, plain values; what equals its default is left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class ObjectMeta(ApiModel):
    """The part of metav1.ObjectMeta that Regent looks at."""

    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = Field(default=())

    @property
    def is_being_deleted(self) -> bool:
        return self.deletion_timestamp is not None


def field_names(model: type[ApiModel]) -> frozenset[str]:
    """Names of the fields of a model as the API has them, also of those within others: ``plan`` and
    ``plan.hash``. Of a list they are those of its elements."""
    return frozenset(_names(model))


def _names(model: type[ApiModel], prefix: str = "") -> Iterator[str]:
    for own_name, field in model.model_fields.items():
        name = prefix + (field.alias or own_name)
        yield name
        for inner in _models_in(field.annotation):
            yield from _names(inner, f"{name}.")


def _models_in(annotation: Any) -> Iterator[type[ApiModel]]:
    """The models that a value of a type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, ApiModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


class ClusterRef(ApiModel):
    """Names the Kafka cluster that a resource is for."""

    name: str = Field(
        description="Name that the Regent of the Kafka cluster has been given (setting "
        "cluster_name).",
        min_length=1,
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    )


CLUSTER_REF_IS_IMMUTABLE: Final = Cel(
    "!has(oldSelf.spec.clusterRef) || "
    "(has(self.spec.clusterRef) && self.spec.clusterRef.name == oldSelf.spec.clusterRef.name)",
    "clusterRef is immutable once it is set: create another resource for another cluster",
    field_path=".spec.clusterRef",
)


class CustomResource(ApiModel):
    """Base of the custom resources; each adds ``spec`` and ``status``."""

    kind: ClassVar[ResourceKind]

    metadata: ObjectMeta
