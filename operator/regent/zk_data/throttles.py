"""What Regent throttles while it moves partitions: ``/regent/throttles``.

Kafka's configurations do not say who has set a throttle. These nodes do: they have what is Regent's
own in them, so that exactly this is removed. Kafka's controllers neither read nor remove them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from regent.zk_data.decoding import BrokerId, PartitionId, json_decoder, json_object

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
THROTTLED_REPLICAS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
"""Configurations of a topic (KIP-73): replicas as ``partition:broker``, or ``*``."""

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
"""Configurations of a broker (KIP-73): bytes a second for all throttled replicas together."""

THROTTLES: Final = "/regent/throttles"
THROTTLED_TOPICS: Final = f"{THROTTLES}/topics"
THROTTLED_BROKERS: Final = f"{THROTTLES}/brokers"
PARENTS: Final = ("/regent", THROTTLES, THROTTLED_TOPICS, THROTTLED_BROKERS)
"""To be created, in this order, before the first node."""

Rate = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
"""Bytes a second."""


class PartitionThrottle(msgspec.Struct, frozen=True):
    """How the copies of one partition are throttled.

    Attributes:
        leaders: Brokers that may send them.
        followers: Brokers that receive them.
    """

    rate: Rate
    leaders: tuple[BrokerId, ...]
    followers: tuple[BrokerId, ...]


class TopicThrottle(msgspec.Struct, frozen=True):
    """What is throttled of a topic.

    Attributes:
        czxid: Transaction that created the topic node, 0 if not known: a topic that is created
            again has none of these entries.
        partitions: Partitions by index.
        leader_replicas: Entries of :data:`LEADER_REPLICAS` that are Regent's.
        follower_replicas: Entries of :data:`FOLLOWER_REPLICAS` that are Regent's.
    """

    czxid: int = 0
    partitions: Mapping[PartitionId, PartitionThrottle] = {}
    leader_replicas: tuple[str, ...] = ()
    follower_replicas: tuple[str, ...] = ()


class BrokerThrottle(msgspec.Struct, frozen=True):
    """Rates of a broker. In a node: those that are Regent's; None: not Regent's."""

    leader_rate: Rate | None = None
    follower_rate: Rate | None = None


class _TopicNode(msgspec.Struct):
    czxid: int
    partitions: dict[PartitionId, PartitionThrottle]
    leader_replicas: tuple[str, ...]
    follower_replicas: tuple[str, ...]


_decode_topic = json_decoder(_TopicNode)
_decode_broker = json_decoder(BrokerThrottle)


def throttled_topic(topic: str) -> str:
    """The node of a topic."""
    return f"{THROTTLED_TOPICS}/{topic}"


def throttled_broker(broker_id: int) -> str:
    """The node of a broker."""
    return f"{THROTTLED_BROKERS}/{broker_id}"


def encode_topic_throttle(throttle: TopicThrottle) -> bytes:
    """Content of a topic's node, version 1."""
    return json_object([("version", 1), *msgspec.structs.asdict(throttle).items()])


def decode_topic_throttle(path: str, data: bytes) -> TopicThrottle:
    """Inverse of :func:`encode_topic_throttle`.

    Raises:
        MalformedZNodeError: If the node does not decode.
    """
    node = _decode_topic(path, data)
    return TopicThrottle(node.czxid, node.partitions, node.leader_replicas, node.follower_replicas)


def encode_broker_throttle(throttle: BrokerThrottle) -> bytes:
    """Content of a broker's node, version 1."""
    return json_object([("version", 1), *msgspec.structs.asdict(throttle).items()])


def decode_broker_throttle(path: str, data: bytes) -> BrokerThrottle:
    """Inverse of :func:`encode_broker_throttle`.

    Raises:
        MalformedZNodeError: If the node does not decode.
    """
    return _decode_broker(path, data)
