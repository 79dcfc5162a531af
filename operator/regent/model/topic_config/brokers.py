"""What is known of a broker that has to load topic configurations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from regent.model.topic_config.definitions import KafkaVersion
from regent.model.topic_config.kafka_definitions import KNOWN_VERSIONS

REMOTE_STORAGE_SYSTEM: Final = "remote.log.storage.system.enable"

SETTINGS_SINCE: Final[Mapping[str, KafkaVersion]] = {
    "log.cleanup.policy": (1, 1),
    "log.retention.bytes": (1, 1),
    "log.retention.ms": (1, 1),
    "log.retention.minutes": (1, 1),
    "log.retention.hours": (1, 1),
    "log.cleaner.min.compaction.lag.ms": (1, 1),
    "log.cleaner.max.compaction.lag.ms": (2, 3),
    "log.segment.bytes": (1, 1),
    "log.index.interval.bytes": (1, 1),
    "log.index.size.max.bytes": (1, 1),
    "log.local.retention.bytes": (3, 6),
    "log.local.retention.ms": (3, 6),
    REMOTE_STORAGE_SYSTEM: (3, 6),
}
"""Settings of a broker that decide whether it accepts a topic's configuration, with the first
version that has each."""


NUM_PARTITIONS: Final = "num.partitions"
DEFAULT_REPLICATION_FACTOR: Final = "default.replication.factor"
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
CREATE_TOPIC_POLICY: Final = "create.topic.policy.class.name"
AUTHORIZER: Final = "authorizer.class.name"
DELETE_TOPIC_ENABLE: Final = "delete.topic.enable"

ADMIN_SETTINGS: Final = (
    NUM_PARTITIONS,
    DEFAULT_REPLICATION_FACTOR,
    MIN_INSYNC_REPLICAS,
    CREATE_TOPIC_POLICY,
    AUTHORIZER,
    DELETE_TOPIC_ENABLE,
)
"""Settings of a broker that decide how a controller answers administrators, and what topics have
for which they do not say it. Every version has them."""


class BrokerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker has reported about itself, as far as topic configurations depend on it.

    Attributes:
        versions: The versions of Kafka that it may run, in ascending order. A value has to be legal
            in all of them. All known versions: nothing is known.
        protocol_version: Its ``inter.broker.protocol.version``; None: not known.
        settings: Those of :data:`SETTINGS_SINCE` and :data:`ADMIN_SETTINGS`, without the unset
            ones; None: not known.
        has_answered: Whether it was asked at all. What is refused only for a broker that has not
            answered may be accepted later.
        api_versions: Lowest and highest version of each API that it serves; empty: not known. (No
            topic configuration depends on it, but on whom a request can be passed to.)
    """

    broker_id: int
    versions: tuple[KafkaVersion, ...] = KNOWN_VERSIONS
    protocol_version: KafkaVersion | None = None
    settings: Mapping[str, str] | None = None
    has_answered: bool = False
    api_versions: Mapping[int, tuple[int, int]] = {}


def kinds_of_brokers(brokers: Iterable[BrokerFacts]) -> tuple[BrokerFacts, ...]:
    """How brokers that have answered are set up, each kind once and as if it were broker 0: what
    one of a kind can load, all of them can."""
    kinds: list[BrokerFacts] = []
    for broker in brokers:
        kind = msgspec.structs.replace(broker, broker_id=0, api_versions={})
        if broker.has_answered and kind not in kinds:
            kinds.append(kind)
    return tuple(kinds)


def narrowed_versions(
    versions: tuple[KafkaVersion, ...], settings: Mapping[str, str | None]
) -> tuple[KafkaVersion, ...]:
    """Of the versions that a broker may run those that know the settings it has listed.

    Some versions serve the same requests and differ in their settings only: 3.5 and 3.6. A broker
    leaves out of its answer what it does not know.
    """
    known = [since for name, since in SETTINGS_SINCE.items() if name in settings]
    unknown = [since for name, since in SETTINGS_SINCE.items() if name not in settings]
    oldest = max(known, default=versions[0])
    remaining = tuple(
        version
        for version in versions
        if version >= oldest and not any(oldest < since <= version for since in unknown)
    )
    return remaining or versions
