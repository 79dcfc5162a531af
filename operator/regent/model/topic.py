"""Topics: identity and the rules for their names."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Mapping
from typing import Final

ZERO_TOPIC_ID: Final = uuid.UUID(int=0)
"""On the wire: no topic id is known."""

TOPIC_IDS_SINCE: Final = (2, 8)
"""inter.broker.protocol.version from which brokers know topic ids (KIP-516)."""

MAX_TOPIC_NAME_LENGTH: Final = 249

BROKER_CREATED_TOPICS: Final[Mapping[str, str]] = {
    "__consumer_offsets": "offsets.topic.*",
    "__transaction_state": "transaction.state.log.*",
    "__remote_log_metadata": "rlmm.config.remote.log.metadata.topic.*",
}
"""Topics that brokers create when brokers first need them, with the settings of brokers that decide
about partitions, replicas and configuration. The number of partitions decides where brokers keep a
group, a transaction or the metadata of remote segments: with another number than that of the
settings, or with more partitions later, brokers look in the wrong place.

Sources: ``AutoTopicCreationManager``, ``GroupMetadataManager``, ``TransactionStateManager``;
``TopicBasedRemoteLogMetadataManager`` (KIP-405), which refuses to start with another number."""

METADATA_TOPIC: Final = "__cluster_metadata"
"""The log of KRaft's controllers. Kafka 3 creates no topic of this name: a broker that migrates to
KRaft keeps that log among the directories of topics."""

MAX_PARTITIONS: Final = 10_000
"""The largest number of partitions a topic may be given: more are a mistake. Kafka has no limit."""

MAX_PARTITION: Final = 2**31 - 1
"""The highest number of a partition in Kafka's protocol."""

_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def new_topic_id() -> uuid.UUID:
    """A random topic id, as of Kafka's ``Uuid.randomUuid``: its text does not begin with a hyphen,
    as Kafka's tools would take it for an option."""
    while topic_id_to_text(topic_id := uuid.uuid4()).startswith("-"):
        pass
    return topic_id


def topic_id_to_text(topic_id: uuid.UUID) -> str:
    """The 22 characters of unpadded URL-safe base64 in which Kafka prints and stores topic ids."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def topic_id_from_text(text: str) -> uuid.UUID:
    """Inverse of :func:`topic_id_to_text`.

    Raises:
        ValueError: If the text does not encode 16 bytes.
    """
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def topic_name_problem(name: str) -> str | None:
    """Why ``name`` is not a legal topic name, as a sentence, or None if it is legal.

    The rules are those of Kafka's ``Topic.validate``.
    """
    if not name:
        return "the topic name is empty; give at least one character"
    if name in (".", ".."):
        return f"the topic name {name!r} is reserved; choose another one"
    if len(name) > MAX_TOPIC_NAME_LENGTH:
        return (
            f"the topic name has {len(name)} characters; "
            f"at most {MAX_TOPIC_NAME_LENGTH} are allowed"
        )
    if not _LEGAL_NAME.fullmatch(name):
        return (
            f"the topic name {name!r} has a character other than ASCII letters, digits, "
            "'.', '_' and '-'"
        )
    return None


def new_topic_name_problem(name: str) -> str | None:
    """Why no topic of this name may be created, as a sentence, or None. One that
    exists is served like others.
    """
    if name == METADATA_TOPIC:
        return f"the topic name {name!r} is that of KRaft's own log; choose another one"
    return topic_name_problem(name)


def is_internal_topic(name: str) -> bool:
    """Whether the name is one that Kafka, and by convention the tools around it, use for topics
    that hold their own state, for instance ``__consumer_offsets``.
    """
    return name.startswith("__")


def metric_name(name: str) -> str:
    """What is left of a topic name in metrics, where ``.`` becomes ``_``.

    Kafka refuses a topic whose metric name another topic has.
    """
    return name.replace(".", "_")
