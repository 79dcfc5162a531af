"""Identity of the cluster: ``/cluster/id``."""

from __future__ import annotations

import msgspec

from regent.zk_data import paths
from regent.zk_data.decoding import json_decoder


class _ClusterId(msgspec.Struct):
    id: str


_decode = json_decoder(_ClusterId)


def decode_cluster_id(data: bytes) -> str:
    """The cluster id that the first broker chose: 22 characters of base64.

    Raises:
        MalformedZNodeError: If there is none.
    """
    return _decode(paths.CLUSTER_ID, data).id
