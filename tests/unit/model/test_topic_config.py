from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.topic_config import (
    BROKER_SYNONYMS,
    TOPIC_CONFIG_KEYS,
    config_conflicts,
    config_problem,
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retention.ms", "-1"),
        ("retention.ms", " 86400000 "),
        ("retention.ms", "+5"),
        ("retention.bytes", "-9223372036854775808"),
        ("segment.bytes", "14"),
        ("segment.bytes", "2147483647"),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", "compact, delete"),
        ("cleanup.policy", ""),
        ("compression.type", "zstd"),
        ("compression.gzip.level", "-1"),
        ("compression.gzip.level", "9"),
        ("compression.zstd.level", "-131072"),
        ("min.cleanable.dirty.ratio", "0.5"),
        ("min.cleanable.dirty.ratio", "1"),
        ("preallocate", "TRUE"),
        ("unclean.leader.election.enable", "false"),
        ("message.format.version", "0.11.0-IV2"),
        ("message.format.version", "2.8"),
        ("message.timestamp.type", "LogAppendTime"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,1:2"),
        ("follower.replication.throttled.replicas", ""),
    ],
)
def test_legal_values(key: str, value: str) -> None:
    assert config_problem(key, value) is None


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("retention.ms", "-2", "at least -1"),
        ("retention.ms", "1d", "a whole number"),
        ("retention.ms", "1_000", "a whole number"),
        ("retention.ms", "", "a whole number"),
        ("retention.ms", "9" * 5000, "a whole number"),
        ("retention.bytes", "9223372036854775808", "fits into 64 bits"),
        ("segment.bytes", "13", "at least 14"),
        ("segment.bytes", "2147483648", "at most 2147483647"),
        ("cleanup.policy", "compress", "a comma-separated list of compact, delete"),
        ("compression.type", "ZSTD", "one of gzip, lz4"),
        ("compression.gzip.level", "0", "from 1 to 9, or -1"),
        ("min.cleanable.dirty.ratio", "1.1", "from 0 to 1"),
        ("min.cleanable.dirty.ratio", "nan", "from 0 to 1"),
        ("min.cleanable.dirty.ratio", "half", "from 0 to 1"),
        ("min.insync.replicas", "0", "at least 1"),
        ("preallocate", "yes", "true or false"),
        ("message.format.version", "latest", "a version of Kafka"),
        ("leader.replication.throttled.replicas", "1", "<partition>:<broker>"),
    ],
)
def test_illegal_values_say_what_is_expected(key: str, value: str, expected: str) -> None:
    problem = config_problem(key, value)
    assert problem is not None
    assert repr(key) in problem
    assert expected in problem


@pytest.mark.parametrize(
    ("key", "suggestion"),
    [
        ("retention.mss", "retention.ms"),
        ("retention_ms", "retention.ms"),
        ("Retention.MS", "retention.ms"),
        ("retentionMs", "retention.ms"),
        ("min.insync.replica", "min.insync.replicas"),
        ("log.retention.hours", "retention.ms"),
        ("message.max.bytes", "max.message.bytes"),
    ],
)
def test_an_unknown_key_is_answered_with_the_likely_one(key: str, suggestion: str) -> None:
    problem = config_problem(key, "1")
    assert problem is not None
    assert f"did you mean {suggestion!r}" in problem


def test_an_unknown_key_that_resembles_nothing() -> None:
    assert config_problem("x", "1") == (
        "'x' is not a topic configuration of Kafka; the keys are those of Kafka's TopicConfig, "
        "for instance 'retention.ms'"
    )


def test_a_key_newer_than_the_oldest_broker_is_refused() -> None:
    assert config_problem("max.compaction.lag.ms", "5", kafka_version=(2, 3)) is None
    problem = config_problem("max.compaction.lag.ms", "5", kafka_version=(2, 2))
    assert problem is not None
    assert "since Kafka 2.3" in problem
    assert config_problem("compression.type", "zstd", kafka_version=(2, 0)) is not None
    assert config_problem("compression.type", "zstd", kafka_version=(2, 1)) is None


@pytest.mark.parametrize(
    ("config", "keys"),
    [
        ({}, ()),
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"}, ()),
        (
            {"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"},
            ("min.compaction.lag.ms",),
        ),
        ({"local.retention.ms": "-2", "retention.ms": "5"}, ()),
        ({"local.retention.ms": "-1", "retention.ms": "5"}, ("local.retention.ms",)),
        ({"local.retention.ms": "6", "retention.ms": "-1"}, ()),
        ({"local.retention.bytes": "6", "retention.bytes": "5"}, ("local.retention.bytes",)),
        (
            {"remote.storage.enable": "true", "cleanup.policy": "compact"},
            ("remote.storage.enable",),
        ),
        ({"remote.storage.enable": "true", "cleanup.policy": "delete"}, ()),
    ],
)
def test_conflicts_between_values(config: dict[str, str], keys: tuple[str, ...]) -> None:
    assert tuple(key for key, _ in config_conflicts(config)) == keys


def test_the_table_is_sorted_and_synonyms_lead_into_it() -> None:
    assert list(TOPIC_CONFIG_KEYS) == sorted(TOPIC_CONFIG_KEYS)
    assert set(BROKER_SYNONYMS.values()) <= TOPIC_CONFIG_KEYS.keys()
    assert not BROKER_SYNONYMS.keys() & TOPIC_CONFIG_KEYS.keys()


@given(key=st.sampled_from([*TOPIC_CONFIG_KEYS, "nonsense"]), value=st.text())
def test_any_text_gets_an_answer(key: str, value: str) -> None:
    problem = config_problem(key, value)
    assert problem is None or repr(key) in problem
