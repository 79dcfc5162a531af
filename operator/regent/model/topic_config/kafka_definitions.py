"""What each version of Kafka defines for topics.

Generated from Kafka's own classes by ``tests.java.regenerate_topic_configs``; do not edit. Made of
these releases: 1.1.1, 2.0.1, 2.1.1, 2.2.2, 2.3.1, 2.4.1, 2.5.1, 2.6.3, 2.7.2, 2.8.2, 3.0.2,
3.1.2, 3.2.3, 3.3.2, 3.4.1, 3.5.2, 3.6.2, 3.7.2, 3.8.1, 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from regent.model.topic_config.definitions import (
    ConfigType,
    DefinedSince,
    Definition,
    KafkaVersion,
    Range,
)

KNOWN_VERSIONS: Final[tuple[KafkaVersion, ...]] = (
    (1, 1),
    (2, 0),
    (2, 1),
    (2, 2),
    (2, 3),
    (2, 4),
    (2, 5),
    (2, 6),
    (2, 7),
    (2, 8),
    (3, 0),
    (3, 1),
    (3, 2),
    (3, 3),
    (3, 4),
    (3, 5),
    (3, 6),
    (3, 7),
    (3, 8),
    (3, 9),
)

DEFINITIONS: Final[Mapping[str, tuple[DefinedSince, ...]]] = {
    "cleanup.policy": (
        DefinedSince(
            (1, 1),
            Definition(
                ConfigType.LIST,
                choices=(
                    "compact",
                    "delete",
                ),
            ),
        ),
    ),
    "compression.gzip.level": (
        DefinedSince(
            (3, 8),
            Definition(
                ConfigType.INT,
                ranges=(
                    Range(-1, -1),
                    Range(1, 9),
                ),
            ),
        ),
    ),
    "compression.lz4.level": (
        DefinedSince((3, 8), Definition(ConfigType.INT, ranges=(Range(1, 17),))),
    ),
    "compression.type": (
        DefinedSince(
            (1, 1),
            Definition(
                ConfigType.STRING,
                choices=(
                    "gzip",
                    "lz4",
                    "producer",
                    "snappy",
                    "uncompressed",
                ),
            ),
        ),
        DefinedSince(
            (2, 1),
            Definition(
                ConfigType.STRING,
                choices=(
                    "gzip",
                    "lz4",
                    "producer",
                    "snappy",
                    "uncompressed",
                    "zstd",
                ),
            ),
        ),
    ),
    "compression.zstd.level": (
        DefinedSince((3, 8), Definition(ConfigType.INT, ranges=(Range(-131072, 22),))),
    ),
    "delete.retention.ms": (
        DefinedSince((1, 1), Definition(ConfigType.LONG, ranges=(Range(0, None),))),
    ),
    "file.delete.delay.ms": (
        DefinedSince((1, 1), Definition(ConfigType.LONG, ranges=(Range(0, None),))),
    ),
    "flush.messages": (
        DefinedSince((1, 1), Definition(ConfigType.LONG, ranges=(Range(0, None),))),
        DefinedSince((3, 3), Definition(ConfigType.LONG, ranges=(Range(1, None),))),
    ),
    "flush.ms": (DefinedSince((1, 1), Definition(ConfigType.LONG, ranges=(Range(0, None),))),),
    "follower.replication.throttled.replicas": (
        DefinedSince((1, 1), Definition(ConfigType.THROTTLED_REPLICAS)),
    ),
    "index.interval.bytes": (
        DefinedSince((1, 1), Definition(ConfigType.INT, ranges=(Range(0, None),))),
    ),
    "leader.replication.throttled.replicas": (
        DefinedSince((1, 1), Definition(ConfigType.THROTTLED_REPLICAS)),
    ),
    "local.retention.bytes": (
        DefinedSince((3, 0), Definition(ConfigType.LONG, ranges=(Range(-2, None),))),
    ),
    "local.retention.ms": (
        DefinedSince((3, 0), Definition(ConfigType.LONG, ranges=(Range(-2, None),))),
    ),
    "max.compaction.lag.ms": (
        DefinedSince((2, 3), Definition(ConfigType.LONG, ranges=(Range(1, None),))),
    ),
    "max.message.bytes": (
        DefinedSince((1, 1), Definition(ConfigType.INT, ranges=(Range(0, None),))),
    ),
    "message.downconversion.enable": (DefinedSince((2, 0), Definition(ConfigType.BOOLEAN)),),
    "message.format.version": (DefinedSince((1, 1), Definition(ConfigType.FORMAT_VERSION)),),
    "message.timestamp.after.max.ms": (
        DefinedSince((3, 6), Definition(ConfigType.LONG, ranges=(Range(0, None),))),
    ),
    "message.timestamp.before.max.ms": (
        DefinedSince((3, 6), Definition(ConfigType.LONG, ranges=(Range(0, None),))),
    ),
    "message.timestamp.difference.max.ms": (
        DefinedSince((1, 1), Definition(ConfigType.LONG, ranges=(Range(0, None),))),
    ),
    "message.timestamp.type": (
        DefinedSince(
            (1, 1),
            Definition(
                ConfigType.STRING,
                choices=(
                    "CreateTime",
                    "LogAppendTime",
                    "NoTimestampType",
                ),
            ),
        ),
        DefinedSince(
            (2, 0),
            Definition(
                ConfigType.STRING,
                choices=(
                    "CreateTime",
                    "LogAppendTime",
                ),
            ),
        ),
    ),
    "min.cleanable.dirty.ratio": (
        DefinedSince((1, 1), Definition(ConfigType.DOUBLE, ranges=(Range(0, 1),))),
    ),
    "min.compaction.lag.ms": (
        DefinedSince((1, 1), Definition(ConfigType.LONG, ranges=(Range(0, None),))),
    ),
    "min.insync.replicas": (
        DefinedSince((1, 1), Definition(ConfigType.INT, ranges=(Range(1, None),))),
    ),
    "preallocate": (DefinedSince((1, 1), Definition(ConfigType.BOOLEAN)),),
    "remote.log.copy.disable": (DefinedSince((3, 9), Definition(ConfigType.BOOLEAN)),),
    "remote.log.delete.on.disable": (DefinedSince((3, 9), Definition(ConfigType.BOOLEAN)),),
    "remote.storage.enable": (DefinedSince((3, 0), Definition(ConfigType.BOOLEAN)),),
    "retention.bytes": (DefinedSince((1, 1), Definition(ConfigType.LONG)),),
    "retention.ms": (
        DefinedSince((1, 1), Definition(ConfigType.LONG)),
        DefinedSince((2, 2), Definition(ConfigType.LONG, ranges=(Range(-1, None),))),
    ),
    "segment.bytes": (DefinedSince((1, 1), Definition(ConfigType.INT, ranges=(Range(14, None),))),),
    "segment.index.bytes": (
        DefinedSince((1, 1), Definition(ConfigType.INT, ranges=(Range(0, None),))),
        DefinedSince((3, 3), Definition(ConfigType.INT, ranges=(Range(4, None),))),
    ),
    "segment.jitter.ms": (
        DefinedSince((1, 1), Definition(ConfigType.LONG, ranges=(Range(0, None),))),
    ),
    "segment.ms": (
        DefinedSince((1, 1), Definition(ConfigType.LONG, ranges=(Range(0, None),))),
        DefinedSince((2, 0), Definition(ConfigType.LONG, ranges=(Range(1, None),))),
    ),
    "unclean.leader.election.enable": (DefinedSince((1, 1), Definition(ConfigType.BOOLEAN)),),
}

FORMAT_VERSIONS: Final[Mapping[str, KafkaVersion]] = {
    "0.8.0": (1, 1),
    "0.8.1": (1, 1),
    "0.8.2": (1, 1),
    "0.9.0": (1, 1),
    "0.10.0": (1, 1),
    "0.10.0-IV0": (1, 1),
    "0.10.0-IV1": (1, 1),
    "0.10.1": (1, 1),
    "0.10.1-IV0": (1, 1),
    "0.10.1-IV1": (1, 1),
    "0.10.1-IV2": (1, 1),
    "0.10.2": (1, 1),
    "0.10.2-IV0": (1, 1),
    "0.11.0": (1, 1),
    "0.11.0-IV0": (1, 1),
    "0.11.0-IV1": (1, 1),
    "0.11.0-IV2": (1, 1),
    "1.0": (1, 1),
    "1.0-IV0": (1, 1),
    "1.1": (1, 1),
    "1.1-IV0": (1, 1),
    "2.0": (2, 0),
    "2.0-IV0": (2, 0),
    "2.0-IV1": (2, 0),
    "2.1": (2, 1),
    "2.1-IV0": (2, 1),
    "2.1-IV1": (2, 1),
    "2.1-IV2": (2, 1),
    "2.2": (2, 2),
    "2.2-IV0": (2, 2),
    "2.2-IV1": (2, 2),
    "2.3": (2, 3),
    "2.3-IV0": (2, 3),
    "2.3-IV1": (2, 3),
    "2.4": (2, 4),
    "2.4-IV0": (2, 4),
    "2.4-IV1": (2, 4),
    "2.5": (2, 5),
    "2.5-IV0": (2, 5),
    "2.6": (2, 6),
    "2.6-IV0": (2, 6),
    "2.7": (2, 7),
    "2.7-IV0": (2, 7),
    "2.7-IV1": (2, 7),
    "2.7-IV2": (2, 7),
    "2.8": (2, 8),
    "2.8-IV0": (2, 8),
    "2.8-IV1": (2, 8),
    "3.0": (3, 0),
    "3.0-IV0": (3, 0),
    "3.0-IV1": (3, 0),
    "3.1": (3, 1),
    "3.1-IV0": (3, 1),
    "3.2": (3, 2),
    "3.2-IV0": (3, 2),
    "3.3": (3, 3),
    "3.3-IV0": (3, 3),
    "3.3-IV1": (3, 3),
    "3.3-IV2": (3, 3),
    "3.3-IV3": (3, 3),
    "3.4": (3, 4),
    "3.4-IV0": (3, 4),
    "3.5": (3, 5),
    "3.5-IV0": (3, 5),
    "3.5-IV1": (3, 5),
    "3.5-IV2": (3, 5),
    "3.6": (3, 6),
    "3.6-IV0": (3, 6),
    "3.6-IV1": (3, 6),
    "3.6-IV2": (3, 6),
    "3.7": (3, 7),
    "3.7-IV0": (3, 7),
    "3.7-IV1": (3, 7),
    "3.7-IV2": (3, 7),
    "3.7-IV3": (3, 7),
    "3.7-IV4": (3, 7),
    "3.8-IV0": (3, 7),
    "3.8": (3, 8),
    "3.9-IV0": (3, 8),
    "3.9": (3, 9),
    "4.0-IV0": (3, 9),
    "4.0-IV1": (3, 9),
}
"""Values of message.format.version, with the first version that knows each."""
