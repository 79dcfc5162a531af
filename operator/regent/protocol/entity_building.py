"""Entities of any version from the fields that they have in all of them.

What a handler answers has more fields in later versions, but none that means something else. So it
names all fields once, and each version takes those that it has.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

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
    for name, convert, is_required in _plan_of(kind):
        if name in fields:
            value = fields[name]
            values[name] = value if value is None or convert is None else convert(value)
        elif name == "throttle_time":
            values[name] = _NO_TIME
        elif is_required:
            raise KeyError(f"{kind.__name__}.{name}")
    return kind(**values)


class _Field(NamedTuple):
    """A field of an entity, how its value is converted, and whether it must be given."""

    name: str
    convert: Callable[[Any], Any] | None
    is_required: bool


_plans: Final[dict[type[Any], tuple[_Field, ...]]] = {}


def _plan_of(kind: type[Any]) -> tuple[_Field, ...]:
    """Made once for each class: an answer may have tens of thousands of entities."""
    plan = _plans.get(kind)
    if plan is None:
        plan = _plans[kind] = tuple(
            _Field(field.name, _conversion(field), field.default is dataclasses.MISSING)
            for field in dataclasses.fields(kind)
        )
    return plan


def _conversion(field: dataclasses.Field[Any]) -> Callable[[Any], Any] | None:
    if field.metadata.get("kafka_type") == "error_code":
        return ErrorCode
    element = _element(field.type)
    if element is None:
        return None
    if dataclasses.is_dataclass(element):
        return functools.partial(_entities, typing.cast(type[Any], element))
    return tuple


def _entities(kind: type[Any], values: Iterable[Mapping[str, Any]]) -> tuple[Any, ...]:
    return tuple([build_entity(kind, each) for each in values])


def _element(annotation: Any) -> Any:
    """Type of the elements of an array, null or not; None if the field is no array."""
    for each in (annotation, *typing.get_args(annotation)):
        if typing.get_origin(each) is tuple:
            return typing.get_args(each)[0]
    return None
