from __future__ import annotations

import pytest

from regent.protocol.api_versions import VersionRange
from regent.protocol.broker_versions import possible_versions
from regent.protocol.kafka_api_versions import API_VERSIONS

ALIKE = {(3, 5): ((3, 5), (3, 6)), (3, 6): ((3, 5), (3, 6))}
"""Versions that serve the same requests."""


def answer(version: tuple[int, int]) -> dict[int, VersionRange]:
    return {api: VersionRange(0, newest) for api, newest in API_VERSIONS[version].items()}


@pytest.mark.parametrize("version", API_VERSIONS)
def test_a_version_is_known_by_its_requests(version: tuple[int, int]) -> None:
    assert possible_versions(answer(version)) == ALIKE.get(version, (version,))


def test_a_later_patch_release_is_taken_for_its_line() -> None:
    supported = answer((3, 3))
    supported[1] = VersionRange(0, supported[1].highest + 1)
    supported[999] = VersionRange(0, 0)
    assert possible_versions(supported) == ((3, 3),)


def test_a_newer_version_counts_as_the_newest_known() -> None:
    newest = max(API_VERSIONS)
    supported = {api: VersionRange(0, r.highest + 1) for api, r in answer(newest).items()}
    assert possible_versions(supported) == (newest,)


def test_an_older_version_counts_as_the_oldest_known() -> None:
    assert possible_versions({}) == (min(API_VERSIONS),)
