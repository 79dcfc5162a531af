"""Which version of Kafka a broker runs, by what it answers to ApiVersions."""

from __future__ import annotations

from collections.abc import Mapping

from regent.protocol.api_versions import VersionRange
from regent.protocol.kafka_api_versions import API_VERSIONS


def possible_versions(supported: Mapping[int, VersionRange]) -> tuple[tuple[int, int], ...]:
    """Versions (major, minor) that a broker may run, in ascending order.

    That is the newest known version all of whose requests the broker understands, with the versions
    that have the same requests. A version that is newer than all known counts as
    the newest known, one that is older than all known as the oldest.
    """
    known = list(API_VERSIONS)
    understood = [version for version in known if _understands(supported, API_VERSIONS[version])]
    newest = understood[-1] if understood else known[0]
    return tuple(version for version in known if API_VERSIONS[version] == API_VERSIONS[newest])


def _understands(supported: Mapping[int, VersionRange], wanted: Mapping[int, int]) -> bool:
    return all(
        api in supported and supported[api].highest >= version for api, version in wanted.items()
    )
