"""Bytes and times as people read them."""

from __future__ import annotations


def size_text(count: float) -> str:
    """Bytes in decimal units, three digits."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.5:
            return f"{value:.3g} {unit}" if unit != "B" else f"{round(count)} B"
        value /= 1000
    return f"{value:,.3g} PB" if value < 999.5 else f"{value:,.0f} PB"


def time_text(seconds: float) -> str:
    """Days, hours, minutes and seconds; the two largest that are not 0."""
    left = round(seconds)
    if left == 0:
        return "0 s" if seconds == 0 else "less than 1 s"
    parts: list[tuple[int, str]] = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)
