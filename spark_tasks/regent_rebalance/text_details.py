"""Brokers, racks, moves and batches of a plan, for people at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from regent_rebalance.details import BrokerLoad, Details
from regent_rebalance.flows import FlowMap, rack_flows, rack_loads
from regent_rebalance.plan import Plan
from regent_rebalance.schedule import Schedule
from regent_rebalance.units import size_text, time_text

_LINE = 40
"""Characters of the line of time."""

_SHADES = " ░▒▓█"


def assumption_lines(details: Details) -> list[str]:
    """What was assumed, and what goes wrong while the plan is carried out."""
    lines = [f"what if    {sentence}" for sentence in details.assumptions]
    if lines:
        lines.append("           the plan is for a cluster that does not exist")
    return lines + [f"attention  {note}" for note in details.schedule.notes]


def detail_lines(plan: Plan, details: Details, *, shown: int) -> list[str]:
    """Tables; of brokers and batches no more than ``shown``."""
    return [
        *_rack_lines(details),
        *_broker_lines(details, shown),
        *_flow_lines(rack_flows(plan, details)),
        *_batch_lines(details.schedule, shown),
    ]


def _rack_lines(details: Details) -> list[str]:
    rows = [
        (
            rack.rack,
            str(rack.brokers),
            _change(*rack.replicas),
            _change(*rack.leaders),
            _change(*rack.disk, size=True),
            size_text(rack.received),
            size_text(rack.sent),
        )
        for rack in rack_loads(details)
    ]
    head = ("rack", "brokers", "replicas", "leaders", "disk", "receives", "sends")
    return ["", "racks", *_table(head, rows)]


def _broker_lines(details: Details, shown: int) -> list[str]:
    """Those that change most first where not all are shown."""

    def movement(broker: BrokerLoad) -> tuple[int, int]:
        return -(broker.received + broker.sent), broker.id

    brokers = details.brokers
    title = "brokers"
    if len(brokers) > shown:
        brokers = tuple(sorted(brokers, key=movement)[:shown])
        title = f"brokers: the {shown} with most to copy of {len(details.brokers)}"
    rows = [
        (
            str(b.id),
            b.rack or "none",
            "" if b.state == "kept" else b.state,
            _change(b.before.replicas, b.after.replicas),
            _change(b.before.leaders, b.after.leaders),
            _change(b.before.disk, b.after.disk, size=True),
            size_text(b.received),
            size_text(b.sent),
        )
        for b in brokers
    ]
    head = ("broker", "rack", "", "replicas", "leaders", "disk", "receives", "sends")
    return ["", title, *_table(head, rows)]


def _flow_lines(flows: FlowMap) -> list[str]:
    if not flows.counts:
        return []
    most = max(count for row in flows.counts for count in row)

    def cell(count: int) -> str:
        # Any count has a shade of its own besides none; the square root tells small ones apart.
        shade = _SHADES[0 if count == 0 else max(1, round((count / most) ** 0.5 * 4))]
        return f"{count:,} {shade}" if count else f". {shade}"

    rows = [
        (name, *(cell(count) for count in row))
        for name, row in zip(flows.sources, flows.counts, strict=True)
    ]
    return ["", "new replicas, from racks to racks", *_table(("", *flows.targets), rows)]


def _batch_lines(schedule: Schedule, shown: int) -> list[str]:
    if not schedule.batches:
        return []
    total = sum(batch.load for batch in schedule.batches)
    rows, begin = [], 0
    for number, batch in enumerate(schedule.batches[:shown], 1):
        rows.append(
            (
                str(number),
                batch.urgency,
                f"{batch.partitions:,}",
                f"{batch.copies:,}",
                size_text(batch.bytes),
                time_text(batch.load / schedule.limits.rate),
                _span(begin, batch.load, total),
            )
        )
        begin += batch.load
    lines = [
        "",
        f"batches    {len(schedule.batches):,}, at least {schedule.least_batches:,}; "
        f"{time_text(schedule.seconds)} predicted, at least {time_text(schedule.least_seconds)}, "
        f"at {size_text(schedule.limits.rate)}/s a broker",
        *_table(("", "urgency", "partitions", "copies", "bytes", "takes", "|"), rows),
    ]
    if len(schedule.batches) > shown:
        lines.append(f"  and {len(schedule.batches) - shown:,} more: --all shows them")
    return lines


def _span(begin: int, load: int, total: int) -> str:
    """A batch's part of the line of time."""
    if total == 0:
        return "|"
    first = min(_LINE - 1, _LINE * begin // total)
    last = max(first + 1, -(-_LINE * (begin + load) // total))
    return "|" + " " * first + "█" * (last - first) + " " * (_LINE - last) + "|"


def _change(before: int, after: int, *, size: bool = False) -> str:
    old, new = (size_text(v) if size else f"{v:,}" for v in (before, after))
    return new if before == after else f"{old} -> {new}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns to the right, but for the first, and for what begins with a line."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.ljust(width) if i == 0 or cell.startswith("|") else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return ("  " + "  ".join(cells)).rstrip()

    return [line(head), *(line(row) for row in rows)]
