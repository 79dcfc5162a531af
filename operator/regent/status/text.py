"""The report as text for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from regent.model.plain_text import plain
from regent.status.cluster import Report

RESTART_DEPOSED: Final = (
    "restart these brokers, one after the other, before a broker is the controller again; a Regent "
    "has deposed their own controllers, which may not survive another election"
)
"""What to do about brokers whose own controllers were deposed."""

_UNBOUNDED: Final = 100_000
"""Columns of what is no terminal: a program that reads a pipe needs whole lines."""

_UNREADABLE: Final = 50
"""Znodes that cannot be read, of which each has a line."""


def render_status(report: Report) -> str:
    """The report for standard output: in colours and as wide as the terminal, if that is one."""
    width = None if sys.stdout.isatty() else _UNBOUNDED
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    warnings = [
        *_refused_requests(report["regent"] or {}),
        *_unassigned_replicas(report["regent"] or {}),
        *_unserved(report["regent"] or {}),
        *_unserved_listeners(report["regent"] or {}),
        *_unreached_brokers(report["regent"] or {}),
        *_refused_peers(report["regent"] or {}),
        *_unreadable(report["problems"]),
    ]
    with console.capture() as captured:
        for line in (
            _controller(report),
            *_served_resources(report),
            *_deposed_controllers(report),
            _partitions(report),
            *_regent(report),
        ):
            console.print(plain(line))
        console.print(_brokers(report))
        for warning in warnings:
            console.print(plain(warning), style="red")
    return captured.get()


def _unreadable(problems: Sequence[str]) -> Iterator[str]:
    """The first of the znodes that cannot be read: there may be one for each partition."""
    yield from (f"Unreadable  {problem}" for problem in problems[:_UNREADABLE])
    if len(problems) > _UNREADABLE:
        more = len(problems) - _UNREADABLE
        yield f"Unreadable  and {more:,} more, which --json names"


def _controller(report: Report) -> str:
    controller = report["controller"]
    who = {
        "none": "none",
        "unknown": "unknown: /controller cannot be read",
        "broker": f"broker {controller['id']}'s own controller",
        "regent": f"Regent ({controller['id']})",
    }[controller["kind"]]
    epoch = "unknown" if controller["epoch"] is None else controller["epoch"]
    return f"Controller  {who}, epoch {epoch}"


def _served_resources(report: Report) -> Iterator[str]:
    """Which custom resources the Regent serves that is the controller. Not every version says."""
    served = report["controller"].get("customResources")
    if not served:
        return
    if served["lease"] is None:
        yield "Resources   none: it runs without_kubernetes"
        return
    where = ", ".join(served["namespaces"])
    line = f"Resources   Lease {served['lease']}, "
    line += f"namespaces {where}" if where else "all namespaces"
    if served["clusterName"] is not None:
        line += f", clusterRef {served['clusterName']}"
        line += " or none" if served["isDefault"] else ""
    yield line


def _deposed_controllers(report: Report) -> Iterator[str]:
    if report["deposedControllers"]:
        brokers = ", ".join(map(str, report["deposedControllers"]))
        yield f"Deposed     {brokers}: {RESTART_DEPOSED}"


def _partitions(report: Report) -> str:
    counts = report["partitions"]
    unknown = f", {counts['unknown']} unknown" if counts["unknown"] else ""
    return (
        f"Partitions  {counts['total']} in {counts['topics']} topics: {counts['online']} online, "
        f"{counts['offline']} offline, {counts['new']} new{unknown}, "
        f"{counts['underReplicated']} under-replicated"
    )


def _regent(report: Report) -> list[str]:
    regent = report["regent"]
    if regent is None:
        return [f"Regent      {report['regentProblem']} (see --url)"]
    is_client = regent.get("mode") == "client"
    role = "active" if regent["isActive"] else "client" if is_client else "standby"
    lines = [f"Regent      {regent['controllerId']} ({role})"]
    if regent.get("refusal"):
        verb = "serve" if is_client else "take"
        lines.append(f"Refusal     it does not {verb} the cluster: {regent['refusal']}")
    if regent.get("shuttingDownBrokers"):
        stopping = ", ".join(str(broker_id) for broker_id in regent["shuttingDownBrokers"])
        lines.append(f"Stopping    {stopping}: no candidates for leaders, ISRs and replicas")
    if regent.get("zooKeeperProblem"):
        lines.append(f"ZooKeeper   it has no connection: {regent['zooKeeperProblem']}")
    if regent.get("warmStandby"):
        lines.append(f"Standby     {_standby(regent['warmStandby'])}")
    lines += _replicas(regent.get("replicas") or {})
    endpoint = regent.get("endpoint") or {}
    addresses = {**endpoint.get("served", {}), **endpoint.get("servedListeners", {})}
    lines += [f"Endpoint    {address} ({whose})" for whose, address in addresses.items()]
    queues = ", ".join(f"broker {b}: {n}" for b, n in regent["channelQueueSizes"].items())
    partitions = f", partitions for {queues}" if queues else ""
    return [*lines, f"Queues      {regent['eventQueueSize']} events{partitions}"]


def _standby(standby: Mapping[str, Any]) -> str:
    """Whether the copy of the cluster's state is current."""
    what = f"cache {standby['phase']}: {standby['partitions']} partitions"
    if standby["dirty"]:
        what += f", {standby['dirty']} znodes to be read"
    if standby["malformed"]:
        what += f", {standby['malformed']} znodes left out"
    if standby["differences"]:
        what += f", {standby['differences']} znodes have differed from ZooKeeper"
    return what if standby["problem"] is None else f"{what} ({standby['problem']})"


