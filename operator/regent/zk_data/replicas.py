"""Where the replicas of a Regent are found: an ephemeral node for each, and their queue.

Each replica has one session, which owns its node here, its place in the election among the
replicas, and ``/controller`` while it leads. Kafka knows none of this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from regent.model.cluster import Address
from regent.model.replica import ReplicaPresence
from regent.zk_data.decoding import Int32, json_decoder, json_object

_SEQUENCE_LENGTH: Final = 10
_UINT64_MAX: Final = 0xFFFF_FFFF_FFFF_FFFF

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
_Port = Annotated[int, msgspec.Meta(gt=0, lt=65_536)]


class _Presence(msgspec.Struct, rename="camel"):
    instance: _Name
    controller_id: Int32
    host: _Name
    port: _Port


_decode = json_decoder(_Presence)


def presence_path(election_path: str) -> str:
    """Parent of the replicas' nodes. Beside their election, whose children are its queue."""
    return f"{election_path}-presence"


def presence_name(session_id: int) -> str:
    """The name of the node of the replica that has a session."""
    return f"{session_id & _UINT64_MAX:016x}"


def presence_node(election_path: str, session_id: int) -> str:
    """Its path."""
    return f"{presence_path(election_path)}/{presence_name(session_id)}"


def decode_presence(path: str, data: bytes) -> ReplicaPresence:
    """The registration of a replica.

    Raises:
        MalformedZNodeError: If the node has none.
    """
    found = _decode(path, data)
    return ReplicaPresence(found.instance, found.controller_id, Address(found.host, found.port))


def encode_presence(presence: ReplicaPresence) -> bytes:
    """The content of a replica's node."""
    return json_object(
        [
            ("version", 1),
            ("instance", presence.instance),
            ("controllerId", presence.controller_id),
            ("host", presence.address.host),
            ("port", presence.address.port),
        ]
    )


def queue_order(children: Iterable[str]) -> list[str]:
    """Names of the contenders' nodes in the election among the replicas, the first in line first.

    The order is that of kazoo's lock recipe: by the number that ZooKeeper has appended.
    """
    contenders = [name for name in children if name[-_SEQUENCE_LENGTH:].isdigit()]
    return sorted(contenders, key=lambda name: name[-_SEQUENCE_LENGTH:])
