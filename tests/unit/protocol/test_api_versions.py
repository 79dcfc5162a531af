from __future__ import annotations

import pytest

from regent.protocol import describe_log_dirs
from regent.protocol.api_versions import (
    LATEST_IV,
    OLDEST,
    ProtocolVersion,
    UnsupportedBrokerError,
    VersionRange,
    choose_version,
    cluster_protocol_version,
    parse_protocol_version,
    version_for,
)

LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA = 4, 5, 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.6", (2, 6, LATEST_IV)),
        ("2.6-IV0", (2, 6, 0)),
        ("3.9-IV0", (3, 9, 0)),
        ("2.8.2", (2, 8, LATEST_IV)),
        (" 1.1-IV0 ", (1, 1, 0)),
        ("0.11.0-IV2", (0, 11, 2)),
        ("0.10.2", (0, 10, LATEST_IV)),
    ],
)
def test_parse(text: str, expected: tuple[int, int, int]) -> None:
    assert parse_protocol_version(text) == expected


@pytest.mark.parametrize("text", ["", "2", "2.x", "2.6-IV", "v2.6", "2.6-iv0", "2.6-IV0-1", "-1.2"])
def test_what_is_not_a_version(text: str) -> None:
    with pytest.raises(ValueError, match="is not an inter"):
        parse_protocol_version(text)


def test_versions_print_as_kafka_writes_them() -> None:
    assert [str(parse_protocol_version(text)) for text in ("2.4-IV1", "2.4")] == ["2.4-IV1", "2.4"]


@pytest.mark.parametrize(
    ("protocol", "versions"),
    [  # LeaderAndIsr, UpdateMetadata, StopReplica
        ("0.11.0-IV2", (1, 4, 0)),
        ("2.1-IV2", (1, 4, 0)),
        ("2.2-IV0", (2, 5, 1)),
        ("2.3-IV1", (2, 5, 1)),
        ("2.4-IV0", (3, 5, 1)),
        ("2.4-IV1", (4, 6, 2)),
        ("2.5-IV0", (4, 6, 2)),
        ("2.6-IV0", (4, 6, 3)),
        ("2.8-IV0", (4, 6, 3)),
        ("2.8-IV1", (5, 7, 3)),
        ("3.1-IV0", (5, 7, 3)),
        ("3.2-IV0", (6, 7, 3)),
        ("3.3-IV3", (6, 7, 3)),
        ("3.4-IV0", (7, 8, 4)),
        ("3.9-IV0", (7, 8, 4)),
    ],
)
def test_the_version_that_kafka_sends(protocol: str, versions: tuple[int, int, int]) -> None:
    parsed = parse_protocol_version(protocol)
    apis = (LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA)
    assert tuple(version_for(api, parsed) for api in apis) == versions


@pytest.mark.parametrize(
    ("protocol", "highest", "version"), [("1.1", 4, 0), ("2.6", 0, 0), ("2.0", 4, 1), ("3.9", 4, 1)]
)
def test_version_of_log_directories(protocol: str, highest: int, version: int) -> None:
    asked = choose_version(
        describe_log_dirs.API_KEY,
        protocol=parse_protocol_version(protocol),
        supported={describe_log_dirs.API_KEY: VersionRange(0, highest)},
    )
    assert asked == version


def test_what_the_broker_understands_is_a_cap() -> None:
    new = ProtocolVersion(3, 9)

    def chosen(lowest: int, highest: int) -> int:
        supported = {UPDATE_METADATA: VersionRange(lowest, highest)}
        return choose_version(UPDATE_METADATA, protocol=new, supported=supported)

    assert chosen(0, 8) == 8
    assert chosen(0, 6) == 6
    assert chosen(4, 4) == 4
    for lowest, highest in ((0, 3), (9, 10)):
        with pytest.raises(UnsupportedBrokerError, match="of API 6"):
            chosen(lowest, highest)
    with pytest.raises(UnsupportedBrokerError, match="ZooKeeper"):
        choose_version(UPDATE_METADATA, protocol=new, supported={})


def test_the_lowest_version_counts() -> None:
    known = {1: ProtocolVersion(3, 9), 2: ProtocolVersion(2, 6), 3: ProtocolVersion(3, 4)}
    assert cluster_protocol_version(known, unknown={}) == (2, 6, 0)


@pytest.mark.parametrize(
    ("known", "unknown", "expected"),
    [
        ([], [], OLDEST),
        ([], [5, 5], (2, 7, 0)),
        ([], [4], OLDEST),
        ([], [5, 4], OLDEST),
        ([], [4, 5], OLDEST),
        ([(3, 9)], [5], (3, 9, 0)),
        ([(3, 9)], [4], (2, 6, 0)),
        ([(3, 9)], [5, 4], (2, 6, 0)),
        ([(2, 4)], [4], (2, 4, 0)),
        ([(2, 4)], [5], (2, 4, 0)),
    ],
)
def test_a_broker_that_does_not_tell_counts_with_its_registration(
    known: list[tuple[int, int]], unknown: list[int], expected: tuple[int, int, int]
) -> None:
    versions = {n: ProtocolVersion(*version) for n, version in enumerate(known)}
    registrations = {10 + n: version for n, version in enumerate(unknown)}
    assert cluster_protocol_version(versions, unknown=registrations) == expected
