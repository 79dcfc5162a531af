"""One of the flows; ``make matrix``, a part of the soak, runs all of them on all versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import TESTED_VERSIONS
from tests.matrix.flows import FLOWS
from tests.matrix.runner import Result, cluster_for_flows, run_flow
from tests.matrix.table import table
from tests.support.cluster import Cluster
from tests.support.figures import Figure

SAMPLE = [("1.1.1", "take-over-in-deletion")]
"""Other flows have tests in ``tests/integration``."""
SEED = 7
ENDINGS = 3


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with cluster_for_flows(request.param) as started:
        yield started


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.parametrize(("cluster", "name"), SAMPLE, indirect=["cluster"])
def test_a_flow_on_real_brokers(
    cluster: Cluster, name: str, tmp_path: Path, figure: Figure
) -> None:
    result = run_flow(FLOWS[name], cluster, seed=SEED, directory=tmp_path, endings=ENDINGS)
    figure("acknowledged records, all read back", result.records)
    figure("longest time without an acknowledgement", f"{result.longest_gap_ms} ms")
    if result.longest_partition_gap_ms is not None:
        figure(
            "the same of any partition while all brokers were up",
            f"{result.longest_partition_gap_ms} ms",
        )


def test_the_sample_knows_its_flows_and_versions() -> None:
    assert {name for _, name in SAMPLE} <= FLOWS.keys()
    assert {version for version, _ in SAMPLE} <= set(TESTED_VERSIONS)


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
