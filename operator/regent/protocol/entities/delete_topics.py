"""DeleteTopics, API key 20, version 0, which kio does not have; clients below Kafka 0.11."""

from __future__ import annotations

from typing import Final

from kio.static.constants import EntityType

from regent.protocol.entities.declaration import Field, Message, Structure

DELETE_TOPICS_REQUEST: Final = Message(
    "DeleteTopicsRequest",
    EntityType.request,
    api_key=20,
    versions=range(1),
    flexible_since=4,
    fields=(
        Field("topic_names", "string", array=True),
        Field("timeout", "timedelta_i32"),
    ),
)

_RESULT: Final = Structure(
    "DeletableTopicResult",
    (
        Field("name", "string"),
        Field("error_code", "error_code"),
    ),
)

DELETE_TOPICS_RESPONSE: Final = Message(
    "DeleteTopicsResponse",
    EntityType.response,
    api_key=20,
    versions=range(1),
    flexible_since=4,
    fields=(Field("responses", _RESULT, array=True),),
)
