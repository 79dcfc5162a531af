"""DescribeConfigs, API key 32, version 0, which kio does not have; clients below Kafka 1.1.

Version 1 replaces ``is_default`` by the source of a setting and adds synonyms (KIP-226).
"""

from __future__ import annotations

from typing import Final

from kio.static.constants import EntityType

from regent.protocol.entities.declaration import Field, Message, Structure

_RESOURCE: Final = Structure(
    "DescribeConfigsResource",
    (
        Field("resource_type", "int8"),
        Field("resource_name", "string"),
        Field("configuration_keys", "string", array=True, nullable=True),
    ),
)

DESCRIBE_CONFIGS_REQUEST: Final = Message(
    "DescribeConfigsRequest",
    EntityType.request,
    api_key=32,
    versions=range(1),
    flexible_since=4,
    fields=(Field("resources", _RESOURCE, array=True),),
)

_CONFIG: Final = Structure(
    "DescribeConfigsResourceResult",
    (
        Field("name", "string"),
        Field("value", "string", nullable=True),
        Field("read_only", "bool"),
        Field("is_default", "bool"),
        Field("is_sensitive", "bool"),
    ),
)

_RESULT: Final = Structure(
    "DescribeConfigsResult",
    (
        Field("error_code", "error_code"),
        Field("error_message", "string", nullable=True),
        Field("resource_type", "int8"),
        Field("resource_name", "string"),
        Field("configs", _CONFIG, array=True),
    ),
)

DESCRIBE_CONFIGS_RESPONSE: Final = Message(
    "DescribeConfigsResponse",
    EntityType.response,
    api_key=32,
    versions=range(1),
    flexible_since=4,
    fields=(
        Field("throttle_time", "timedelta_i32"),
        Field("results", _RESULT, array=True),
    ),
)
