"""Loads of a history, for people at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regent_rebalance.units import size_text

_COLUMNS = (
    ("disk", "disk", ""),
    ("leader in", "leader_in", "/s"),
    ("follower in", "follower_in", "/s"),
    ("out", "out", "/s"),
)


def render_loads(document: Mapping[str, Any]) -> str:
    """The window, what is wrong with its samples, and each broker: percentile and peak."""
    bad = [f"{what.replace('_', ' ')} {n:,}" for what, n in document["bad"].items() if n]
    for what, count in (
        ("missing moments", document["missingMoments"]),
        ("half moments", document["halfMoments"]),
        ("unreadable files", len(document["unreadableFiles"])),
        ("topics or partitions left out", len(document["leftOut"])),
    ):
        if count:
            bad.append(f"{what} {count:,}")
    known = ", ".join(f"{how} {count:,}" for how, count in document["intervals"].items())
    percentile = f"p{document['percentile']:g}"
    head = "".join(f"{f'{name}, {percentile} (peak)':>32}" for name, _, _ in _COLUMNS)
    lines = [
        f"cluster    {document['cluster']}",
        f"window     {document['since']} to {document['until']}, {document['moments']:,} moments",
        f"rates      {known}",
        f"bad        {', '.join(bad) or 'nothing'}",
        *(f"           {file}" for file in document["unreadableFiles"]),
        *(f"           {name}" for name in document["leftOut"]),
        "",
        f"  {'broker':>6}{head}  replicas not in the sums (disk, in, out)",
    ]
    for broker in document["brokers"]:
        loads = "".join(
            f"{_load(broker[f'{name}_percentile'], broker[f'{name}_peak'], unit):>32}"
            for _, name, unit in _COLUMNS
        )
        unknown = ", ".join(_count(broker[f"{what}_unknown"]) for what in ("disk", "in", "out"))
        lines.append(f"  {broker['broker']:>6}{loads}  {unknown}")
    return "\n".join(lines)


def _load(percentile: float | None, peak: float | None, unit: str) -> str:
    if percentile is None or peak is None:
        return "unknown"
    return f"{size_text(round(percentile))}{unit} ({size_text(round(peak))}{unit})"


def _count(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
