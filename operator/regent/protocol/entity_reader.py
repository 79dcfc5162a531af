"""Requests of peers that nobody has reason to trust, read into kio's entities.

kio's own reader reserves memory for as many elements as an array announces, and a process that
cannot have it is aborted: a dozen bytes could end the controller. This one reserves nothing before
it is there, and whatever the bytes are, it gives an entity or a :class:`DecodeError`, in time and
memory proportional to the bytes.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode

from regent.protocol.primitives import DecodeError, Reader

Read = Callable[[Reader], Any]

_EPOCH: Final = datetime.datetime.fromtimestamp(0, tz=datetime.UTC)


def read_entity(kind: type[Any], reader: Reader) -> Any:
    """Read an entity from where the reader stands.

    Args:
        kind: Class of the entity: one of kio's, or one made by ``entities.declaration``.
        reader: In the encoding of that class.

    Raises:
        DecodeError: If the bytes are no such entity.
    """
    plan = plan_of(kind)
    values = {name: read(reader) for name, read in plan.fields}
    for tag, raw in reader.tagged_fields():
        known = plan.tagged.get(tag)
        if known is not None:
            name, read = known
            inner = Reader(raw, flexible=True)
            values[name] = read(inner)
            inner.expect_end()
    return kind(**values)


def element_class(kind: type[Any], name: str) -> Any:
    """Class of the elements of a field that is an array of structures."""
    (field,) = (each for each in dataclasses.fields(kind) if each.name == name)
    annotation: Any = field.type
    return annotation.__args__[0]


class _Plan(NamedTuple):
    """How to read one class: its fields in the order of the wire, and the tagged ones by number."""

    fields: tuple[tuple[str, Read], ...]
    tagged: Mapping[int, tuple[str, Read]]


_plans: Final[dict[type[Any], _Plan]] = {}


def plan_of(kind: type[Any]) -> _Plan:
    """How to read a class, made once.

    Raises:
        TypeError: If the class has a field that cannot be read.
    """
    plan = _plans.get(kind)
    if plan is None:
        plan = _plans[kind] = _make_plan(kind)
    return plan


def _make_plan(kind: type[Any]) -> _Plan:
    fields: list[tuple[str, Read]] = []
    tagged: dict[int, tuple[str, Read]] = {}
    for field in dataclasses.fields(kind):
        entry = (field.name, _field_reader(field))
        if "tag" in field.metadata:
            tagged[field.metadata["tag"]] = entry
        else:
            fields.append(entry)
    return _Plan(tuple(fields), tagged)


def _field_reader(field: dataclasses.Field[Any]) -> Read:
    annotation, nullable = _without_none(field.type)
    if typing.get_origin(annotation) is not tuple:
        return _element_reader(annotation, field.metadata, nullable=nullable, name=field.name)
    inner, inner_nullable = _without_none(typing.get_args(annotation)[0])
    if field.metadata.get("kafka_type") == "int32":
        return functools.partial(_read_int32_array, name=field.name, nullable=nullable)
    element = _element_reader(inner, field.metadata, nullable=inner_nullable, name=field.name)
    return functools.partial(_read_array, element=element, name=field.name, nullable=nullable)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """An annotation without ``| None``, and whether it had that."""
    if typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return annotation, False
    kinds = [each for each in typing.get_args(annotation) if each is not types.NoneType]
    if len(kinds) != 1:
        raise TypeError(f"{annotation} is no field of Kafka's protocol")
    return kinds[0], True


def _element_reader(
    annotation: Any, metadata: Mapping[str, Any], *, nullable: bool, name: str
) -> Read:
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        if nullable:
            raise TypeError(f"{name}: structures that may be null are not read here")
        return functools.partial(read_entity, annotation)
    kafka_type = metadata.get("kafka_type", "")
    read = _PRIMITIVES.get(kafka_type)
    if read is None:
        raise TypeError(f"{name}: fields of type {kafka_type or annotation} are not read here")
    if nullable or kafka_type not in _NULLABLE:
        return read
    return functools.partial(_required, read=read, name=name)


def _required(reader: Reader, *, read: Read, name: str) -> Any:
    value = read(reader)
    if value is None:
        raise DecodeError(f"{name} is null")
    return value


def _length(reader: Reader, *, name: str, nullable: bool) -> int | None:
    length = reader.nullable_array_length()
    if length is None and not nullable:
        raise DecodeError(f"{name} is null")
    return length


def _read_array(
    reader: Reader, *, element: Read, name: str, nullable: bool
) -> tuple[Any, ...] | None:
    length = _length(reader, name=name, nullable=nullable)
    return None if length is None else tuple([element(reader) for _ in range(length)])


def _read_int32_array(reader: Reader, *, name: str, nullable: bool) -> tuple[int, ...] | None:
    length = _length(reader, name=name, nullable=nullable)
    return None if length is None else reader.int32_array(length)


def _error_code(reader: Reader) -> ErrorCode:
    code = reader.int16()
    try:
        return ErrorCode(code)
    except ValueError as error:
        raise DecodeError(f"{code} is no error code") from error


def _datetime(reader: Reader) -> datetime.datetime | None:
    milliseconds = reader.int64()
    if milliseconds == -1:
        return None
    try:
        return _EPOCH + datetime.timedelta(milliseconds=milliseconds)
    except OverflowError as error:
        raise DecodeError(f"{milliseconds} ms is no time") from error


def _timedelta_i64(reader: Reader) -> datetime.timedelta:
    milliseconds = reader.int64()
    try:
        return datetime.timedelta(milliseconds=milliseconds)
    except OverflowError as error:
        raise DecodeError(f"{milliseconds} ms is no duration") from error


_PRIMITIVES: Final[Mapping[str, Read]] = {
    "bool": Reader.boolean,
    "bytes": Reader.nullable_bytes,
    "datetime_i64": _datetime,
    "error_code": _error_code,
    "float64": Reader.float64,
    "int8": Reader.int8,
    "int16": Reader.int16,
    "int32": Reader.int32,
    "int64": Reader.int64,
    "string": Reader.nullable_string,
    "timedelta_i32": lambda reader: datetime.timedelta(milliseconds=reader.int32()),
    "timedelta_i64": _timedelta_i64,
    "uint16": Reader.uint16,
    "uuid": Reader.uuid,
}

_NULLABLE: Final = {"bytes", "datetime_i64", "string"}
"""Types whose values can be null on the wire where a field allows it. A topic id cannot."""
