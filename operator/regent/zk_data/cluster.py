"""Identity of the cluster: ``/cluster/id``."""

from __future__ import annotations

import msgspec

from regent.zk_data import paths
from regent.zk_data.decoding import json_decoder, json_object


class _ClusterId(msgspec.Struct):
    id: str


_decode = json_decoder(_ClusterId)


def decode_cluster_id(data: bytes) -> str:
    """The cluster id that the first broker chose: 22 characters of base64.

    Raises:
        MalformedZNodeError: If there is none.
    """
    return _decode(paths.CLUSTER_ID, data).id


def encode_cluster_id(cluster_id: str) -> bytes:
    """Inverse of :func:`decode_cluster_id`. The version is a string in Kafka, too."""
    return json_object([("version", "1"), ("id", cluster_id)])
