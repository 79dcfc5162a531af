"""What ZooKeeper says of the controller, the brokers and the partitions, read-only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, Final

from regent.model.active_regent import ServedResources
from regent.model.errors import MalformedZNodeError
from regent.model.partition import NO_LEADER, TopicPartition
from regent.status.reader import ClusterReader
from regent.zk_data import paths
from regent.zk_data.broker_notes import DEPOSED, decode_broker_note
from regent.zk_data.brokers import decode_broker, is_controller_registration
from regent.zk_data.cluster import decode_cluster_id
from regent.zk_data.controller import (
    decode_active_regent,
    decode_controller,
    decode_controller_epoch,
)
from regent.zk_data.operations import ZNode
from regent.zk_data.permitted_reads import UnreadableZNode, may_not_be_read
from regent.zk_data.topics import decode_partition_state, decode_topic

Report = dict[str, Any]

_STATES: Final = ("online", "offline", "new", "unknown")


async def read_cluster(reader: ClusterReader) -> Report:
    """Controller, brokers, partitions, and the znodes that could not be read, each with the reason:
    their content is malformed, or the right to read it is missing.
    """
    problems: list[str] = []
    registered = await read_brokers(reader, problems)
    brokers = registered or []
    return {
        "clusterId": await read_cluster_id(reader, problems),
        "controller": await read_controller(reader, brokers, problems),
        "brokers": brokers,
        "deposedControllers": await deposed_controllers(reader, brokers, problems),
        "partitions": await _partitions(reader, registered, problems),
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
    """Who holds ``/controller``: id, epoch and kind (``none``, ``broker``, ``regent``, or
    ``unknown`` if somebody does and the node does not say who); and which custom resources a Regent
    says it serves."""
    holder, epoch = await reader.get_data([paths.CONTROLLER, paths.CONTROLLER_EPOCH])
    controller_id: int | None = None
    controller_epoch: int | None = None
    served: ServedResources | None = None
    try:
        if holder is not None:
            controller_id = decode_controller(holder.data)
            regent = decode_active_regent(holder.data)
            served = None if regent is None else regent.resources
    except MalformedZNodeError as error:
        problems.append(str(error))
    try:
        controller_epoch = None if epoch is None else decode_controller_epoch(epoch.data)
    except MalformedZNodeError as error:
        problems.append(str(error))
    if holder is None:
        kind = "none"
    elif controller_id is None:
        kind = "unknown"
    else:
        kind = "broker" if any(b["id"] == controller_id for b in brokers) else "regent"
    return {
        "id": controller_id,
        "epoch": controller_epoch,
        "kind": kind,
        "customResources": None if served is None else served.report(),
    }


async def deposed_controllers(
    reader: ClusterReader, brokers: list[Report], problems: list[str]
) -> list[int]:
    """Brokers whose own controllers a Regent has deposed, and that have not been restarted since:
    see :mod:`regent.controller.term.deposed_controllers`."""
    found: list[int] = []
    nodes = await reader.get_data([DEPOSED.path(broker["id"]) for broker in brokers])
    for broker, node in zip(brokers, nodes, strict=True):
        if node is None:
            continue
        try:
            epoch = decode_broker_note(DEPOSED.path(broker["id"]), node.data)
        except MalformedZNodeError as error:
            problems.append(str(error))
            continue
        if epoch == broker["epoch"]:
            found.append(broker["id"])
    return found


async def read_brokers(reader: ClusterReader, problems: list[str]) -> list[Report] | None:
    """Registered brokers in order of their ids, None if they may not be listed.

    Of a broker whose registration cannot be read nothing is known but that it is alive.
    """
    try:
        children = await reader.children(paths.BROKER_IDS)
    except MalformedZNodeError as error:
        problems.append(str(error))
        return None
    ids = sorted(i for c in children or () if (i := paths.broker_id_of(c)) is not None)
    found: list[Report] = []
    nodes = await reader.get_data([paths.broker_id(i) for i in ids])
    for broker_id, node in zip(ids, nodes, strict=True):
        if node is not None and not is_controller_registration(node):
            known = _registration(broker_id, node, problems)
            found.append({"id": broker_id, **known, "leads": 0, "hosts": 0, "outOfSync": 0})
    return found


def _registration(broker_id: int, node: ZNode, problems: list[str]) -> Report:
    try:
        broker = decode_broker(broker_id, node)
    except MalformedZNodeError as error:
        problems.append(str(error))
        epoch = None if isinstance(node, UnreadableZNode) else node.czxid
        return {"epoch": epoch, "rack": None, "endpoints": []}
    endpoints = [f"{e.listener}://{e.host}:{e.port}" for e in broker.endpoints]
    return {"epoch": broker.epoch, "rack": broker.rack, "endpoints": endpoints}


async def _partitions(
    reader: ClusterReader, brokers: list[Report] | None, problems: list[str]
) -> Report:
    names: Collection[str] | None = None
    try:
        names = await reader.children(paths.BROKER_TOPICS)
    except MalformedZNodeError as error:
        problems.append(str(error))
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
    by_id = {b["id"]: b for b in brokers or ()}
    live = None if brokers is None else by_id.keys()
    counts: Counter[str] = Counter()
    states = await reader.get_data([paths.partition_state(tp) for tp in replicas])
    for (tp, assigned), node in zip(replicas.items(), states, strict=True):
        if isinstance(node, UnreadableZNode):
            problems.append(str(may_not_be_read(paths.partition_state(tp))))
            counts["unknown"] += 1
            continue
        leader = NO_LEADER
        isr: tuple[int, ...] = ()
        try:
            if node is not None:
                state = decode_partition_state(paths.partition_state(tp), node)
                leader, isr = state.leader, state.isr
        except MalformedZNodeError as error:
            problems.append(str(error))
        counts[_state_of(node is not None, leader, live)] += 1
        counts["underReplicated"] += any(r not in isr for r in assigned)
        _count_replicas(by_id, leader, isr, assigned)
    return {
        "topics": len(topics),
        "total": len(replicas),
        **{state: counts[state] for state in (*_STATES, "underReplicated")},
    }


def _state_of(exists: bool, leader: int, live: Collection[int] | None) -> str:
    if not exists:
        return "new"
    if leader == NO_LEADER:
        return "offline"
    if live is None:
        return "unknown"
    return "online" if leader in live else "offline"


def _count_replicas(
    brokers: dict[int, Report], leader: int, isr: tuple[int, ...], assigned: tuple[int, ...]
) -> None:
    for broker_id in assigned:
        if broker_id in brokers:
            brokers[broker_id]["hosts"] += 1
            brokers[broker_id]["leads"] += broker_id == leader
            brokers[broker_id]["outOfSync"] += broker_id not in isr
