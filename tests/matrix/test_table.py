"""The table of the results of ``make matrix``, which runs the flows."""

from __future__ import annotations

from tests.matrix.runner import Result
from tests.matrix.table import table


def test_the_table_has_a_row_for_each_flow_and_a_column_for_each_version() -> None:
    results = [
        Result(version="1.1.1", flow="crash", seconds=41.6, records=4711),
        Result(version="1.1.1", flow="bounce", seconds=12.0, problem="lost"),
        Result(version="3.9.1", flow="crash", seconds=30.2, records=815),
    ]
    assert table(results).splitlines() == [
        "| flow (s, records) | 1.1.1             | 3.9.1     |",
        "|-------------------|-------------------|-----------|",
        "| crash             | 42 s, 4711        | 30 s, 815 |",
        "| bounce            | FAILED after 12 s | -         |",
    ]
