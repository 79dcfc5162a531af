"""Finalized features: ``/feature`` (KIP-584). Always without features in ZooKeeper mode."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from regent.model.errors import MalformedZNodeError
from regent.zk_data import paths
from regent.zk_data.decoding import Int32, json_decoder, json_object

VERSION_1: Final = 1
"""Below inter.broker.protocol.version 3.3-IV0."""
VERSION_2: Final = 2


class FeatureStatus(enum.IntEnum):
    """Whether features are finalized at all: enabled from inter.broker.protocol.version 2.7 on."""

    DISABLED = 0
    ENABLED = 1


class FeatureZNode(msgspec.Struct, frozen=True):
    """Content of ``/feature``.

    Attributes:
        features: Finalized maximum version level by feature name.
    """

    version: int
    status: FeatureStatus
    features: dict[str, int] = {}


class _Feature(msgspec.Struct):
    version: Int32
    status: FeatureStatus
    features: dict[str, dict[str, int]] | None = None


_decode = json_decoder(_Feature)


def decode_feature(data: bytes) -> FeatureZNode:
    """Finalized features, versions 1 and 2.

    Raises:
        MalformedZNodeError: If the node does not decode or has another version.
    """
    decoded = _decode(paths.FEATURE, data)
    if decoded.version not in (VERSION_1, VERSION_2):
        raise MalformedZNodeError(paths.FEATURE, f"unsupported version {decoded.version}")
    features: dict[str, int] = {}
    for name, levels in (decoded.features or {}).items():
        if "max_version_level" not in levels:
            raise MalformedZNodeError(paths.FEATURE, f"feature {name[:100]!r} without a level")
        features[name] = levels["max_version_level"]
    return FeatureZNode(decoded.version, decoded.status, features)


def encode_feature(feature: FeatureZNode) -> bytes:
    """Inverse of :func:`decode_feature`. Version 1 has a minimum level too, which is always 1."""
    low = {"min_version_level": 1} if feature.version == VERSION_1 else {}
    return json_object(
        [
            (
                "features",
                {n: {**low, "max_version_level": level} for n, level in feature.features.items()},
            ),
            ("version", feature.version),
            ("status", int(feature.status)),
        ]
    )
