"""Entities of any version from the fields that they have in all of them.

What a handler answers has more fields in later versions, but none that means something else. So it
names all fields once, and each version takes those that it has.
"""

from __future__ import annotations

import dataclasses
import datetime
import typing
from collections.abc import Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode

_NO_TIME: Final = datetime.timedelta(0)


def build_entity(kind: type[Any], fields: Mapping[str, Any]) -> Any:
    """An entity from its fields.

    Args:
        kind: Class of the entity, of kio's or made by ``entities.declaration``.
        fields: Values by Kafka's names of the fields, in snake case. Nested structures are
            mappings, error codes numbers. What the class does not have is left out.
            ``throttle_time`` is 0 unless it is given.

    Raises:
        KeyError: If a field has neither a value nor a default.
    """
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in fields:
            values[field.name] = _value(field, fields[field.name])
        elif field.name == "throttle_time":
            values[field.name] = _NO_TIME
        elif field.default is dataclasses.MISSING:
            raise KeyError(f"{kind.__name__}.{field.name}")
    return kind(**values)


def _value(field: dataclasses.Field[Any], value: Any) -> Any:
    if value is None:
        return None
    if field.metadata.get("kafka_type") == "error_code":
        return ErrorCode(value)
    element = _element(field.type)
    if element is None:
        return value
    if dataclasses.is_dataclass(element):
        return tuple(build_entity(typing.cast(type[Any], element), each) for each in value)
    return tuple(value)


def _element(annotation: Any) -> Any:
    """Type of the elements of an array, null or not; None if the field is no array."""
    for each in (annotation, *typing.get_args(annotation)):
        if typing.get_origin(each) is tuple:
            return typing.get_args(each)[0]
    return None
