"""Geometry of the report's drawings, in the units of their view boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regent_rebalance.details import KEPT, BrokerLoad, Load
from regent_rebalance.flows import FlowMap
from regent_rebalance.schedule import Schedule

WIDTH = 960
LEFT, TOP, PLOT, BARS = 64, 14, 884, 130
"""Where a plot begins, how wide it is, and how high bars are."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A broker: its bar is what it has after, the mark what it had before."""

    x: float
    width: float
    y: float
    height: float
    mark: float
    state: str
    label: str
    tip: str


@dataclass(frozen=True, slots=True)
class BarChart:
    """Brokers side by side, a rack after the other.

    Attributes:
        ticks: Height and text of lines.
        band: Height of the upper and the lower limit.
        racks: Where each rack begins and ends, and its name.
    """

    title: str
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    band: tuple[float, float] | None
    racks: tuple[tuple[float, float, str], ...]


def bar_chart(
    title: str,
    brokers: Sequence[BrokerLoad],
    value: Callable[[Load], int],
    text: Callable[[float], str],
    limits: tuple[int, int] | None = None,
    *,
    capacity: bool = False,
) -> BarChart:
    """A chart of one figure. Bars outside the limits have the state "outside".

    Args:
        capacity: Whether the limit is each broker's own disks.
    """
    ordered = sorted(brokers, key=lambda b: (b.rack, b.id))
    values = [v for b in ordered for v in (value(b.before), value(b.after))]
    highest = _round_up(max([*values, limits[1] if limits else 0, 1]))

    def y(amount: float) -> float:
        return _r(TOP + BARS * (1 - amount / highest))

    slot = PLOT / len(ordered)
    step = max(1, -(-28 // max(1, round(slot))))
    bars, racks = [], []
    for i, broker in enumerate(ordered):
        before, after = value(broker.before), value(broker.after)
        inside = limits is None or broker.state != KEPT or limits[0] <= after <= limits[1]
        if capacity and 0 <= broker.capacity < after:
            inside = False
        bars.append(
            Bar(
                x=_r(LEFT + i * slot + 0.12 * slot),
                width=_r(0.76 * slot),
                y=y(after),
                height=_r(TOP + BARS - y(after)),
                mark=y(before),
                state=broker.state if inside else "outside",
                label=str(broker.id) if i % step == 0 else "",
                tip=f"broker {broker.id}, rack {broker.rack or 'none'}, {broker.state}: "
                f"{text(before)} before, {text(after)} after",
            )
        )
        if i == 0 or ordered[i - 1].rack != broker.rack:
            members = sum(b.rack == broker.rack for b in ordered)
            racks.append(
                (_r(LEFT + i * slot), _r(LEFT + (i + members) * slot), broker.rack or "none")
            )
    return BarChart(
        title=title,
        bars=tuple(bars),
        ticks=tuple((y(highest * part / 4), text(highest * part / 4)) for part in (0, 2, 4)),
        band=(y(limits[1]), y(limits[0])) if limits else None,
        racks=tuple(racks),
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """A count of a map; ``shade`` goes from 0 (none) to 1 (the most)."""

    x: float
    y: float
    count: int
    shade: float
    tip: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows are what replicas leave, columns what they go to."""

    side: float
    left: float
    top: float
    width: float
    height: float
    rows: tuple[tuple[float, str], ...]
    columns: tuple[tuple[float, str], ...]
    cells: tuple[Cell, ...]
    numbers: bool


def heat_map(flows: FlowMap) -> HeatMap:
    """Cells are as large as fits, and carry numbers where these are legible."""
    columns = max(1, len(flows.targets))
    longest = max((len(name) for name in (*flows.sources, *flows.targets)), default=1)
    left, top = 30 + 7 * min(longest, 24), 24 + 6 * min(longest, 24)
    side = _r(max(16, min(44, (WIDTH - left) / columns)))
    most = max((count for row in flows.counts for count in row), default=0) or 1
    cells = tuple(
        Cell(
            x=_r(left + j * side),
            y=_r(top + i * side),
            count=count,
            shade=round((count / most) ** 0.5, 3),
            tip=_tip(flows.kind, flows.sources[i], flows.targets[j], count),
        )
        for i, row in enumerate(flows.counts)
        for j, count in enumerate(row)
    )
    return HeatMap(
        side=side,
        left=left,
        top=top,
        width=_r(max(WIDTH, left + columns * side + 2)),
        height=_r(top + len(flows.sources) * side + 4),
        rows=tuple(
            (_r(top + (i + 0.5) * side), _short(name)) for i, name in enumerate(flows.sources)
        ),
        columns=tuple(
            (_r(left + (j + 0.5) * side), _short(name)) for j, name in enumerate(flows.targets)
        ),
        cells=cells,
        numbers=side >= 8 * len(str(most)) + 4,
    )


def _tip(kind: str, source: str, target: str, count: int) -> str:
    origin = "added, not moved," if source == "added" else f"from {kind} {source}"
    return f"{origin} to {kind} {target}: {count:,} replicas"


@dataclass(frozen=True, slots=True)
class Span:
    """A batch on the line of time."""

    x: float
    width: float
    urgency: str
    tip: str


def timeline(
    schedule: Schedule, text: Callable[[float], str]
) -> tuple[tuple[Span, ...], float, tuple[tuple[float, str], ...]]:
    """Batches, the width of the lower bound, and ticks. Batches that copy nothing are a line."""
    seconds = [batch.load / schedule.limits.rate for batch in schedule.batches]
    total, spans, begin = sum(seconds) or 1.0, [], 0.0
    for number, (batch, length) in enumerate(zip(schedule.batches, seconds, strict=True), 1):
        spans.append(
            Span(
                x=_r(LEFT + PLOT * begin / total),
                width=_r(max(0.6, PLOT * length / total)),
                urgency=batch.urgency,
                tip=f"batch {number}, {batch.urgency}: {batch.partitions:,} partitions, "
                f"{batch.copies:,} copies, {text(length)}",
            )
        )
        begin += length
    ticks = tuple((_r(LEFT + PLOT * part / 4), text(total * part / 4)) for part in range(5))
    least = schedule.least_seconds
    return tuple(spans), _r(PLOT * least / total), ticks if sum(seconds) else ()


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"


def _round_up(value: int) -> int:
    """The next number with two digits that count: an axis ends there."""
    unit: int = 10 ** max(0, len(str(value)) - 2)
    return -(-value // unit) * unit


def _r(value: float) -> float:
    return round(value, 2)
