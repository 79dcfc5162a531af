"""``/admin/preferred_replica_election``: partitions whose preferred replica is to lead.

Source: ``PreferredReplicaElectionZNode`` in ``kafka.zk.ZkData``. Kafka's tools write it up to 2.8.
"""

from __future__ import annotations

import msgspec

from regent.model.partition import TopicPartition
from regent.zk_data.decoding import PartitionId, json_decoder


class _Partition(msgspec.Struct):
    topic: str
    partition: PartitionId


class _PreferredReplicaElection(msgspec.Struct):
    partitions: list[_Partition]


_decode = json_decoder(_PreferredReplicaElection)


def decode_preferred_replica_election(path: str, data: bytes) -> tuple[TopicPartition, ...]:
    """The listed partitions, without repetitions. The version is not looked at, as in Kafka.

    Raises:
        MalformedZNodeError: If the request does not decode.
    """
    listed = _decode(path, data).partitions
    return tuple(dict.fromkeys(TopicPartition(p.topic, p.partition) for p in listed))
