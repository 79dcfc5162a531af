"""What a controller asks beside its control requests: versions, configurations, log directories.

They are rare, so kio's entities serve them, but for the list of ApiVersions.
"""

import datetime
import importlib
import io
import struct
from collections.abc import Mapping
from typing import Any

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i8

from benchmarks.stub.answers import Header, UnsupportedRequestError, uvarint

API_VERSIONS = 18
DESCRIBE_CONFIGS = 32
DESCRIBE_LOG_DIRS = 35

_LOG_DIRS_LAST_LEGACY = 1

BROKER_RESOURCE = 4
_STATIC_BROKER_CONFIG = i8(4)
_STRING_CONFIG = i8(2)
_UNSUPPORTED_VERSION = 35

# what a broker of Kafka 3.9.1 in ZooKeeper mode answers; the lowest version is 0 throughout
_API_KEYS = (*range(52), 56, 57, 58, 60, 61, *range(65, 70))
# fmt: off
_HIGHEST = (
    11, 17, 9, 12, 7, 4, 8, 3, 9, 9, 6, 9, 4, 5, 5, 5, 5, 1, 4, 7, 6, 2, 5, 4, 5, 4, 4, 1, 4, 3, 3,
    3, 4, 2, 2, 4, 2, 3, 3, 2, 2, 3, 2, 2, 1, 0, 0, 0, 1, 1, 0, 0, 3, 1, 0, 1, 0, 0, 1, 0, 0, 0,
)
# fmt: on
_HIGHEST_VERSIONS = dict(zip(_API_KEYS, _HIGHEST, strict=True))


def api_versions_answer(header: Header) -> bytes:
    """Body of the answer to ApiVersions; its header is always the old one (KIP-511)."""
    known = header.version <= _HIGHEST_VERSIONS[API_VERSIONS]
    version = header.version if known else 0
    error = struct.pack(">h", 0 if known else _UNSUPPORTED_VERSION)
    ranges = [struct.pack(">hhh", key, 0, top) for key, top in _HIGHEST_VERSIONS.items()]
    throttle = struct.pack(">i", 0)
    if version >= 3:
        entries = b"".join(entry + b"\0" for entry in ranges)
        return error + uvarint(len(ranges) + 1) + entries + throttle + b"\0"
    entries = struct.pack(">i", len(ranges)) + b"".join(ranges)
    return error + entries + (throttle if version else b"")


def describe_configs_answer(
    frame: bytes | bytearray, header: Header, config: Mapping[str, str]
) -> tuple[bytes, bool]:
    """Body of the answer to DescribeConfigs, and whether it is flexible.

    Every broker has the same static `config`; every other resource has none.
    """
    if not 1 <= header.version <= 4:
        raise UnsupportedRequestError(f"version {header.version} of DescribeConfigs")
    package = f"kio.schema.describe_configs.v{header.version}"
    schema = importlib.import_module(f"{package}.response")
    request_type = importlib.import_module(f"{package}.request").DescribeConfigsRequest
    flexible: bool = request_type.__flexible__
    request = _read(request_type, frame, header, flexible=flexible)
    results = tuple(
        schema.DescribeConfigsResult(
            error_code=ErrorCode.none,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=tuple(
                _config(schema, header.version, name, value)
                for name, value in config.items()
                if resource.resource_type == BROKER_RESOURCE
                and (not resource.configuration_keys or name in resource.configuration_keys)
            ),
        )
        for resource in request.resources
    )
    answer = schema.DescribeConfigsResponse(throttle_time=datetime.timedelta(), results=results)
    return _write(answer), flexible


def describe_log_dirs_answer(header: Header) -> bytes:
    """One log directory, which is online; what is in it is nobody's question.

    Raises:
        UnsupportedRequestError: For versions in the flexible encoding.
    """
    if header.version > _LOG_DIRS_LAST_LEGACY:
        raise UnsupportedRequestError(f"version {header.version} of DescribeLogDirs")
    # Version 0, which kio lacks, is the same on the wire.
    schema = importlib.import_module("kio.schema.describe_log_dirs.v1.response")
    directory = schema.DescribeLogDirsResult(error_code=ErrorCode.none, log_dir="/data", topics=())
    answer = schema.DescribeLogDirsResponse(
        throttle_time=datetime.timedelta(), results=(directory,)
    )
    return _write(answer)


def _config(schema: Any, version: int, name: str, value: str) -> Any:
    newer = {"config_type": _STRING_CONFIG, "documentation": None} if version >= 3 else {}
    return schema.DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=True,
        config_source=_STATIC_BROKER_CONFIG,
        is_sensitive=False,
        synonyms=(),
        **newer,
    )


def _read(kind: Any, frame: bytes | bytearray, header: Header, *, flexible: bool) -> Any:
    body = bytes(frame[header.end + flexible :])
    entity, _ = entity_reader(kind)(body, 0)
    return entity


def _write(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()
