"""``regent snapshot``: what ZooKeeper and the brokers say of a cluster, as a file for the planner.

It needs no Kubernetes, writes nothing to the cluster, and does not ask who the controller is.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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
from regent.zk_data.operations import ZNode
from regent.zk_data.permitted_reads import UnreadableZNode, may_not_be_read
from regent.zk_data.topics import decode_partition_state, decode_topic
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
        problems: Topics and partitions that could not be read, each with the reason.
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


def take_snapshot(zookeeper: ZooKeeperSettings, brokers: ChannelSettings) -> TakenSnapshot:
    """Read the cluster.

    Raises:
        ConfigurationError: The chroot does not exist, or hardly anything below it may be read.
        MalformedZNodeError: Brokers or topics may not be listed, or a broker's registration cannot
            be read: a plan would take such a broker for dead.
        ZooKeeperUnavailableError: No server answered.
    """
    return asyncio.run(_take(zookeeper, brokers))


async def _take(zookeeper: ZooKeeperSettings, channels: ChannelSettings) -> TakenSnapshot:
    problems: list[str] = []
    async with open_cluster(zookeeper) as reader:
        brokers = await _brokers(reader)
        topics = await _topics(reader, problems)
    view = ClusterView(brokers=brokers, topics=topics)
    answers = await ask_log_dirs(tuple(brokers.values()), channels)
    return TakenSnapshot(snapshot_of(view, answers), tuple(problems))


async def _brokers(reader: ClusterReader) -> dict[int, Broker]:
    children = await reader.children(paths.BROKER_IDS) or ()
    ids = sorted(i for child in children if (i := paths.broker_id_of(child)) is not None)
    nodes = await reader.get_data([paths.broker_id(i) for i in ids])
    return {
        broker_id: decode_broker(broker_id, node)
        for broker_id, node in zip(ids, nodes, strict=True)
        if node is not None and not is_controller_registration(node)
    }


async def _topics(reader: ClusterReader, problems: list[str]) -> dict[str, TopicView]:
    deleted = frozenset(await reader.children(paths.DELETE_TOPICS) or ())
    names = sorted(await reader.children(paths.BROKER_TOPICS) or ())
    nodes = await reader.get_data([paths.topic(name) for name in names])
    assignments: dict[str, Mapping[int, ReplicaAssignment]] = {}
    for name, node in zip(names, nodes, strict=True):
        if node is None:
            continue  # it has gone meanwhile
        try:
            znode = decode_topic(name, node.data)
        except MalformedZNodeError as error:
            problems.append(f"topic {name} is left out: {error}")
            continue
        problems += [
            f"partition {name}-{partition} is left out: {why}"
            for partition, why in znode.problems.items()
        ]
        assignments[name] = znode.assignments
    partitions = [TopicPartition(name, p) for name, found in assignments.items() for p in found]
    states = await _states(reader, partitions, problems)
    return {
        name: TopicView(
            name=name,
            topic_id=None,
            partitions=tuple(
                _partition(number, assignment, states.get(TopicPartition(name, number)))
                for number, assignment in found.items()
            ),
            is_being_deleted=name in deleted,
        )
        for name, found in assignments.items()
    }


async def _states(
    reader: ClusterReader, partitions: Sequence[TopicPartition], problems: list[str]
) -> dict[TopicPartition, LeaderAndIsr]:
    nodes = await reader.get_data([paths.partition_state(tp) for tp in partitions])
    states: dict[TopicPartition, LeaderAndIsr] = {}
    for tp, node in zip(partitions, nodes, strict=True):
        if node is None:
            continue  # it never had a leader
        try:
            states[tp] = _state(tp, node)
        except MalformedZNodeError as error:
            problems.append(f"the leader of {tp} is not known: {error}")
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
