"""Results as a table: a row for each flow, a column for each version."""

from __future__ import annotations

from collections.abc import Sequence

from tests.matrix.runner import Result


def table(results: Sequence[Result]) -> str:
    """Seconds and acknowledged records, all of which were read back."""
    versions = list(dict.fromkeys(result.version for result in results))
    by_cell = {(result.flow, result.version): result for result in results}
    flows = list(dict.fromkeys(result.flow for result in results))
    rows = [["flow (s, records)", *versions]] + [
        [flow, *(_cell(by_cell.get((flow, version))) for version in versions)] for flow in flows
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(versions) + 1)]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _cell(result: Result | None) -> str:
    if result is None:
        return "-"
    if result.problem:
        return f"FAILED after {result.seconds:.0f} s"
    return f"{result.seconds:.0f} s, {result.records}"
