"""Markers of topics to be deleted: ``/admin/delete_topics/<topic>``.

Kafka's controllers read no data there. Regent notes which topic is meant: a topic that was created
again under the same name, before the marker was written, stays.
"""

from __future__ import annotations

import msgspec

from regent.zk_data.decoding import json_object


class _Marker(msgspec.Struct):
    version: int
    czxid: int


def encode_deletion_marker(czxid: int) -> bytes:
    """The data of a marker.

    Args:
        czxid: Transaction that created the node of the topic that is meant; 0: not known.
    """
    return json_object([("version", 1), ("czxid", czxid)]) if czxid else b""


def decode_deletion_marker(data: bytes) -> int:
    """Return the transaction that created the node of the intended topic; 0: the topic with that
    name, as in markers of Kafka's tools, and in malformed markers."""
    try:
        return msgspec.json.decode(data, type=_Marker).czxid
    except msgspec.DecodeError:
        return 0
