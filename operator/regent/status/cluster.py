"""What ZooKeeper says of the controller, the brokers and the partitions, read-only."""

from __future__ import annotations

from collections import Counter
from typing import Any

from regent.model.errors import MalformedZNodeError
from regent.model.partition import TopicPartition
from regent.status.reader import ClusterReader, open_cluster
from regent.zk_data import paths
from regent.zk_data.brokers import decode_broker
from regent.zk_data.cluster import decode_cluster_id
from regent.zk_data.controller import decode_controller, decode_controller_epoch
from regent.zk_data.topics import decode_partition_state, decode_topic
from regent.zookeeper.settings import ZooKeeperSettings

Report = dict[str, Any]


async def read_cluster(settings: ZooKeeperSettings) -> Report:
    """Controller, brokers, partitions, and what was malformed.

    Raises:
        ConfigurationError: The chroot does not exist.
        ZooKeeperUnavailableError: No server answered.
    """
    async with open_cluster(settings) as reader:
        problems: list[str] = []
        brokers = await read_brokers(reader, problems)
        return {
            "clusterId": await read_cluster_id(reader, problems),
            "controller": await read_controller(reader, brokers, problems),
            "brokers": brokers,
            "partitions": await _partitions(reader, brokers, problems),
            "problems": problems,
        }


async def read_cluster_id(reader: ClusterReader, problems: list[str]) -> str | None:
    """Id of the Kafka cluster, if it has one."""
    (node,) = await reader.get_data([paths.CLUSTER_ID])
    try:
        return None if node is None else decode_cluster_id(node.data)
    except MalformedZNodeError as error:
        problems.append(str(error))
        return None


async def read_controller(
    reader: ClusterReader, brokers: list[Report], problems: list[str]
) -> Report:
    """Who holds ``/controller``: id, epoch and kind (``none``, ``broker`` or ``regent``)."""
    holder, epoch = await reader.get_data([paths.CONTROLLER, paths.CONTROLLER_EPOCH])
    controller_id: int | None = None
    controller_epoch: int | None = None
    try:
        controller_id = None if holder is None else decode_controller(holder.data)
        controller_epoch = None if epoch is None else decode_controller_epoch(epoch.data)
    except MalformedZNodeError as error:
        problems.append(str(error))
    kind = "none"
    if controller_id is not None:
        kind = "broker" if any(b["id"] == controller_id for b in brokers) else "regent"
    return {"id": controller_id, "epoch": controller_epoch, "kind": kind}


async def read_brokers(reader: ClusterReader, problems: list[str]) -> list[Report]:
    """Registered brokers in order of their ids."""
    (children,) = await reader.get_children([paths.BROKER_IDS])
    ids = sorted(i for c in children or () if (i := paths.broker_id_of(c)) is not None)
    found: list[Report] = []
    nodes = await reader.get_data([paths.broker_id(i) for i in ids])
    for broker_id, node in zip(ids, nodes, strict=True):
        if node is None:
            continue
        try:
            broker = decode_broker(broker_id, node)
        except MalformedZNodeError as error:
            problems.append(str(error))
            continue
        endpoints = [f"{e.listener}://{e.host}:{e.port}" for e in broker.endpoints]
        found.append(
            {"id": broker_id, "epoch": broker.epoch, "rack": broker.rack}
            | {"endpoints": endpoints, "leads": 0, "hosts": 0, "outOfSync": 0}
        )
    return found


async def _partitions(reader: ClusterReader, brokers: list[Report], problems: list[str]) -> Report:
    (names,) = await reader.get_children([paths.BROKER_TOPICS])
    topics = list(names or ())
    replicas: dict[TopicPartition, tuple[int, ...]] = {}
    nodes = await reader.get_data([paths.topic(topic) for topic in topics])
    for topic, node in zip(topics, nodes, strict=True):
        if node is None:
            continue
        try:
            znode = decode_topic(topic, node.data)
        except MalformedZNodeError as error:
            problems.append(str(error))
            continue
        problems += [f"{paths.topic(topic)}: {p}: {why}" for p, why in znode.problems.items()]
        replicas |= {TopicPartition(topic, p): a.replicas for p, a in znode.assignments.items()}
    by_id = {b["id"]: b for b in brokers}
    counts: Counter[str] = Counter()
    states = await reader.get_data([paths.partition_state(tp) for tp in replicas])
    for (tp, assigned), node in zip(replicas.items(), states, strict=True):
        leader = -1
        isr: tuple[int, ...] = ()
        try:
            if node is not None:
                state = decode_partition_state(paths.partition_state(tp), node)
                leader, isr = state.leader, state.isr
        except MalformedZNodeError as error:
            problems.append(str(error))
        counts[_state_of(node is not None, leader, by_id)] += 1
        counts["underReplicated"] += any(r not in isr for r in assigned)
        _count_replicas(by_id, leader, isr, assigned)
    return {
        "topics": len(topics),
        "total": len(replicas),
        **{state: counts[state] for state in ("online", "offline", "new", "underReplicated")},
    }


def _state_of(exists: bool, leader: int, brokers: dict[int, Report]) -> str:
    if not exists:
        return "new"
    return "online" if leader in brokers else "offline"


def _count_replicas(
    brokers: dict[int, Report], leader: int, isr: tuple[int, ...], assigned: tuple[int, ...]
) -> None:
    for broker_id in assigned:
        if broker_id in brokers:
            brokers[broker_id]["hosts"] += 1
            brokers[broker_id]["leads"] += broker_id == leader
            brokers[broker_id]["outOfSync"] += broker_id not in isr
