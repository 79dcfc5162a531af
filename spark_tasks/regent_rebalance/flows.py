"""Where replicas go: how many leave each broker or rack, and to which others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from regent_rebalance.details import Details
from regent_rebalance.plan import Plan

MOST_GROUPS = 40
"""Rows and columns that a map has at most."""

ADDED, OTHERS = "added", "others"


@dataclass(frozen=True, slots=True)
class FlowMap:
    """Counts of new replicas.

    Attributes:
        kind: "broker" or "rack".
        sources: Rows: what replicas leave; ADDED for those that replace none.
        targets: Columns: what they go to.
        counts: For each row a count for each column.
    """

    kind: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class RackLoad:
    """The brokers of a rack together, before and after."""

    rack: str
    brokers: int
    replicas: tuple[int, int]
    leaders: tuple[int, int]
    disk: tuple[int, int]
    sent: int
    received: int


def broker_flows(plan: Plan, details: Details) -> FlowMap:
    """Between brokers, or between racks if the brokers are too many to be shown."""
    if len(details.brokers) > MOST_GROUPS:
        return rack_flows(plan, details)
    return _flows(plan, "broker", {broker.id: str(broker.id) for broker in details.brokers})


def rack_flows(plan: Plan, details: Details) -> FlowMap:
    """Between racks."""
    return _flows(plan, "rack", {b.id: b.rack or "none" for b in details.brokers})


def rack_loads(details: Details) -> tuple[RackLoad, ...]:
    """Racks in order of their names."""
    racks = sorted({broker.rack for broker in details.brokers})
    loads = []
    for rack in racks:
        members = [broker for broker in details.brokers if broker.rack == rack]
        before, after = [b.before for b in members], [b.after for b in members]
        loads.append(
            RackLoad(
                rack=rack or "none",
                brokers=len(members),
                replicas=(sum(b.replicas for b in before), sum(b.replicas for b in after)),
                leaders=(sum(b.leaders for b in before), sum(b.leaders for b in after)),
                disk=(sum(b.disk for b in before), sum(b.disk for b in after)),
                sent=sum(b.sent for b in members),
                received=sum(b.received for b in members),
            )
        )
    return tuple(loads)


def _flows(plan: Plan, kind: str, group: Mapping[int, str]) -> FlowMap:
    counts: Counter[tuple[str, str]] = Counter()
    for old, new in zip(*plan.changes.lists(), strict=True):
        leaves = [group[broker] for broker in old if broker not in new]
        arrives = [group[broker] for broker in new if broker not in old]
        for i, target in enumerate(arrives):
            counts[leaves[i] if i < len(leaves) else ADDED, target] += 1
    shown = _shown(counts, list(dict.fromkeys(group.values())))
    merged: Counter[tuple[str, str]] = Counter()
    for (source, target), count in counts.items():
        row = source if source == ADDED or source in shown else OTHERS
        merged[row, target if target in shown else OTHERS] += count
    rows = [name for name in (*shown, OTHERS, ADDED) if any(key[0] == name for key in merged)]
    columns = [name for name in (*shown, OTHERS) if any(key[1] == name for key in merged)]
    return FlowMap(
        kind=kind,
        sources=tuple(rows),
        targets=tuple(columns),
        counts=tuple(tuple(merged[row, column] for column in columns) for row in rows),
    )


def _shown(counts: Counter[tuple[str, str]], names: list[str]) -> list[str]:
    """The busiest of the names, in their order."""
    if len(names) <= MOST_GROUPS:
        return names
    busy: Counter[str] = Counter()
    for (source, target), count in counts.items():
        busy[source] += count
        busy[target] += count
    kept = set(sorted(names, key=lambda name: (-busy[name], name))[: MOST_GROUPS - 1])
    return [name for name in names if name in kept]
