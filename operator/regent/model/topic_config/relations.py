"""What makes legal values illegal: each other, the settings of a broker, the value before, and
what becomes of them after they were loaded.

Sources: ``LogConfig.validateValues`` and ``validateTopicLogConfigValues`` of Kafka 2.3 to 3.9,
``LogManager.fetchTopicConfigOverrides``, ``KafkaApis.handleFetchRequest`` for zstd, and
``AbstractIndex`` for the size of an index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from regent.model.topic_config.brokers import REMOTE_STORAGE_SYSTEM, BrokerFacts
from regent.model.topic_config.definitions import KafkaVersion, version_text
from regent.model.topic_config.index_sizes import index_problems, lowered_index_problems
from regent.model.topic_config.java_parsing import (
    LONG_MAX,
    parse_boolean,
    parse_list,
    parse_long,
    trim,
)
from regent.model.topic_config.problems import ConfigProblem

_REMOTE_STORAGE: Final = "remote.storage.enable"
_TIERED_STORAGE_SINCE: Final[KafkaVersion] = (3, 6)
_DEFAULTS_COUNT_SINCE: Final[KafkaVersion] = (3, 6)
"""From then on values are compared with the broker's own, where the topic has none."""
_ZSTD_PROTOCOL: Final[KafkaVersion] = (2, 1)
_INDEX_ENTRY_BYTES: Final = 12
"""Of a time index; one of an offset index takes 8."""
_UNLIMITED: Final = -1
_AS_THE_OTHER: Final = -2
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000


def relation_problems(config: Mapping[str, str], broker: BrokerFacts) -> Iterator[ConfigProblem]:
    """Problems of values that are legal each by itself, on one broker."""
    if not config:
        return  # every problem is one of a value
    yield from _compaction_lag(config, broker)
    yield from _zstd(config, broker)
    yield from _kraft_only(config)
    yield from _index_without_room(config)
    yield from index_problems(config, broker)
    yield from _local_retention_without_tiers(config, broker)
    if _is_true(config, _REMOTE_STORAGE):
        yield from _remote_storage(config, broker)


def change_problems(
    before: Mapping[str, str], after: Mapping[str, str], brokers: Sequence[BrokerFacts]
) -> Iterator[ConfigProblem]:
    """Problems of a change as such."""
    yield from lowered_index_problems(before, after, brokers)
    if _is_true(before, _REMOTE_STORAGE) and not _is_true(after, _REMOTE_STORAGE):
        yield ConfigProblem(
            _REMOTE_STORAGE,
            f"{_REMOTE_STORAGE!r} cannot be turned off again: Kafka has no way to do that for a "
            "cluster with ZooKeeper; leave it at 'true', or copy the data to another topic",
        )


def _compaction_lag(config: Mapping[str, str], broker: BrokerFacts) -> Iterator[ConfigProblem]:
    lower, upper = "min.compaction.lag.ms", "max.compaction.lag.ms"
    if lower not in config and upper not in config:
        return
    defaults = broker.settings or {}
    if broker.versions[-1] < _DEFAULTS_COUNT_SINCE:
        defaults = {}
    low = _long(config.get(lower) or defaults.get(f"log.cleaner.{lower}"), otherwise=0)
    high = _long(config.get(upper) or defaults.get(f"log.cleaner.{upper}"), otherwise=LONG_MAX)
    if low > high:
        key, other = (lower, upper) if lower in config else (upper, lower)
        whose = "" if other in config else f" that broker {broker.broker_id} sets for all topics"
        yield ConfigProblem(
            key,
            f"{lower!r} ({low}) must not exceed {upper!r} ({high}); change one of them"
            + (f" ({other!r} is the value{whose})" if whose else ""),
        )


def _zstd(config: Mapping[str, str], broker: BrokerFacts) -> Iterator[ConfigProblem]:
    """Below 2.1, followers cannot fetch what is compressed with zstd: every ISR would shrink."""
    if trim(config.get("compression.type", "")) != "zstd" or broker.versions[-1] < _ZSTD_PROTOCOL:
        return
    version = broker.protocol_version
    if version is not None and version >= _ZSTD_PROTOCOL:
        return
    if version is None:
        problem = f"broker {broker.broker_id} has not reported its inter.broker.protocol.version"
    else:
        problem = (
            f"broker {broker.broker_id} has inter.broker.protocol.version {version_text(version)}"
        )
    yield ConfigProblem(
        "compression.type",
        "'compression.type' can be 'zstd' only where inter.broker.protocol.version is "
        f"{version_text(_ZSTD_PROTOCOL)} or higher: below, followers cannot replicate; {problem}",
        is_certain=broker.has_answered,
    )


