"""Regent's judgement of topic configurations against that of Kafka's own classes, by release.

Never laxer: what Regent accepts, the release accepts through its Admin API, loads and applies, and
so does every later release. Seldom stricter: each case is of a kind that is listed here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from regent.model.topic_config import (
    BrokerFacts,
    KafkaVersion,
    config_problems,
    new_problems,
    parse_int,
)
from regent.model.topic_config.definitions import ConfigType, DefinedSince, Definition
from regent.model.topic_config.kafka_definitions import DEFINITIONS, FORMAT_VERSIONS
from regent.protocol.kafka_api_versions import API_VERSIONS
from sandbox import TESTED_VERSIONS
from tests.java.regenerate_topic_configs import version_of
from tests.java.topic_configs import Case, Verdict, definitions_and_verdicts
from tests.support.soak import soak, versions

pytestmark = pytest.mark.integration

OLDEST_AND_NEWEST = (TESTED_VERSIONS[0], TESTED_VERSIONS[-1])
ONE_BY_ONE = versions(*OLDEST_AND_NEWEST, others=TESTED_VERSIONS[1:-1])
TOGETHER = pytest.mark.parametrize(
    "releases",
    [
        pytest.param(OLDEST_AND_NEWEST, id="oldest and newest"),
        pytest.param(TESTED_VERSIONS, id="all", marks=soak("versions")),
    ],
)

REMOTE_ON = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "none",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
}

DEFAULT_SETTINGS = {
    "log.cleanup.policy": "delete",
    "log.retention.bytes": "-1",
    "log.retention.hours": "168",
    "log.cleaner.min.compaction.lag.ms": "0",
    "remote.log.storage.system.enable": "false",
}
"""What a broker says of these settings where its configuration does not name them."""

_BLANKS = ("", " ", "\t5\r\n", "\u00a05", "5\u2003", "\x005", " 5 ", "5 5")
_NUMBERS = (
    *(
        "0",
        "1",
        "-1",
        "-2",
        "-3",
        "+5",
        "--5",
        "+",
        "-",
        "-0",
        "3",
        "4",
        "9",
        "10",
        "11",
        "12",
        "13",
        "14",
        "22",
    ),
    *("23", "17", "18", "100", "1_000", "1,000", "1e3", "5.0", "5.", "0x10", "5L", "5d", "five"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775808", "-9223372036854775809", "131072", "-131072"),
    *("-131073", "007", "0" * 30 + "7", "\uff15\uff10", "\u0665", "\u00b2", "true", "null"),
)
_DOUBLES = (
    *("0.5", ".5", "5e-1", "5E-1", "0.5f", "0.5F", "0.5d", "0.5D", "0x1p-1", "0X1.8P-1", "0x.8p0"),
    *("0x1p-1d", "0x1", "1.0000000000000001", "1.0000000000000002", "-0.0", "-1e-400", "1e-400"),
    *("NaN", "nan", "Infinity", "-Infinity", "inf", "1e400", "0,5", "0.5.5", "\uff10.5", "1/2"),
    *("0_5", "0.5 f", "0." + "3" * 300, "e5", ".", "+.5", "1.", "1.e-1"),
)
_BOOLEANS = (
    *("true", "false", "TRUE", "False", " true ", "\u00a0true", "yes", "1", "on", "t", "truee"),
    *("fal\u017fe", "true false", "null", ""),
)
_STRINGS = (
    *("gzip", "snappy", "lz4", "zstd", "producer", "uncompressed", "none", "GZIP", " gzip ", ""),
    *("CreateTime", "LogAppendTime", "createtime", "NoTimestampType", " CreateTime", "gzip,lz4"),
)
_LISTS = (
    *("delete", "compact", "compact,delete", " compact , delete ", "delete,delete", "", " ", ","),
    *("delete,", ",delete", "Delete", "remove", "delete;compact", "delete,\u00a0compact"),
    *("[delete]", "delete\n,\tcompact"),
)
_THROTTLED = (
    *("", "*", " * ", "**", "0:1", "0:1,1:2", "0:1, 1:2", " 0:1", "0:1 ", "0:1,", ",0:1", "0:1,*"),
    *("99999999999:1", "1:99999999999", "2147483647:2147483647", "2147483648:1", "-1:1", "0", ":"),
    *("0:1:2", "0;1", "\uff10:1", "0 :1", "[0]-[1]", "00000000000000001:1", "none"),
)
_FORMATS = (
    *("2.99", "", "0.8", "0.8.2", "0.8.2.2", "0.9.0", "0.9.0.1", "0.10.0-IV1", "0.11.0", "1.0"),
    *("1.1", "1.1.1", "1.1-IV0", "1.1-IV7", "2.0", "2.1", "2.4", "2.4-IV1", "2.8", "2.8.2", "2.8."),
    *(
        "2.8..",
        ".2.8",
        "3.0",
        "3.3",
        "3.3-IV3",
        "3.9",
        "3.9-IV0",
        "3.10",
        "4.0",
        "4.0-IV0",
        " 2.0 ",
    ),
    *("\u00a02.0", "v2.0", "2", "2.x", "02.0", "2.00", "latest", "0.8.", "0.10", "1.0.foo"),
)
_VALUES: Mapping[ConfigType, tuple[str, ...]] = {
    ConfigType.INT: _BLANKS + _NUMBERS,
    ConfigType.LONG: _BLANKS + _NUMBERS,
    ConfigType.DOUBLE: _BLANKS + _NUMBERS + _DOUBLES,
    ConfigType.BOOLEAN: _BLANKS + _BOOLEANS,
    ConfigType.STRING: _BLANKS + _STRINGS,
    ConfigType.LIST: _BLANKS + _LISTS,
    ConfigType.THROTTLED_REPLICAS: _BLANKS + _THROTTLED,
    ConfigType.FORMAT_VERSION: _BLANKS + _FORMATS,
}

_COMBINATIONS = (
    Case({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}),
    Case({"min.compaction.lag.ms": "4", "max.compaction.lag.ms": "4"}),
    Case({"min.compaction.lag.ms": "0", "max.compaction.lag.ms": "9223372036854775807"}),
    Case({"max.compaction.lag.ms": "4"}, broker={"log.cleaner.min.compaction.lag.ms": "5"}),
    Case({"min.compaction.lag.ms": "9"}, broker={"log.cleaner.max.compaction.lag.ms": "5"}),
    Case({"local.retention.ms": "5", "retention.ms": "4"}),
    Case({"compression.type": "zstd"}, broker={"inter.broker.protocol.version": "0.11.0"}),
    Case({"compression.type": "zstd"}, broker={"inter.broker.protocol.version": "1.1"}),
    Case({"unknown.key": "5"}),
    Case({"retention.ms ": "5"}),
    Case({"Retention.ms": "5"}),
    Case({"log.retention.ms": "5"}),
    Case({"confluent.placement.constraints": "{}"}),
    Case({"remote.log.copy.disable": "true"}),
    Case({"remote.log.delete.on.disable": "true"}, broker=REMOTE_ON),
    *(
        Case({"remote.storage.enable": "true", **config}, broker={**REMOTE_ON, **broker})
        for config, broker in (
            ({}, {}),
            ({"cleanup.policy": "compact"}, {}),
            ({"cleanup.policy": "compact,delete"}, {}),
            ({"cleanup.policy": ""}, {}),
            ({}, {"log.cleanup.policy": "compact"}),
            ({"cleanup.policy": "delete"}, {"log.cleanup.policy": "compact"}),
            ({"local.retention.ms": "5", "retention.ms": "4"}, {}),
            ({"local.retention.ms": "-1", "retention.ms": "4"}, {}),
            ({"local.retention.ms": "-2", "retention.ms": "4"}, {}),
            ({"local.retention.ms": "4", "retention.ms": "4"}, {}),
            ({"local.retention.ms": "5", "retention.ms": "-1"}, {}),
            ({"local.retention.ms": "-1", "retention.ms": "-1"}, {}),
            ({"local.retention.ms": "604800001"}, {}),
            ({"local.retention.ms": "604800000"}, {}),
            ({"local.retention.ms": "60001"}, {"log.retention.minutes": "1"}),
            ({"local.retention.ms": "60000"}, {"log.retention.minutes": "1"}),
            ({"local.retention.ms": "60000"}, {"log.retention.ms": "1000"}),
            ({"local.retention.ms": "60000"}, {"log.retention.ms": "-1"}),
            ({"retention.ms": "4"}, {"log.local.retention.ms": "5"}),
            ({"local.retention.bytes": "5", "retention.bytes": "4"}, {}),
            ({"local.retention.bytes": "-1", "retention.bytes": "4"}, {}),
            ({"local.retention.bytes": "4", "retention.bytes": "4"}, {}),
            ({"local.retention.bytes": "5"}, {}),
            ({"local.retention.bytes": "5"}, {"log.retention.bytes": "4"}),
            ({"retention.bytes": "0", "local.retention.bytes": "0"}, {}),
        )
    ),
    Case({"remote.storage.enable": "true"}),
    Case({"remote.storage.enable": "false"}),
    Case({"remote.storage.enable": "false"}, existing={"remote.storage.enable": "true"}),
    Case({}, existing={"remote.storage.enable": "true"}, broker=REMOTE_ON),
)


@functools.cache
def cases() -> list[Case]:
    """Each key with each value that makes sense for its type, and with a few that do not."""
    alone = [
        Case({key: value})
        for key, spans in DEFINITIONS.items()
        for value in dict.fromkeys(_VALUES[_type_of(key)] + ("true", "5", "delete", "x" * 300))
        if spans
    ]
    return [*alone, *_COMBINATIONS]


def _type_of(key: str) -> ConfigType:
    return next(each.definition.type for each in DEFINITIONS[key] if each.definition is not None)


@functools.cache
def kafka_answers(release: str) -> tuple[Any, list[Verdict]]:
    return definitions_and_verdicts(release, cases())


def kafka_verdicts(release: str) -> list[Verdict]:
    _, verdicts = kafka_answers(release)
    return verdicts


@functools.cache
def accepted(release: str) -> list[bool]:
    """What :func:`is_accepted` says of each case."""
    return [is_accepted(case, release) for case in cases()]


def is_accepted(case: Case, release: str) -> bool:
    """Whether Regent would write it for a broker of that release."""
    version = version_of(release)
    protocol = case.broker.get("inter.broker.protocol.version")
    facts = BrokerFacts(
        broker_id=1,
        versions=(version,),
        protocol_version=version if protocol is None else version_of(protocol),
        settings=DEFAULT_SETTINGS | dict(case.broker),
        has_answered=True,
    )
    if case.existing:
        return not new_problems(case.existing, case.config, [facts], changed=case.config)
    return not config_problems(case.config, [facts])


@pytest.mark.parametrize("release", ONE_BY_ONE)
def test_what_regent_accepts_brokers_of_a_release_can_load(release: str) -> None:
    laxer = [
        (dict(case.config), dict(case.broker), verdict)
        for case, verdict, is_legal in zip(
            cases(), kafka_verdicts(release), accepted(release), strict=True
        )
        if is_legal and not verdict.is_accepted
    ]
    assert laxer == []


@TOGETHER
def test_what_regent_accepts_survives_an_upgrade(releases: Sequence[str]) -> None:
    """Kafka keeps what old brokers accepted, and no new one starts with it."""
    broken = [
        (dict(case.config), dict(case.broker), after, kafka_verdicts(after)[index].load)
        for release, after in itertools.combinations(releases, 2)
        for index, case in enumerate(cases())
        if accepted(release)[index]
        if kafka_verdicts(after)[index].load is not None
    ]
    assert broken == []


STRICTER: Mapping[str, Callable[[str, str, Case, str], bool]] = {
    "Java reads decimal digits of other scripts, and letters that only look like others": (
        lambda key, value, case, release: not value.isascii()
    ),
    "more than twenty digits": lambda key, value, case, release: len(value) > 20,
    "NaN passes Kafka's ranges": lambda key, value, case, release: value == "NaN",
    "blanks in lists of throttled replicas": (
        lambda key, value, case, release: (
            _type_of(key) is ConfigType.THROTTLED_REPLICAS and value != value.strip()
        )
    ),
    "empty entries and more than ten digits in lists of throttled replicas": (
        lambda key, value, case, release: value in ("0:1,", "00000000000000001:1")
    ),
    "followers cannot fetch zstd": (
        lambda key, value, case, release: (
            value == "zstd" and "inter.broker.protocol.version" in case.broker
        )
    ),
    "brokers before 3.6 ignore tiered storage until they are upgraded": (
        lambda key, value, case, release: (
            key == "remote.storage.enable"
            and value.strip().lower() == "true"
            and version_of(release) < (3, 6)
        )
    ),
    "an index without room for one entry": (
        lambda key, value, case, release: (
            key == "segment.index.bytes" and (parse_int(value) or 0) < 12
        )
    ),
    "an index may have more entries than there is room for": (
        lambda key, value, case, release: (
            (key == "segment.index.bytes" and 12 <= (parse_int(value) or 0) < 3_145_000)
            or (key == "index.interval.bytes" and (parse_int(value) or 0) < 1228)
        )
    ),
    "local retention does nothing before 3.6, and is compared with the whole in odd ways": (
        lambda key, value, case, release: (
            key.startswith("local.retention.") and (3, 0) <= version_of(release) < (3, 6)
        )
    ),
}
"""Kinds of configurations that Regent refuses and Kafka accepts."""


def stricter_cases(releases: Sequence[str]) -> Iterator[tuple[str, Case]]:
    for number, release in enumerate(releases):
        later = releases[number:]
        for index, case in enumerate(cases()):
            if not accepted(release)[index] and all(
                kafka_verdicts(each)[index].is_accepted for each in later
            ):
                yield release, case


def kinds_of(case: Case, release: str) -> list[str]:
    return [
        kind
        for kind, applies in STRICTER.items()
        for key, value in (case.config.items() or [("", "")])
        if applies(key, value, case, release)
    ]


@TOGETHER
def test_what_regent_refuses_and_kafka_accepts_is_listed(releases: Sequence[str]) -> None:
    found = [(release, case, kinds_of(case, release)) for release, case in stricter_cases(releases)]
    assert [(release, case) for release, case, kinds in found if not kinds] == []
    if releases == TESTED_VERSIONS:
        assert {kind for _, _, kinds in found for kind in kinds} == STRICTER.keys()


@pytest.mark.parametrize("release", ONE_BY_ONE)
def test_the_generated_tables_are_those_of_the_release(release: str) -> None:
    """``python -m tests.java.regenerate_topic_configs`` rewrites them."""
    found, _ = kafka_answers(release)
    version = version_of(release)
    assert {key for key, raw in found["keys"].items()} == {
        key for key, spans in DEFINITIONS.items() if definition_in(spans, version) is not None
    }
    for key, raw in found["keys"].items():
        expected = definition_in(DEFINITIONS[key], version)
        assert expected is not None
        assert raw["type"] == expected.type, key
        assert [tuple(each) for each in raw.get("ranges", [])] == list(expected.ranges), key
        assert sorted(raw.get("choices", [])) == list(expected.choices), key
    known = {name for name, since in FORMAT_VERSIONS.items() if since <= version}
    assert set(found["format_versions"]) == known
    newest = {int(api): each for api, each in found["api_versions"].items()}
    assert API_VERSIONS[version].items() <= newest.items()


def definition_in(spans: Sequence[DefinedSince], version: KafkaVersion) -> Definition | None:
    return next((s.definition for s in reversed(spans) if s.since <= version), None)
