"""The declared entities behave as kio's own do."""

from __future__ import annotations

import dataclasses
import uuid
from datetime import timedelta
from types import UnionType
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from regent.protocol.entities.alter_partition import (
    ALTER_PARTITION_REQUEST,
    ALTER_PARTITION_RESPONSE,
)
from regent.protocol.entities.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS_REQUEST,
)
from regent.protocol.entities.controlled_shutdown import (
    CONTROLLED_SHUTDOWN_REQUEST,
    CONTROLLED_SHUTDOWN_RESPONSE,
)
from regent.protocol.entities.declaration import Message
from regent.protocol.entities.leader_and_isr import LEADER_AND_ISR_REQUEST, LEADER_AND_ISR_RESPONSE
from regent.protocol.entities.stop_replica import STOP_REPLICA_REQUEST, STOP_REPLICA_RESPONSE
from regent.protocol.entities.update_metadata import (
    UPDATE_METADATA_REQUEST,
    UPDATE_METADATA_RESPONSE,
)
from regent.protocol.entity_reader import read_entity
from regent.protocol.primitives import Reader
from tests.support.examples import scaled_examples
from tests.support.stub_broker import encode

MESSAGES = (
    LEADER_AND_ISR_REQUEST,
    LEADER_AND_ISR_RESPONSE,
    UPDATE_METADATA_REQUEST,
    UPDATE_METADATA_RESPONSE,
    STOP_REPLICA_REQUEST,
    STOP_REPLICA_RESPONSE,
    ALTER_PARTITION_REQUEST,
    ALTER_PARTITION_RESPONSE,
    ALTER_PARTITION_REASSIGNMENTS_REQUEST,
    CONTROLLED_SHUTDOWN_REQUEST,
    CONTROLLED_SHUTDOWN_RESPONSE,
)
ALL = [(message, version) for message in MESSAGES for version in message.versions]
LIMITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def values(field: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
    """Legal values of a field."""
    annotation: Any = field.type
    if isinstance(annotation, UnionType) and get_origin(get_args(annotation)[0]) is tuple:
        return st.none() | arrays(field, get_args(annotation)[0])
    if get_origin(annotation) is tuple:
        return arrays(field, annotation)
    if field.metadata["kafka_type"] == "string" and annotation is not str:
        return st.none() | primitives("string")
    return primitives(field.metadata["kafka_type"])


def arrays(field: dataclasses.Field[Any], annotation: Any) -> st.SearchStrategy[Any]:
    (inner, _) = get_args(annotation)
    if isinstance(inner, type) and dataclasses.is_dataclass(inner):
        return st.lists(entities(inner), max_size=2).map(tuple)
    return st.lists(primitives(field.metadata["kafka_type"]), max_size=3).map(tuple)


def primitives(kafka_type: str) -> st.SearchStrategy[Any]:
    match kafka_type:
        case "bool":
            return st.booleans()
        case "string":
            return st.text(max_size=5)
        case "uuid":
            return st.none() | st.uuids().filter(lambda value: value != uuid.UUID(int=0))
        case "error_code":
            return st.sampled_from(ErrorCode)
        case "timedelta_i32":
            return st.integers(-(2**31), 2**31 - 1).map(lambda ms: timedelta(milliseconds=ms))
        case _:
            bits = LIMITS[kafka_type]
            return st.integers(-(2**bits), 2**bits - 1)


def entities(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, **{field.name: values(field) for field in dataclasses.fields(kind)})


@pytest.mark.parametrize(
    ("message", "version"), ALL, ids=lambda each: getattr(each, "name", str(each))
)
@scaled_examples(1 / 5)
@given(data=st.data())
def test_what_is_written_is_read(message: Message, version: int, data: st.DataObject) -> None:
    kind = message[version]
    entity = data.draw(entities(kind))
    raw = encode(entity)
    assert entity_reader(kind)(raw, 0) == (entity, len(raw))
    reader = Reader(raw, flexible=kind.__flexible__)
    assert read_entity(kind, reader) == entity
    reader.expect_end()


def test_the_tagged_field_of_update_metadata_is_left_out_where_it_is_zero() -> None:
    values = {"controller_id": 1, "controller_epoch": 1, "topic_states": (), "live_brokers": ()}
    kind = UPDATE_METADATA_REQUEST[8]
    assert encode(kind(**values, type_=2)) == encode(kind(**values))[:-1] + b"\x01\x00\x01\x02"