def _replicas(replicas: Mapping[str, Any]) -> Iterator[str]:
    """The other replicas, and whether they answer."""
    for who, problem in replicas.get("others", {}).items():
        yield f"Replica     {who} {'answers' if problem is None else f'is not heard: {problem}'}"
    if replicas.get("problem"):
        yield f"Replica     others are not known: {replicas['problem']}"


def _refused_requests(regent: Mapping[str, Any]) -> Iterator[str]:
    """Which requests of Regent brokers refuse. Not every version of Regent says so."""
    refused = regent.get("refusedReplicas") or {"count": 0, "sample": []}
    for each in refused["sample"]:
        replica = f"{each['topic']}-{each['partition']}"
        yield f"Refused     broker {each['broker_id']} refuses {replica}: {_advised(each['error'])}"
    further = refused["count"] - len(refused["sample"])
    if further > 0:
        yield f"Refused     and {further} replicas more"
    for broker_id, error in (regent.get("refusedMetadata") or {}).items():
        yield f"Refused     broker {broker_id} refuses metadata: {_advised(error)}"


def _advised(error: str) -> str:
    """What a broker answered, with what to do where that is known."""
    if error != "CLUSTER_AUTHORIZATION_FAILED":
        return error
    return (
        f"{error}; Regent's principal there needs ClusterAction: kafka-acls --add "
        "--allow-principal ... --operation ClusterAction --cluster"
    )


def _unreached_brokers(regent: Mapping[str, Any]) -> Iterator[str]:
    """Brokers that Regent cannot inform. Not every version says so."""
    for broker_id, problem in (regent.get("unreachedBrokers") or {}).items():
        yield f"Unreached   broker {broker_id} at {problem}"


def _refused_peers(regent: Mapping[str, Any]) -> Iterator[str]:
    """Brokers and clients that the endpoint refuses. Not every version says so."""
    endpoint = regent.get("endpoint") or {}
    if endpoint.get("problem"):
        yield f"Endpoint    {endpoint['problem']}"
    for each in endpoint.get("refusedPeers") or ():
        who = each.get("principal") or "a client"
        yield (
            f"Refused     {who} from {each['address']}, listener {each['listener']}: "
            f"{each['kind']}: {each['reason']}; {each['remedy']}"
        )


def _unserved_listeners(regent: Mapping[str, Any]) -> Iterator[str]:
    """Listeners of brokers by which the controller cannot be asked. Not every version says so."""
    missing = (regent.get("endpoint") or {}).get("listenersNotServed", {})
    for listener, protocol in missing.items():
        yield (
            f"Endpoint    listener {listener} ({protocol}) is not served: who uses it cannot ask "
            "the controller"
        )


def _unassigned_replicas(regent: Mapping[str, Any]) -> Iterator[str]:
    """What brokers have and should not have. Not every version of Regent says so."""
    found = regent.get("unassignedReplicas") or {"count": 0, "sample": []}
    for each in found["sample"]:
        replica = f"{each['topic']}-{each['partition']}"
        owner = f"broker {each['broker_id']}"
        yield f"Unassigned  {owner} has {replica} ({each['size']} bytes) without an assignment"
    further = found["count"] - len(found["sample"])
    if further > 0:
        yield f"Unassigned  and {further} replicas more"


def _unserved(regent: Mapping[str, Any]) -> Iterator[str]:
    """Which KafkaTopics are not served. Not every version of Regent says so."""
    kubernetes = regent.get("kubernetes") or {}
    for key in ("problem", "unlisted"):
        if kubernetes.get(key):
            yield f"Kubernetes  no KafkaTopic is served: {kubernetes[key]}"
    for key in ("unkeptLease", "stall"):
        if kubernetes.get(key):
            yield f"Kubernetes  {kubernetes[key]}"
    for key in ("unreadableNamespaces", "unwritableNamespaces"):
        for namespace, missing in kubernetes.get(key, {}).items():
            yield (f"Kubernetes  statuses in namespace {namespace} may be out of date: {missing}")


def _brokers(report: Report) -> Table:
    table = Table("Broker", "Epoch", "Rack", "Leads", "Hosts", "Out of sync", "Endpoints")
    for broker in report["brokers"]:
        table.add_row(
            str(broker["id"]),
            "-" if broker["epoch"] is None else str(broker["epoch"]),
            plain(broker["rack"] or "-"),
            *(str(broker[key]) for key in ("leads", "hosts", "outOfSync")),
            plain(" ".join(broker["endpoints"]) or "-"),
        )
    return table
