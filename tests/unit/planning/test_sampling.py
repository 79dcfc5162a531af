"""From what the cluster says to a sample: what it does not say is None."""

from __future__ import annotations

import uuid

from regent.controller.view import ClusterView, PartitionHealth, PartitionView, TopicView
from regent.model.cluster import Broker
from regent.model.log_dirs import LogDirs
from regent.model.log_offsets import LogOffsets
from regent.model.partition import TopicPartition
from regent.planning.sampling import sample_of
from regent.planning.snapshotting import snapshot_of
from regent_rebalance.samples import BrokerSample, PartitionSample

ID = uuid.UUID(int=1)


def partition(number: int, replicas: tuple[int, ...], leader: int) -> PartitionView:
    return PartitionView(number, PartitionHealth.ONLINE, replicas, leader, 0, replicas)


def test_what_nobody_tells_is_none() -> None:
    topics = {
        "new": TopicView("new", ID, (partition(0, (1, 2), 1), partition(1, (2,), -1))),
        "old": TopicView("old", None, (partition(0, (1,), 1),), czxid=77),
    }
    view = ClusterView(brokers={1: Broker(1, 1, (), "a")}, topics=topics)
    log_dirs = LogDirs({"new": {0: 4096}}, capacity=10_000)
    offsets = LogOffsets(
        {TopicPartition("new", 0): 5}, {TopicPartition("new", 0): 9, TopicPartition("old", 0): 7}
    )
    sample = sample_of(
        snapshot_of(view, {1: log_dirs}),
        view,
        offsets,
        {"new": True},
        cluster="c",
        moment=7,
    )
    assert (sample.cluster, sample.moment) == ("c", 7)
    assert sample.brokers == [
        BrokerSample(1, "a", True, 10_000),
        BrokerSample(2, None, False, None),
    ]
    assert sample.partitions == [
        PartitionSample("new", 0, "AAAAAAAAAAAAAAAAAAAAAQ", 1, (1, 2), (4096, None), 5, 9, True),
        PartitionSample("new", 1, "AAAAAAAAAAAAAAAAAAAAAQ", None, (2,), (None,), compacted=True),
        PartitionSample("old", 0, None, 1, (1,), (None,), None, 7, None, created=77),
    ]
