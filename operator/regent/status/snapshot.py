"""``regent snapshot``: what ZooKeeper and the brokers say of a cluster, as a file for the planner.

It needs no Kubernetes, writes nothing to the cluster, and does not ask who the controller is.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from regent.controller.configs.min_insync_replicas import MIN_INSYNC_REPLICAS
from regent.controller.view import ClusterView, PartitionHealth, PartitionView, TopicView
from regent.model.cluster import Broker
from regent.model.errors import ConfigurationError, MalformedZNodeError
from regent.model.partition import NO_LEADER, LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.network.log_dirs import ask_log_dirs
from regent.network.settings import ChannelSettings
from regent.planning.snapshot import Snapshot
from regent.planning.snapshotting import snapshot_of
from regent.status.reader import ClusterReader, open_cluster
from regent.zk_data import paths
from regent.zk_data.brokers import decode_broker, is_controller_registration
from regent.zk_data.config import decode_entity_config
from regent.zk_data.operations import ZNode
from regent.zk_data.permitted_reads import UnreadableZNode, may_not_be_read
from regent.zk_data.topics import TopicZNode, decode_partition_state, decode_topic
from regent.zookeeper.settings import ZooKeeperSettings

PARQUET: Final = ".parquet"


class SnapshotStatus(enum.IntEnum):
    """Exit status of ``regent snapshot``, where a snapshot was taken."""

    COMPLETE = 0
    UNREADABLE_ZNODES = 6
    SIZES_MISSING = 9


@dataclass(frozen=True, slots=True)
class TakenSnapshot:
    """A snapshot, and what of the cluster is not in it.

    Attributes:
        problems: Brokers, topics and partitions that could not be read, each with the reason.
    """

    snapshot: Snapshot
    problems: tuple[str, ...]

    @property
    def exit_status(self) -> SnapshotStatus:
        """What a script has to know first."""
        if self.problems:
            return SnapshotStatus.UNREADABLE_ZNODES
        is_complete = self.snapshot.has_all_sizes
        return SnapshotStatus.COMPLETE if is_complete else SnapshotStatus.SIZES_MISSING


class LeftOutPart(NamedTuple):
    """A topic or a partition that could not be read.

    Attributes:
        partition: As the topic's node names it; None for the whole topic.
    """

    topic: str
    partition: str | None
    reason: str

    def __str__(self) -> str:
        if self.partition is None:
            return f"topic {self.topic} is left out: {self.reason}"
        return f"partition {self.topic}-{self.partition} is left out: {self.reason}"


@dataclass(frozen=True, slots=True)
class ReadView:
    """Brokers and topics as ZooKeeper has them, and what could not be read.

    Attributes:
        left_out: What is not in the view.
        unknown_leaders: Why partitions that are in the view have no leader there.
        unreadable_brokers: Why brokers without replicas are not in the view.
    """

    view: ClusterView
    left_out: tuple[LeftOutPart, ...]
    unknown_leaders: tuple[str, ...]
    unreadable_brokers: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """All of it, a sentence each."""
        return (*self.unreadable_brokers, *map(str, self.left_out), *self.unknown_leaders)


def take_snapshot(zookeeper: ZooKeeperSettings, brokers: ChannelSettings) -> TakenSnapshot:
    """Read the cluster.

    Raises:
        ConfigurationError: The chroot does not exist, or hardly anything below it may be read.
        MalformedZNodeError: Brokers or topics may not be listed, or the registration of a broker
            that has replicas cannot be read: a plan would take such a broker for dead.
        ZooKeeperUnavailableError: No server answered.
    """
    return asyncio.run(_take(zookeeper, brokers))


async def _take(zookeeper: ZooKeeperSettings, channels: ChannelSettings) -> TakenSnapshot:
    async with open_cluster(zookeeper) as reader:
        read = await read_view(reader)
        min_isr, remarks = await _min_isr(reader, tuple(read.view.topics))
    answers = await ask_log_dirs(tuple(read.view.brokers.values()), channels)
    snapshot = snapshot_of(read.view, answers, min_isr)
    return TakenSnapshot(
        dataclasses.replace(snapshot, remarks=(*snapshot.remarks, *remarks)), read.problems
    )


async def read_view(reader: ClusterReader) -> ReadView:
    """Brokers and topics as ZooKeeper has them.

    Raises:
        MalformedZNodeError: Brokers or topics may not be listed, or the registration of a broker
            that has replicas cannot be read.
    """
    left_out: list[LeftOutPart] = []
    unknown_leaders: list[str] = []
    brokers, unreadable = await _brokers(reader)
    topics = await _topics(reader, left_out, unknown_leaders)
    hosts = {b for topic in topics.values() for p in topic.partitions for b in p.replicas}
    for broker_id, error in unreadable.items():
        if broker_id in hosts:
            raise error
    return ReadView(
        ClusterView(brokers=brokers, topics=topics),
        tuple(left_out),
        tuple(unknown_leaders),
        tuple(
            f"broker {broker_id} is left out: {error}" for broker_id, error in unreadable.items()
        ),
    )


async def _brokers(
    reader: ClusterReader,
) -> tuple[dict[int, Broker], dict[int, MalformedZNodeError]]:
    """Registered brokers, and why others cannot be read."""
    children = await reader.children(paths.BROKER_IDS) or ()
    ids = sorted(i for child in children if (i := paths.broker_id_of(child)) is not None)
    nodes = await reader.get_data([paths.broker_id(i) for i in ids])
    found: dict[int, Broker] = {}
    unreadable: dict[int, MalformedZNodeError] = {}
    for broker_id, node in zip(ids, nodes, strict=True):
        if node is None or is_controller_registration(node):
            continue
        try:
            found[broker_id] = decode_broker(broker_id, node)
        except MalformedZNodeError as error:
            unreadable[broker_id] = error
    return found, unreadable


async def _topics(
    reader: ClusterReader, left_out: list[LeftOutPart], unknown_leaders: list[str]
) -> dict[str, TopicView]:
    deleted = frozenset(await reader.children(paths.DELETE_TOPICS) or ())
    names = sorted(await reader.children(paths.BROKER_TOPICS) or ())
    nodes = await reader.get_data([paths.topic(name) for name in names])
    found: dict[str, TopicZNode] = {}
    for name, node in zip(names, nodes, strict=True):
        if node is None:
            continue  # it has gone meanwhile
        try:
            znode = decode_topic(name, node.data, czxid=node.czxid)
        except MalformedZNodeError as error:
            left_out.append(LeftOutPart(name, None, str(error)))
            continue
        left_out += [LeftOutPart(name, partition, why) for partition, why in znode.problems.items()]
        found[name] = znode
    partitions = [
        TopicPartition(name, p) for name, znode in found.items() for p in znode.assignments
    ]
    states = await _states(reader, partitions, unknown_leaders)
    return {
        name: TopicView(
            name=name,
            topic_id=znode.topic_id,
            partitions=tuple(
                _partition(number, assignment, states.get(TopicPartition(name, number)))
                for number, assignment in znode.assignments.items()
            ),
            is_being_deleted=name in deleted,
            czxid=znode.czxid,
        )
        for name, znode in found.items()
    }


async def _min_isr(
    reader: ClusterReader, topics: Sequence[str]
) -> tuple[dict[str, int], tuple[str, ...]]:
    """``min.insync.replicas`` of topics, as far as ZooKeeper has it, and what could not be read.

    A topic's own value, else the cluster's dynamic default. What brokers have in their files is not
    known here.
    """
    sources = [paths.broker_config(None), *map(paths.topic_config, topics)]
    remarks: list[str] = []
    values: list[int | None] = []
    for path, node in zip(sources, await reader.get_data(sources), strict=True):
        try:
            values.append(_min_isr_in(path, node))
        except MalformedZNodeError as error:
            values.append(None)
            remarks.append(f"min.insync.replicas is not known: {error}")
    default, *own = values
    found = {
        topic: default if value is None else value for topic, value in zip(topics, own, strict=True)
    }
    return {topic: value for topic, value in found.items() if value is not None}, tuple(remarks)


def _min_isr_in(path: str, node: ZNode | None) -> int | None:
    text = setting_in(path, MIN_INSYNC_REPLICAS, node)
    if text is not None and not text.strip().isdecimal():
        raise MalformedZNodeError(path, f"{MIN_INSYNC_REPLICAS} {text!r} is no number")
    return None if text is None else int(text)


def setting_in(path: str, name: str, node: ZNode | None) -> str | None:
    """A setting in a node with dynamic ones; None if it is not set there.

    Raises:
        MalformedZNodeError: The node may not be read, or does not decode.
    """
    if isinstance(node, UnreadableZNode):
        raise may_not_be_read(path)
    return None if node is None else decode_entity_config(path, node.data).get(name)


async def _states(
    reader: ClusterReader, partitions: Sequence[TopicPartition], unknown_leaders: list[str]
) -> dict[TopicPartition, LeaderAndIsr]:
    nodes = await reader.get_data([paths.partition_state(tp) for tp in partitions])
    states: dict[TopicPartition, LeaderAndIsr] = {}
    for tp, node in zip(partitions, nodes, strict=True):
        if node is None:
            continue  # it never had a leader
        try:
            states[tp] = _state(tp, node)
        except MalformedZNodeError as error:
            unknown_leaders.append(f"the leader of {tp} is not known: {error}")
    return states


def _state(tp: TopicPartition, node: ZNode) -> LeaderAndIsr:
    path = paths.partition_state(tp)
    if isinstance(node, UnreadableZNode):
        raise may_not_be_read(path)
    return decode_partition_state(path, node)


def _partition(
    number: int, assignment: ReplicaAssignment, state: LeaderAndIsr | None
) -> PartitionView:
    leader = NO_LEADER if state is None else state.leader
    return PartitionView(
        partition=number,
        state=PartitionHealth.OFFLINE if leader == NO_LEADER else PartitionHealth.ONLINE,
        replicas=assignment.replicas,
        leader=leader,
        leader_epoch=-1 if state is None else state.leader_epoch,
        isr=() if state is None else state.isr,
        adding_replicas=assignment.adding_replicas,
        removing_replicas=assignment.removing_replicas,
    )


def save(snapshot: Snapshot, path: Path) -> None:
    """Write a snapshot as JSON, or as Parquet if the name ends in .parquet. An existing file is
    replaced.

    Raises:
        ConfigurationError: The file cannot be written; or it is to be Parquet, and the planner's
            packages are not installed.
    """
    try:
        if path.suffix != PARQUET:
            path.write_bytes(snapshot.encode())
            return
        from regent_rebalance import files, json_files

        files.save_snapshot(json_files.decode_snapshot(snapshot.encode(), source=str(path)), path)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{path}: Parquet needs the package {error.name}: pip install 'regent[planner]', or "
            "choose another name than *.parquet for JSON"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error


def summary(snapshot: Snapshot) -> str:
    """What a snapshot has, in one line."""
    topics = len({partition.topic for partition in snapshot.partitions})
    replicas = sum(len(partition.replicas) for partition in snapshot.partitions)
    known = sum(size for each in snapshot.partitions for size in each.sizes if size >= 0)
    return (
        f"{len(snapshot.brokers)} brokers, {topics} topics, {len(snapshot.partitions)} partitions, "
        f"{replicas} replicas, {known:,} bytes"
    )
