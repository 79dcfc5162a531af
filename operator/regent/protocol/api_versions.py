"""Which version of a request to send: by inter.broker.protocol.version, capped by the broker.

Kafka's controller derives the version from inter.broker.protocol.version (IBP) alone, never from
what a broker could understand: a new enough LeaderAndIsr makes a broker persist topic ids, which
older brokers of the same cluster do not know. The table is that of Kafka's
``ControllerChannelManager``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from regent.model.errors import RegentError
from regent.protocol import describe_log_dirs, leader_and_isr, stop_replica, update_metadata


class ProtocolVersion(NamedTuple):
    """An inter.broker.protocol.version. Compares by age.

    Attributes:
        major: As in ``2`` of ``2.8-IV1``.
        minor: As in ``8``. Kafka's 0.x lines have a third number, which is left out.
        iv: Internal version, as in ``1``.
    """

    major: int
    minor: int
    iv: int = 0

    def __str__(self) -> str:
        release = f"{self.major}.{self.minor}"
        return release if self.iv == LATEST_IV else f"{release}-IV{self.iv}"


API_KEYS: Final = (leader_and_isr.API_KEY, stop_replica.API_KEY, update_metadata.API_KEY)
"""The requests of which a protocol version decides the version."""

LATEST_IV: Final = 99
"""Internal version of the short forms: ``2.8`` stands for the newest one of that line."""

OLDEST: Final = ProtocolVersion(1, 0)
"""What a broker counts with of which nothing is known: every supported broker understands it."""

LAST_WITH_ZOOKEEPER: Final = (3, 9)
"""The last line of brokers that run with ZooKeeper."""

_TEXT: Final = re.compile(r"(\d+)\.(\d+)(?:\.\d+)*(?:-IV(\d+))?")

_VERSIONS: Final[Mapping[int, tuple[tuple[ProtocolVersion, int], ...]]] = {
    leader_and_isr.API_KEY: (
        (ProtocolVersion(3, 4), 7),
        (ProtocolVersion(3, 2), 6),
        (ProtocolVersion(2, 8, 1), 5),
        (ProtocolVersion(2, 4, 1), 4),
        (ProtocolVersion(2, 4), 3),
        (ProtocolVersion(2, 2), 2),
        (ProtocolVersion(0, 0), 1),
    ),
    update_metadata.API_KEY: (
        (ProtocolVersion(3, 4), 8),
        (ProtocolVersion(2, 8, 1), 7),
        (ProtocolVersion(2, 4, 1), 6),
        (ProtocolVersion(2, 2), 5),
        (ProtocolVersion(0, 0), 4),
    ),
    stop_replica.API_KEY: (
        (ProtocolVersion(3, 4), 4),
        (ProtocolVersion(2, 6), 3),
        (ProtocolVersion(2, 4, 1), 2),
        (ProtocolVersion(2, 2), 1),
        (ProtocolVersion(0, 0), 0),
    ),
    # Not Kafka's table: a controller of Kafka sends none. The oldest one is marked as deprecated.
    describe_log_dirs.API_KEY: ((ProtocolVersion(2, 0), 1), (ProtocolVersion(0, 0), 0)),
}


class VersionRange(NamedTuple):
    """Versions of an API that a broker understands, both ends included."""

    lowest: int
    highest: int


class UnsupportedBrokerError(RegentError):
    """A broker that understands no version of a request that could be sent to it."""


def parse_protocol_version(text: str) -> ProtocolVersion:
    """Parse a value of inter.broker.protocol.version, such as ``2.6``, ``2.8-IV1`` or ``3.9.1``.

    Raises:
        ValueError: If the text is not a version.
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not an inter.broker.protocol.version such as 2.8 or 2.8-IV1")
    major, minor, iv = match.groups()
    return ProtocolVersion(int(major), int(minor), LATEST_IV if iv is None else int(iv))


def version_for(api_key: int, protocol: ProtocolVersion) -> int:
    """Version of a request that Kafka's own controller sends at ``protocol``.

    Brokers at less than 1.0 get the versions of 1.0: their binaries, which are newer than that,
    understand them.
    """
    return next(version for since, version in _VERSIONS[api_key] if protocol >= since)


def understands(protocol: ProtocolVersion, *, supported: Mapping[int, VersionRange]) -> bool:
    """Whether a broker knows the requests of a protocol version, by its answer to ApiVersions.

    One that has not answered yet may.
    """
    return all(
        version_for(api_key, protocol) <= known.highest
        for api_key in API_KEYS
        if (known := supported.get(api_key)) is not None
    )


def choose_version(
    api_key: int, *, protocol: ProtocolVersion, supported: Mapping[int, VersionRange]
) -> int:
    """Version to send to one broker.

    Args:
        api_key: LeaderAndIsr, UpdateMetadata, StopReplica or DescribeLogDirs.
        protocol: The cluster's lowest inter.broker.protocol.version.
        supported: The broker's answer to ApiVersions.

    Raises:
        UnsupportedBrokerError: If the broker understands none that fits.
    """
    oldest = _VERSIONS[api_key][-1][1]
    known = supported.get(api_key)
    if known is None:
        raise UnsupportedBrokerError(
            f"the broker does not list API {api_key}: it does not take part in ZooKeeper mode"
        )
    version = min(version_for(api_key, protocol), known.highest)
    if version < max(oldest, known.lowest):
        raise UnsupportedBrokerError(
            f"the broker understands versions {known.lowest} to {known.highest} of API {api_key}; "
            f"needed is {version_for(api_key, protocol)}, or an older one down to {oldest}"
        )
    return version


def cluster_protocol_version(
    known: Mapping[int, ProtocolVersion], *, unknown: Mapping[int, int]
) -> ProtocolVersion:
    """The lowest version over all brokers, where some are known only by their registration.

    Args:
        known: Versions of the brokers that have reported theirs.
        unknown: Registration version of each other broker. Registrations are written in version 5
            exactly from 2.7-IV0 on; that bounds the broker's version from below or from above.

    Returns:
        The minimum of what is known; :data:`OLDEST` if nothing is.
    """
    lowest = min(known.values(), default=None)
    before, since = ProtocolVersion(2, 6), ProtocolVersion(2, 7)
    for registration in unknown.values():
        if registration < 5 and (lowest is None or lowest > before):
            lowest = OLDEST if lowest is None else before
    if lowest is None:
        return since if unknown else OLDEST
    return lowest
