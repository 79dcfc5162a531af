"""The golden frames of the server's side, and the entities that they stand for."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_origin

from kio.schema.errors import ErrorCode

from regent.protocol.served_apis import (
    ADMIN_APIS,
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    CONNECTION_APIS,
    CONTROLLED_SHUTDOWN,
    DESCRIBE_CONFIGS,
    METADATA,
    Api,
    table_of,
)

ALL_APIS: Final = table_of(
    (
        *CONNECTION_APIS,
        *ADMIN_APIS,
        METADATA,
        DESCRIBE_CONFIGS,
        CONTROLLED_SHUTDOWN,
        ALTER_PARTITION,
        ALLOCATE_PRODUCER_IDS,
    )
)
CLIENT_ID: Final = "7"
CORRELATION_ID: Final = 42

_JAVA: Final = Path(__file__).parents[1] / "java"
_BY_NAME: Final = {api.name: api for api in ALL_APIS.values()}


class GoldenFrame(NamedTuple):
    """One committed frame."""

    release: str
    case: str
    api: Api
    kind: str
    version: int
    frame: bytes

    @property
    def entity(self) -> Any:
        """What the frame stands for, by ``server_cases.txt``."""
        fields = _CASES[self.case, self.api.name, self.kind, self.version]
        kinds = self.api.requests if self.kind == "request" else self.api.responses
        return make(kinds[self.version], fields)


def make(kind: type[Any], fields: Mapping[str, Any]) -> Any:
    """An entity from its fields under Kafka's names."""
    named = {field.name: field for field in dataclasses.fields(kind)}
    values = {}
    for name, value in fields.items():
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        field = named.get(snake) or named[snake.removesuffix("_ms")]
        values[field.name] = _value(field, value)
    return kind(**values)


def _value(field: dataclasses.Field[Any], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        array = _array_type(field.type)
        inner = get_args(array)[0]
        if dataclasses.is_dataclass(inner):
            return tuple(make(inner, each) for each in value)  # type: ignore[arg-type]
        return tuple(value)
    match field.metadata["kafka_type"]:
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=value)
        case "bytes":
            return base64.b64decode(value)
        case "uuid":
            found = uuid.UUID(value)
            return found if found.int else None
    return value


def _array_type(annotation: Any) -> Any:
    """An annotation without ``| None``."""
    kinds = [annotation, *get_args(annotation)]
    (array,) = (each for each in kinds if get_origin(each) is tuple)
    return array


def _read_cases() -> dict[tuple[str, str, str, int], dict[str, Any]]:
    cases = {}
    for line in (_JAVA / "server_cases.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, api, kind, versions, fields = line.split(" ", 4)
            first, last = map(int, versions.split(".."))
            for version in range(first, last + 1):
                cases[name, api, kind, version] = json.loads(fields)
    return cases


def _read_golden() -> Iterator[GoldenFrame]:
    for path in sorted((_JAVA / "golden" / "server").glob("*.txt")):
        for line in path.read_text().splitlines():
            case, api, kind, version, frame = line.split(" ")
            yield GoldenFrame(
                path.stem, case, _BY_NAME[api], kind, int(version), bytes.fromhex(frame)
            )


_CASES: Final = _read_cases()
GOLDEN: Final = tuple(_read_golden())
