"""From what the controller, or ZooKeeper, and the brokers say to a snapshot.

What is not known is never made up: a size that no broker has reported is unknown in the snapshot,
and a remark says whose it is. The planner then counts a copy as large as the leader's replica,
without that as the largest one known, and without any as nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from regent.controller.view import ClusterView, PartitionView, TopicView
from regent.model.log_dirs import LogDirs
from regent.planning.snapshot import (
    UNKNOWN,
    Snapshot,
    SnapshotBroker,
    SnapshotPartition,
    SnapshotTopic,
)

_NAMED: Final = 5
"""Things that a remark names."""

Answers = Mapping[int, LogDirs | str]
"""By broker: what it has in its log directories, or why that is not known."""


def snapshot_of(
    view: ClusterView, answers: Answers, min_isr: Mapping[str, int] | None = None
) -> Snapshot:
    """The snapshot of a cluster.

    Topics that are being deleted are left out. Of partitions that are being reassigned it has the
    replicas that they are :func:`expected <expected_replicas>` to have.

    Args:
        view: All brokers and topics. Brokers that only have replicas are in the snapshot, too: they
            are not alive.
        answers: Of the live brokers. One that is missing was not asked.
        min_isr: ``min.insync.replicas`` of topics, as far as it is known.
    """
    known = {id_: each for id_, each in answers.items() if isinstance(each, LogDirs)}
    topics = [topic for _, topic in sorted(view.topics.items()) if not topic.is_being_deleted]
    partitions = tuple(
        _partition(topic, partition, expected_replicas(partition, view), known)
        for topic in topics
        for partition in sorted(topic.partitions, key=lambda each: each.partition)
        if expected_replicas(partition, view)
    )
    hosts = {broker for partition in partitions for broker in partition.replicas}
    brokers = tuple(_broker(id_, view, known) for id_ in sorted(hosts.union(view.brokers)))
    remarks = (
        *_left_out(view),
        *_broker_remarks(brokers, partitions, answers),
        *_size_remarks(partitions, known),
    )
    known_topics = {
        topic.name: SnapshotTopic(min_isr[topic.name])
        for topic in topics
        if min_isr is not None and topic.name in min_isr
    }
    return Snapshot(brokers, partitions, remarks, known_topics)


def _broker(id_: int, view: ClusterView, known: Mapping[int, LogDirs]) -> SnapshotBroker:
    broker, log_dirs = view.brokers.get(id_), known.get(id_)
    return SnapshotBroker(
        id=id_,
        rack=None if broker is None else broker.rack,
        alive=broker is not None,
        disk_bytes=None if log_dirs is None else log_dirs.capacity,
        log_dirs=log_dirs.directories if log_dirs and log_dirs.directories else msgspec.UNSET,
    )


def expected_replicas(partition: PartitionView, view: ClusterView) -> tuple[int, ...]:
    """The replicas that a partition has once its reassignment is over, if there is one; those that
    it has without it if a broker that gets a copy is not alive: it may never get it."""
    if all(broker in view.brokers for broker in partition.adding_replicas):
        return partition.target_replicas
    return tuple(b for b in partition.replicas if b not in partition.adding_replicas)


def _partition(
    topic: TopicView,
    partition: PartitionView,
    replicas: tuple[int, ...],
    known: Mapping[int, LogDirs],
) -> SnapshotPartition:
    number = partition.partition
    return SnapshotPartition(
        topic=topic.name,
        partition=number,
        replicas=replicas,
        leader=partition.leader if partition.leader in replicas else UNKNOWN,
        sizes=tuple(_size(known.get(broker), topic.name, number) for broker in replicas),
        isr=tuple(member for member in partition.isr if member in replicas) or None,
    )


def _size(log_dirs: LogDirs | None, topic: str, partition: int) -> int:
    size = None if log_dirs is None else log_dirs.size_of(topic, partition)
    return UNKNOWN if size is None else size


def _left_out(view: ClusterView) -> Iterator[str]:
    deleted = sorted(topic.name for topic in view.topics.values() if topic.is_being_deleted)
    if deleted:
        yield f"topics that are being deleted are left out: {_some(deleted)}"
    if view.unreadable_topics:
        named = _some(sorted(view.unreadable_topics))
        yield f"topics whose nodes cannot be read are left out, wholly or in part: {named}"
    moving = [
        (f"{name}-{each.partition}", expected_replicas(each, view) == each.target_replicas)
        for name, topic in sorted(view.topics.items())
        for each in topic.partitions
        if each.is_being_reassigned and not topic.is_being_deleted
    ]
    arriving = [name for name, arrives in moving if arrives]
    if arriving:
        yield (
            f"{len(arriving)} partitions are being reassigned and have the replicas here that they "
            f"will have: {_some(arriving)}"
        )
    waiting = [name for name, arrives in moving if not arrives]
    if waiting:
        yield (
            f"{len(waiting)} partitions are being reassigned to brokers that are not alive and "
            f"have the replicas here that they had before: {_some(waiting)}"
        )


def _broker_remarks(
    brokers: Sequence[SnapshotBroker], partitions: Sequence[SnapshotPartition], answers: Answers
) -> Iterator[str]:
    hosted = Counter(broker for partition in partitions for broker in partition.replicas)
    silent: list[int] = []
    for broker in brokers:
        answer, replicas = answers.get(broker.id), hosted[broker.id]
        if not broker.alive:
            yield (
                f"broker {broker.id} is not alive: the sizes of its {replicas} replicas are not "
                "known, and a plan moves all of them to other brokers"
            )
        elif isinstance(answer, LogDirs):
            for path in answer.offline:
                yield (
                    f"broker {broker.id}: log directory {path} is offline: its capacity does not "
                    "count, and the sizes of its replicas are not known"
                )
            if broker.disk_bytes is None:
                silent.append(broker.id)
        else:
            why = "it was not asked" if answer is None else answer
            yield (
                f"broker {broker.id} does not say what is in its log directories ({why}): the "
                f"sizes of its {replicas} replicas and the capacity of its disks are not known"
            )
    if silent:
        yield (
            f"the capacity of the disks of brokers {silent} is not known (Kafka tells it from 3.3 "
            "on, of file systems that have one): no plan checks whether there is room"
        )


def _size_remarks(
    partitions: Sequence[SnapshotPartition], known: Mapping[int, LogDirs]
) -> Iterator[str]:
    unlisted = [
        f"{each.topic}-{each.partition} at {broker}"
        for each in partitions
        for broker, size in zip(each.replicas, each.sizes, strict=True)
        if size == UNKNOWN and broker in known
    ]
    if unlisted:
        yield (
            f"{len(unlisted)} replicas are not in the log directories of their brokers: "
            f"{_some(unlisted)}; a copy counts as large as the leader's"
        )
    unknown = [
        f"{each.topic}-{each.partition}"
        for each in partitions
        if all(size == UNKNOWN for size in each.sizes)
    ]
    if unknown:
        yield (
            f"no broker tells the size of {len(unknown)} partitions, which count as empty: "
            f"{_some(unknown)}"
        )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
