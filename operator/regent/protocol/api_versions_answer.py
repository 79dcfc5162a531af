"""The server's answer to ApiVersions: what it serves (KIP-35, KIP-511, KIP-584)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode

from regent.protocol.api_versions import VersionRange
from regent.protocol.entity_reader import element_class
from regent.protocol.served_apis import API_VERSIONS, Api
from regent.protocol.server_codec import Request, ServerCodec, UnsupportedRequestError

_PRODUCE_KEY: Final = 0
_PRODUCE_VERSIONS: Final = VersionRange(0, 9)
"""Listed, and not served: the network thread of an older Java client (1.1 and 2.4; no more in 2.8)
ends if a server lacks it, whatever the client wants. It is sent to leaders of partitions only."""

_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_THROTTLED_SINCE: Final = 1
_FLEXIBLE_SINCE: Final = 3


class FeatureRange(NamedTuple):
    """A feature and its lowest and highest version."""

    name: str
    lowest: int
    highest: int


class Features(NamedTuple):
    """Features of the cluster.

    Attributes:
        supported: What this server supports.
        finalized: What is in force in the whole cluster.
        finalized_epoch: Version of that; -1 if it is not known.
    """

    supported: Sequence[FeatureRange] = ()
    finalized: Sequence[FeatureRange] = ()
    finalized_epoch: int = -1


NO_FEATURES: Final = Features()


def listed_versions(apis: Mapping[int, Api]) -> Mapping[int, VersionRange]:
    """What clients read of the APIs that are served."""
    served = {key: VersionRange(api.lowest, api.highest) for key, api in apis.items()}
    return {_PRODUCE_KEY: _PRODUCE_VERSIONS} | served


def unsupported_answer(codec: ServerCodec, error: UnsupportedRequestError) -> bytes | None:
    """Answer to a version of ApiVersions that is not served: version 0, with the range that is
    (KIP-511). Nothing else that is not supported has an answer."""
    if error.header.api_key != API_VERSIONS.key:
        return None
    versions = VersionRange(API_VERSIONS.lowest, API_VERSIONS.highest)
    listed = _answer(0, {API_VERSIONS.key: versions}, error=ErrorCode.unsupported_version)
    return codec.encode(error.header, listed)


def api_versions_answer(
    request: Request, listed: Mapping[int, VersionRange], features: Features = NO_FEATURES
) -> Any:
    """Answer to an ApiVersions request.

    INVALID_REQUEST without a list, as Kafka's, if the client does not name its software rightly.

    Args:
        listed: See :func:`listed_versions`.
    """
    version, entity = request.header.api_version, request.entity
    if version >= _FLEXIBLE_SINCE and not (
        _SOFTWARE_NAME.fullmatch(entity.client_software_name)
        and _SOFTWARE_NAME.fullmatch(entity.client_software_version)
    ):
        return _answer(version, {}, error=ErrorCode.invalid_request)
    return _answer(version, listed, features=features)


def _answer(
    version: int,
    listed: Mapping[int, VersionRange],
    *,
    error: ErrorCode = ErrorCode.none,
    features: Features = NO_FEATURES,
) -> Any:
    kind = API_VERSIONS.responses[version]
    entry = element_class(kind, "api_keys")
    values: dict[str, Any] = {
        "error_code": error,
        "api_keys": tuple(
            entry(api_key=key, min_version=versions.lowest, max_version=versions.highest)
            for key, versions in listed.items()
        ),
    }
    if version >= _THROTTLED_SINCE:
        values["throttle_time"] = datetime.timedelta(0)
    if version >= _FLEXIBLE_SINCE:
        values |= _feature_values(kind, features)
    return kind(**values)


def _feature_values(kind: type[Any], features: Features) -> dict[str, Any]:
    supported = element_class(kind, "supported_features")
    finalized = element_class(kind, "finalized_features")
    return {
        "supported_features": tuple(
            supported(name=each.name, min_version=each.lowest, max_version=each.highest)
            for each in features.supported
        ),
        "finalized_features_epoch": features.finalized_epoch,
        "finalized_features": tuple(
            finalized(name=each.name, min_version_level=each.lowest, max_version_level=each.highest)
            for each in features.finalized
        ),
    }
