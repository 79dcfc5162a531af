"""Kafka's topic configurations: which values brokers can load.

A broker validates topic configurations only when they come in through its own Admin API. A program
that writes ``/config/topics/T`` directly has to do it first: an entry that does not parse keeps
brokers from starting. So whatever some live broker could not load is refused before anything is
written. What each version accepts is data (:mod:`.kafka_definitions`), generated from Kafka's own
classes.

Regent is never laxer than the brokers. It is stricter where

- a later version of Kafka refuses the value: a broker would not start after its upgrade;
- Java reads more than is sensible: digits of other scripts, more than twenty digits, ``NaN`` and
  infinity, letters that only look like those of ``true`` and ``false``;
- blanks or empty entries stand in lists of throttled replicas, or empty parts in a format version;
- ``segment.index.bytes`` has no room for one entry: Kafka takes the value and fails over it later;
- an index may have more entries than ``segment.index.bytes`` has room for, by the sizes of the
  topic or because one of them is lowered: Kafka takes them, and does not start with such an index;
- ``local.retention.*`` is set on brokers before 3.6, which have no tiered storage;
- ``compression.type`` is ``zstd`` below inter.broker.protocol.version 2.1: followers could not
  replicate;
- ``remote.storage.enable`` is true on brokers before 3.6, which ignore it until they are upgraded.
"""

from __future__ import annotations

from regent.model.topic_config.brokers import (
    ADMIN_SETTINGS,
    AUTHORIZER,
    CREATE_TOPIC_POLICY,
    DEFAULT_REPLICATION_FACTOR,
    DELETE_TOPIC_ENABLE,
    MIN_INSYNC_REPLICAS,
    NUM_PARTITIONS,
    SETTINGS_SINCE,
    BrokerFacts,
    kinds_of_brokers,
    narrowed_versions,
)
from regent.model.topic_config.definitions import KafkaVersion
from regent.model.topic_config.index_sizes import lowered_index_problems
from regent.model.topic_config.java_parsing import parse_boolean, parse_int
from regent.model.topic_config.judging import (
    config_problems,
    impossible_values,
    new_problems,
    unlikely_values,
)
from regent.model.topic_config.kafka_definitions import KNOWN_VERSIONS
from regent.model.topic_config.kafka_words import kafka_words
from regent.model.topic_config.problems import ConfigProblem
from regent.model.topic_config.values import is_same_value

__all__ = [
    "ADMIN_SETTINGS",
    "AUTHORIZER",
    "CREATE_TOPIC_POLICY",
    "DEFAULT_REPLICATION_FACTOR",
    "DELETE_TOPIC_ENABLE",
    "KNOWN_VERSIONS",
    "MIN_INSYNC_REPLICAS",
    "NUM_PARTITIONS",
    "SETTINGS_SINCE",
    "BrokerFacts",
    "ConfigProblem",
    "KafkaVersion",
    "config_problems",
    "impossible_values",
    "is_same_value",
    "kafka_words",
    "kinds_of_brokers",
    "lowered_index_problems",
    "narrowed_versions",
    "new_problems",
    "parse_boolean",
    "parse_int",
    "unlikely_values",
]
