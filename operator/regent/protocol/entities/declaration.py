"""Declares the entities of one message for all its versions at once.

Kafka describes a message once, with the range of versions in which each field exists. So does
:class:`Message`; it derives one frozen dataclass per structure and version, with the class
attributes and field metadata that ``kio.serial`` looks for.
"""

from __future__ import annotations

import dataclasses
import datetime
import uuid
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2
from kio.schema.response_header.v0.header import ResponseHeader as ResponseHeaderV0
from kio.schema.response_header.v1.header import ResponseHeader as ResponseHeaderV1
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i64

_PYTHON_TYPES: Final[Mapping[str, Any]] = {
    "int8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
    "bool": bool,
    "string": str,
    "uuid": uuid.UUID | None,
    "error_code": ErrorCode,
    "timedelta_i32": datetime.timedelta,
}

_HEADERS: Final = {
    (EntityType.request, False): RequestHeaderV1,
    (EntityType.request, True): RequestHeaderV2,
    (EntityType.response, False): ResponseHeaderV0,
    (EntityType.response, True): ResponseHeaderV1,
}


class Field(NamedTuple):
    """One field of a structure.

    Attributes:
        name: Python name.
        type: Kafka's name of a primitive type, or a nested structure.
        since: First version that has the field.
        until: Last version that has it; None for all later ones.
        array: Whether the field holds many values.
        nullable: Whether null is a value. Topic ids are never null on the wire (zero stands for
            none); kio reads and writes that as None by itself.
        default: Value of the field where a caller leaves it out.
        tag: Number of a tagged field.
    """

    name: str
    type: str | Structure
    since: int = 0
    until: int | None = None
    array: bool = False
    nullable: bool = False
    default: Any = dataclasses.MISSING
    tag: int | None = None

    def exists_in(self, version: int) -> bool:
        return self.since <= version and (self.until is None or version <= self.until)


class Structure(NamedTuple):
    """A nested structure."""

    name: str
    fields: tuple[Field, ...]


class Message:
    """A request or response in all its versions.

    Indexing by version gives the class of the message itself, :meth:`nested` those of its parts.

    Args:
        name: Class name of the message.
        kind: Request or response; decides the header.
        api_key: Kafka's number of the API.
        versions: All versions.
        flexible_since: First version in the flexible encoding (KIP-482).
        fields: Fields in the order of the wire.
    """

    def __init__(
        self,
        name: str,
        kind: EntityType,
        *,
        api_key: int,
        versions: range,
        flexible_since: int,
        fields: tuple[Field, ...],
    ) -> None:
        self.name = name
        self.kind = kind
        self.api_key = api_key
        self.versions = versions
        self.flexible_since = flexible_since
        self._classes: dict[tuple[str, int], type[Any]] = {}
        for version in versions:
            self._declare(Structure(name, fields), version)

    def __getitem__(self, version: int) -> type[Any]:
        return self._classes[self.name, version]

    def nested(self, name: str, version: int) -> type[Any]:
        """Class of a nested structure.

        Raises:
            KeyError: If that version does not have the structure.
        """
        return self._classes[name, version]

    def _declare(self, structure: Structure, version: int) -> type[Any]:
        declared = self._classes.get((structure.name, version))
        if declared is not None:
            return declared
        flexible = version >= self.flexible_since
        namespace = {
            "__type__": self.kind if structure.name == self.name else EntityType.nested,
            "__version__": i16(version),
            "__flexible__": flexible,
            "__api_key__": i16(self.api_key),
            "__header_schema__": _HEADERS[self.kind, flexible],
        }
        declared = dataclasses.make_dataclass(
            structure.name,
            [
                (field.name, self._annotation(field, version), _dataclass_field(field))
                for field in structure.fields
                if field.exists_in(version)
            ],
            namespace=namespace,
            frozen=True,
            slots=True,
            kw_only=True,
        )
        self._classes[structure.name, version] = declared
        return declared

    def _annotation(self, field: Field, version: int) -> Any:
        annotation: Any = (
            _PYTHON_TYPES[field.type]
            if isinstance(field.type, str)
            else self._declare(field.type, version)
        )
        if field.array:
            annotation = tuple[annotation, ...]
        return annotation | None if field.nullable else annotation


def _dataclass_field(field: Field) -> Any:
    metadata: dict[str, Any] = {}
    if isinstance(field.type, str):
        metadata["kafka_type"] = field.type
    if field.tag is not None:
        metadata["tag"] = field.tag
    return dataclasses.field(metadata=metadata, default=field.default)
