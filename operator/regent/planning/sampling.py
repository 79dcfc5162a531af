"""From a snapshot and the offsets of its logs to a sample for the history (docs/history.md)."""

from __future__ import annotations

from collections.abc import Mapping

from regent.controller.view import ClusterView
from regent.model.log_offsets import LogOffsets
from regent.model.partition import TopicPartition
from regent.model.topic import topic_id_to_text
from regent.planning.snapshot import UNKNOWN, Snapshot, SnapshotPartition
from regent_rebalance.samples import BrokerSample, PartitionSample, Sample


def sample_of(
    snapshot: Snapshot,
    view: ClusterView,
    offsets: LogOffsets,
    compacted: Mapping[str, bool],
    *,
    cluster: str,
    moment: int,
) -> Sample:
    """The sample of a cluster. What the snapshot does not know is None in it.

    Args:
        snapshot: Of the same moment as ``view``.
        compacted: By topic, as far as it is known.
        cluster: Id of the Kafka cluster.
        moment: Milliseconds since 1970.
    """
    topic_ids = {
        name: None if topic.topic_id is None else topic_id_to_text(topic.topic_id)
        for name, topic in view.topics.items()
    }

    def sampled(partition: SnapshotPartition) -> PartitionSample:
        where = TopicPartition(partition.topic, partition.partition)
        return PartitionSample(
            topic=partition.topic,
            partition=partition.partition,
            topic_id=topic_ids[partition.topic],
            leader=_known(partition.leader),
            replicas=partition.replicas,
            sizes=tuple(map(_known, partition.sizes)),
            log_start_offset=offsets.start.get(where),
            log_end_offset=offsets.end.get(where),
            compacted=compacted.get(partition.topic),
            created=view.topics[partition.topic].czxid or None,
        )

    brokers = [
        BrokerSample(broker.id, broker.rack, broker.alive, broker.disk_bytes)
        for broker in snapshot.brokers
    ]
    return Sample(cluster, moment, brokers, [sampled(each) for each in snapshot.partitions])


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value
