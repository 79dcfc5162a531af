"""``regent status``: what ZooKeeper says of the controller and the cluster, read-only.

Works whoever is the controller, a Regent or a broker, and even if nobody is. What only a Regent
knows (queue lengths) comes from its HTTP endpoint, if there is one to be reached.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from regent.model.errors import ConfigurationError, MalformedZNodeError
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.brokers import decode_broker
from regent.zk_data.controller import decode_controller, decode_controller_epoch
from regent.zk_data.operations import ZNode
from regent.zk_data.topics import decode_partition_state, decode_topic
from regent.zookeeper.client import KazooZooKeeper
from regent.zookeeper.session import ZooKeeperSession
from regent.zookeeper.settings import ZooKeeperSettings, parse_connect_string

CONNECT_TIMEOUT_S = 10.0
HTTP_TIMEOUT_S = 2.0

Report = dict[str, Any]


def read_status(connect_string: str, *, url: str) -> Report:
    """Everything that ``regent status`` shows.

    Raises:
        ConfigurationError: The connect string is malformed, or its chroot does not exist.
        ZooKeeperUnavailableError: No server answered.
    """
    report = asyncio.run(_read(connect_string))
    report["regent"] = _ask_regent(url)
    return report


async def _read(connect_string: str) -> Report:
    hosts, chroot = parse_connect_string(connect_string)
    session = ZooKeeperSession(ZooKeeperSettings(hosts=hosts, session_timeout_ms=10_000))
    try:
        await session.start(timeout_s=CONNECT_TIMEOUT_S)
        client = _Reader(KazooZooKeeper(session, on_watch=lambda _: None), chroot)
        if not await client.has_chroot():
            raise ConfigurationError(
                f"there is no {chroot} in ZooKeeper; name the chroot of the brokers' "
                "zookeeper.connect"
            )
        problems: list[str] = []
        brokers = await _brokers(client, problems)
        controller = await _controller(client, brokers, problems)
        partitions = await _partitions(client, brokers, problems)
    finally:
        await session.close()
    return {
        "controller": controller,
        "brokers": brokers,
        "partitions": partitions,
        "problems": problems,
    }


class _Reader:
    """Reads below a chroot.

    The session has none itself: it would create one that is missing, and nothing is to be written.
    """

    def __init__(self, client: KazooZooKeeper, chroot: str) -> None:
        self._client = client
        self._chroot = chroot

    async def has_chroot(self) -> bool:
        (exists,) = await self._client.exists([self._chroot or "/"])
        return exists

    async def get_data(self, nodes: Sequence[str]) -> Sequence[ZNode | None]:
        return await self._client.get_data([self._chroot + node for node in nodes])

    async def get_children(self, nodes: Sequence[str]) -> Sequence[Sequence[str] | None]:
        return await self._client.get_children([self._chroot + node for node in nodes])


async def _controller(client: _Reader, brokers: list[Report], problems: list[str]) -> Report:
    holder, epoch = await client.get_data([paths.CONTROLLER, paths.CONTROLLER_EPOCH])
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


async def _brokers(client: _Reader, problems: list[str]) -> list[Report]:
    (children,) = await client.get_children([paths.BROKER_IDS])
    ids = sorted(i for c in children or () if (i := paths.broker_id_of(c)) is not None)
    found: list[Report] = []
    nodes = await client.get_data([paths.broker_id(i) for i in ids])
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


async def _partitions(client: _Reader, brokers: list[Report], problems: list[str]) -> Report:
    (names,) = await client.get_children([paths.BROKER_TOPICS])
    topics = list(names or ())
    replicas: dict[TopicPartition, tuple[int, ...]] = {}
    nodes = await client.get_data([paths.topic(topic) for topic in topics])
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
    states = await client.get_data([paths.partition_state(tp) for tp in replicas])
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


def _ask_regent(url: str) -> Report | None:
    """Status of a Regent's endpoint, None if there is none."""
    try:
        with urllib.request.urlopen(f"{url}/status", timeout=HTTP_TIMEOUT_S) as answer:  # noqa: S310
            status = json.load(answer)
    except (OSError, ValueError):
        return None
    return status if isinstance(status, dict) else None


def _print_refusals(console: Console, regent: Report) -> None:
    """What brokers refuse; a Regent of an earlier version does not say."""
    refused = regent.get("refusedReplicas", {"count": 0, "sample": []})
    for each in refused["sample"]:
        console.print(
            f"Refused     broker {each['broker_id']} refuses {each['topic']}-{each['partition']}: "
            f"{each['error']}",
            style="red",
            markup=False,
        )
    more = refused["count"] - len(refused["sample"])
    if more > 0:
        console.print(f"Refused     and {more} replicas more", style="red")
    for broker_id, error in regent.get("refusedMetadata", {}).items():
        console.print(f"Refused     broker {broker_id} refuses metadata: {error}", style="red")


def print_status(report: Report) -> None:
    """For people."""
    console = Console(highlight=False)
    controller = report["controller"]
    who = {
        "none": "nobody",
        "broker": f"broker {controller['id']}'s own controller",
        "regent": f"Regent ({controller['id']})",
    }[controller["kind"]]
    console.print(f"Controller  {who}, epoch {controller['epoch']}")
    counts = report["partitions"]
    console.print(
        f"Partitions  {counts['total']} in {counts['topics']} topics: {counts['online']} online, "
        f"{counts['offline']} offline, {counts['new']} new, "
        f"{counts['underReplicated']} under-replicated"
    )
    regent = report["regent"]
    if regent is None:
        console.print("Queues      no Regent's HTTP endpoint reached (see --url)")
    else:
        queues = ", ".join(f"broker {b}: {n}" for b, n in regent["channelQueueSizes"].items())
        role = "active" if regent["isActive"] else "standby"
        console.print(
            f"Queues      Regent {regent['controllerId']} ({role}): {regent['eventQueueSize']} "
            f"events{', requests to ' + queues if queues else ''}"
        )
        if regent.get("refusal"):
            console.print(f"Left alone  {regent['refusal']}", style="red", markup=False)
        _print_refusals(console, regent)
    table = Table("Broker", "Epoch", "Rack", "Leads", "Hosts", "Out of sync", "Endpoints")
    for broker in report["brokers"]:
        table.add_row(
            *(str(broker[key]) for key in ("id", "epoch")),
            broker["rack"] or "-",
            *(str(broker[key]) for key in ("leads", "hosts", "outOfSync")),
            " ".join(broker["endpoints"]),
        )
    console.print(table)
    for problem in report["problems"]:
        console.print(f"Malformed   {problem}", style="red", markup=False)
