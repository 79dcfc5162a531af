"""Topic ids as Regent remembers them: ``/regent/topic_ids/<topic>,<czxid>``.

The czxid is that of the topic node, in hexadecimal as ZooKeeper's tools show it: a topic that is
created again under the same name is another one. These nodes are Regent's own. Kafka's controllers
neither read nor remove them.
"""

from __future__ import annotations

import uuid
from typing import Final, NamedTuple

import msgspec

from regent.model.errors import MalformedZNodeError
from regent.model.topic import topic_id_from_text, topic_id_to_text
from regent.zk_data.decoding import json_decoder, json_object

TOPIC_IDS: Final = "/regent/topic_ids"
PARENTS: Final = ("/regent", TOPIC_IDS)
"""To be created, in this order, before the first node."""


class TopicIncarnation(NamedTuple):
    """One of the topics that had or have a name.

    Attributes:
        czxid: Transaction that created the topic node.
    """

    topic: str
    czxid: int


class _TopicId(msgspec.Struct):
    topic_id: str


_decode = json_decoder(_TopicId)


def topic_id_name(incarnation: TopicIncarnation) -> str:
    """Name of the node below :data:`TOPIC_IDS`. No name of a topic has a comma."""
    return f"{incarnation.topic},{incarnation.czxid:x}"


def topic_id_path(incarnation: TopicIncarnation) -> str:
    """The remembered id of a topic."""
    return f"{TOPIC_IDS}/{topic_id_name(incarnation)}"


def incarnation_of(name: str) -> TopicIncarnation | None:
    """What a node below :data:`TOPIC_IDS` is about; None: it is none of Regent's."""
    topic, _, czxid = name.rpartition(",")
    try:
        return TopicIncarnation(topic, int(czxid, 16)) if topic else None
    except ValueError:
        return None


def encode_topic_id(topic_id: uuid.UUID) -> bytes:
    """Content of a node, version 1."""
    return json_object([("version", 1), ("topic_id", topic_id_to_text(topic_id))])


def decode_topic_id(path: str, data: bytes) -> uuid.UUID:
    """The remembered id.

    Raises:
        MalformedZNodeError: If the node does not decode.
    """
    text = _decode(path, data).topic_id
    try:
        return topic_id_from_text(text)
    except ValueError as error:
        raise MalformedZNodeError(path, f"not a topic id: {text[:40]!r}") from error
