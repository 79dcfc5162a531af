"""``regent sample``: a snapshot and the offsets of all logs, appended to a history.

It needs no Kubernetes, writes nothing to the cluster, and does not ask who the controller is.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from regent.controller.view import ClusterView
from regent.model.cluster import Broker
from regent.model.errors import ConfigurationError, MalformedZNodeError
from regent.model.partition import TopicPartition
from regent.network.log_dirs import ask_log_dirs
from regent.network.log_offsets import ask_log_offsets
from regent.network.settings import ChannelSettings
from regent.planning.sampling import sample_of
from regent.planning.snapshotting import snapshot_of
from regent.status.reader import ClusterReader, open_cluster
from regent.status.snapshot import ReadView, SnapshotStatus, read_view, setting_in
from regent.zk_data import paths
from regent.zk_data.cluster import decode_cluster_id
from regent.zk_data.permitted_reads import UnreadableZNode, may_not_be_read
from regent.zookeeper.settings import ZooKeeperSettings
from regent_rebalance.errors import InvalidInputError
from regent_rebalance.samples import LeftOut, Sample, with_rates

if TYPE_CHECKING:
    from regent_rebalance.workspace import Appended

_POLICY: Final = "cleanup.policy"
_DEFAULT_POLICY: Final = "log.cleanup.policy"


@dataclass(frozen=True, slots=True)
class TakenSample:
    """A sample, and what of the cluster is not in it.

    Attributes:
        remarks: What is not known, a sentence each.
        problems: Brokers, topics and partitions that could not be read, each with the reason.
    """

    sample: Sample
    remarks: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def exit_status(self) -> SnapshotStatus:
        """What a script has to know first."""
        if self.problems:
            return SnapshotStatus.UNREADABLE_ZNODES
        is_complete = all(
            None not in (each.log_start_offset, each.log_end_offset, *each.sizes)
            for each in self.sample.partitions
        )
        return SnapshotStatus.COMPLETE if is_complete else SnapshotStatus.SIZES_MISSING


def take_sample(zookeeper: ZooKeeperSettings, brokers: ChannelSettings) -> TakenSample:
    """Read the cluster.

    Raises:
        ConfigurationError: The chroot does not exist, or hardly anything below it may be read.
        MalformedZNodeError: Brokers, topics or the cluster's id cannot be read. A broker without
            replicas is left out.
        ZooKeeperUnavailableError: No server answered.
    """
    return asyncio.run(_take(zookeeper, brokers))


async def _take(zookeeper: ZooKeeperSettings, channels: ChannelSettings) -> TakenSample:
    moment = round(datetime.datetime.now(datetime.UTC).timestamp() * 1000)
    async with open_cluster(zookeeper) as reader:
        cluster = await _cluster_id(reader)
        read = await read_view(reader)
        view = read.view
        compacted, remarks = await _compacted(reader, tuple(view.topics))
    answers = await ask_log_dirs(tuple(view.brokers.values()), channels)
    offsets = await ask_log_offsets(_led(view), channels)
    snapshot = snapshot_of(view, answers)
    sample = sample_of(snapshot, view, offsets, compacted, cluster=cluster, moment=moment)
    return TakenSample(
        dataclasses.replace(sample, left_out=left_out_of(read)),
        (*snapshot.remarks, *offsets.unknown, *remarks),
        read.problems,
    )


def append(
    sample: Sample, workspace: str, *, keep: int | None, rates: tuple[str, bytes] | None
) -> Appended:
    """Append a sample to a history.

    Args:
        workspace: A folder, or a URL.
        keep: Milliseconds for which days are kept; None: for ever.
        rates: Name and content of a file with measured rates.

    Raises:
        ConfigurationError: pyarrow is not installed; the rates or the workspace cannot be used.
    """
    try:
        from regent_rebalance.workspace import Workspace

        if rates is not None:
            sample = with_rates(sample, rates[1], source=rates[0])
        return Workspace(workspace).append(sample, keep=keep)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"a history needs the package {error.name}: pip install 'regent[history]'"
        ) from error
    except InvalidInputError as error:
        raise ConfigurationError(str(error)) from error


async def _cluster_id(reader: ClusterReader) -> str:
    (node,) = await reader.get_data([paths.CLUSTER_ID])
    if node is None:
        raise ConfigurationError(
            f"there is no {paths.CLUSTER_ID} in ZooKeeper: no broker has been started there yet"
        )
    if isinstance(node, UnreadableZNode):
        raise may_not_be_read(paths.CLUSTER_ID)
    return decode_cluster_id(node.data)


async def _compacted(
    reader: ClusterReader, topics: Sequence[str]
) -> tuple[dict[str, bool], tuple[str, ...]]:
    """Whether topics are compacted, as far as ZooKeeper has it, and what could not be read."""
    remarks: list[str] = []
    sources = [paths.broker_config(None), *map(paths.topic_config, topics)]
    names = [_DEFAULT_POLICY, *[_POLICY] * len(topics)]
    policies: list[str | None] = []
    nodes = await reader.get_data(sources)
    for path, name, node in zip(sources, names, nodes, strict=True):
        try:
            policies.append(setting_in(path, name, node) or "")
        except MalformedZNodeError as error:
            policies.append(None)
            remarks.append(f"it is not known whether topics are compacted: {error}")
    default, *own = policies
    found = {
        topic: default if policy == "" else policy
        for topic, policy in zip(topics, own, strict=True)
    }
    known = {topic: policy for topic, policy in found.items() if policy is not None}
    return {topic: "compact" in policy for topic, policy in known.items()}, tuple(remarks)


def left_out_of(read: ReadView) -> list[LeftOut]:
    """What could not be read, as a sample names it."""
    return [LeftOut(part.topic, _number(part.partition), part.reason) for part in read.left_out]


def _number(partition: str | None) -> int | None:
    """A partition's number, None if what the topic's node has instead is none."""
    if partition is None or re.fullmatch(r"\d{1,9}", partition, re.ASCII) is None:
        return None
    return int(partition)


def _led(view: ClusterView) -> list[tuple[Broker, list[TopicPartition]]]:
    """Live brokers with the partitions that they lead."""
    led: dict[int, list[TopicPartition]] = defaultdict(list)
    for name, topic in sorted(view.topics.items()):
        for partition in topic.partitions:
            if not topic.is_being_deleted:
                led[partition.leader].append(TopicPartition(name, partition.partition))
    return [
        (broker, led[broker_id])
        for broker_id, broker in sorted(view.brokers.items())
        if broker_id in led
    ]