def _kraft_only(config: Mapping[str, str]) -> Iterator[ConfigProblem]:
    for key in ("remote.log.copy.disable", "remote.log.delete.on.disable"):
        if _is_true(config, key):
            yield ConfigProblem(
                key, f"{key!r} can only be 'false' in a cluster with ZooKeeper; remove it"
            )


def _index_without_room(config: Mapping[str, str]) -> Iterator[ConfigProblem]:
    """A broker that opens a segment whose index cannot hold one entry fails with the whole request
    of the controller, and at the next start altogether."""
    key = "segment.index.bytes"
    size = _long(config.get(key), otherwise=_INDEX_ENTRY_BYTES)
    if size < _INDEX_ENTRY_BYTES:
        yield ConfigProblem(
            key,
            f"{key!r} ({size}) must be {_INDEX_ENTRY_BYTES} or more: brokers fail over an index "
            "that cannot hold one entry, and would not start any more",
        )


def _local_retention_without_tiers(
    config: Mapping[str, str], broker: BrokerFacts
) -> Iterator[ConfigProblem]:
    """Before 3.6 nothing comes of these keys; yet a broker compares them with the whole retention,
    takes the -1 of that for a small number, and does not load the topic."""
    if broker.versions[0] >= _TIERED_STORAGE_SINCE:
        return
    for key in ("local.retention.ms", "local.retention.bytes"):
        if key in config and _long(config[key], otherwise=_AS_THE_OTHER) != _AS_THE_OTHER:
            yield ConfigProblem(
                key,
                f"{key!r} needs tiered storage, which is there from Kafka "
                f"{version_text(_TIERED_STORAGE_SINCE)} on; broker {broker.broker_id} runs "
                f"{version_text(broker.versions[0])} or may do so: remove the key",
                is_certain=broker.has_answered,
            )


def _remote_storage(config: Mapping[str, str], broker: BrokerFacts) -> Iterator[ConfigProblem]:
    yield from _tiered_storage_is_on(broker)
    settings = broker.settings or {}
    policy = config.get("cleanup.policy", settings.get("log.cleanup.policy", ""))
    if "compact" in parse_list(policy):
        yield ConfigProblem(
            _REMOTE_STORAGE,
            f"{_REMOTE_STORAGE!r} does not work with a compacted topic; set 'cleanup.policy' to "
            "'delete'",
        )
    for unit, whole in (("ms", _retention_ms(settings)), ("bytes", None)):
        default = whole if unit == "ms" else settings.get("log.retention.bytes")
        local_key, key = f"local.retention.{unit}", f"retention.{unit}"
        total = _long(config.get(key, default), otherwise=_UNLIMITED)
        local = _long(
            config.get(local_key, settings.get(f"log.{local_key}")), otherwise=_AS_THE_OTHER
        )
        if total > _UNLIMITED and (local == _UNLIMITED or local > total):
            yield ConfigProblem(
                local_key if local_key in config else key,
                f"{local_key!r} ({local}) must not exceed {key!r} ({total}); lower the former",
            )


def _tiered_storage_is_on(broker: BrokerFacts) -> Iterator[ConfigProblem]:
    """A broker does not start while a topic wants tiered storage and it has none. Before 3.6, one
    does not mind, until it is upgraded."""
    if broker.versions[-1] < _TIERED_STORAGE_SINCE:
        why = f"broker {broker.broker_id} runs Kafka {version_text(broker.versions[-1])}"
    elif broker.settings is None:
        why = f"broker {broker.broker_id} has not reported its settings"
    elif broker.settings.get(REMOTE_STORAGE_SYSTEM) != "true":
        why = f"on broker {broker.broker_id} it is off and the broker would not start any more"
    else:
        return
    yield ConfigProblem(
        _REMOTE_STORAGE,
        f"{_REMOTE_STORAGE!r} needs tiered storage, which is there from Kafka "
        f"{version_text(_TIERED_STORAGE_SINCE)} on with {REMOTE_STORAGE_SYSTEM}=true: {why}",
        is_certain=broker.has_answered,
    )


def _retention_ms(settings: Mapping[str, str]) -> str | None:
    """``log.retention.ms``, or what minutes or hours say in its place."""
    for unit, factor in (("ms", 1), ("minutes", _MINUTE_MS), ("hours", _HOUR_MS)):
        number = parse_long(settings.get(f"log.retention.{unit}", ""))
        if number is not None:
            return str(number * factor if number >= 0 else _UNLIMITED)
    return None


def _long(text: str | None, *, otherwise: int) -> int:
    number = None if text is None else parse_long(text)
    return otherwise if number is None else number


def _is_true(config: Mapping[str, str], key: str) -> bool:
    return parse_boolean(config.get(key, "")) is True
