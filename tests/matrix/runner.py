"""Runs flows on a cluster, one after the other, and accounts for every acknowledged record."""

from __future__ import annotations

import contextlib
import itertools
import random
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.matrix.flow import SESSION_TIMEOUT_MS, Flow, Stage
from tests.support.cluster import Cluster, cluster_of
from tests.support.reassigning import create_topic
from tests.support.workload import consume_all, workload

ENDINGS = 6
"""How often a Regent ends, in the flow that is about that."""

_numbers = itertools.count(1)


@dataclass(frozen=True, kw_only=True)
class Result:
    """One flow on one version.

    Attributes:
        records: Acknowledged records, each of which was read back.
        longest_gap_ms: The longest time between two acknowledgements.
        longest_partition_gap_ms: The same for any partition, while all brokers were up; None if the
            records were not spread over the partitions.
        problem: Why it failed; empty if it did not. The figures are 0 then.
    """

    version: str
    flow: str
    seconds: float
    records: int = 0
    longest_gap_ms: int = 0
    longest_partition_gap_ms: int | None = None
    problem: str = ""


@contextlib.contextmanager
def cluster_for_flows(
    version: str,
    *,
    inter_broker_protocol: str | None = "2.6",
    zookeeper_version: str | None = None,
) -> Iterator[Cluster]:
    """A cluster on which every flow can run.

    Args:
        zookeeper_version: The release whose ZooKeeper it has; None: the brokers' own.
    """
    with cluster_of(
        version,
        inter_broker_protocol=inter_broker_protocol,
        zookeeper_version=zookeeper_version or version,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        log_directories=2,
        # a failed log directory is noticed by the next checkpoint
        replica_high_watermark_checkpoint_interval_ms=500,
    ) as cluster:
        cluster.wait_for_a_broker_as_controller()
        yield cluster


def run_flow(
    flow: Flow, cluster: Cluster, *, seed: int, directory: Path, endings: int = ENDINGS
) -> Result:
    """Run one flow on a healthy cluster, which is healthy again afterwards.

    Args:
        endings: See :class:`Stage`.

    Raises:
        Exception: The flow did not end as it has to, or a record is missing. The cluster may be
            in any state then.
    """
    topic = f"{flow.name}-{next(_numbers)}"
    began = time.monotonic()
    create_topic(cluster, topic, flow.assignment)
    with workload(cluster.tools, topic, directory, keys=flow.keys) as producer:
        producer.wait_for_progress()
        stage = Stage(
            cluster=cluster,
            topic=topic,
            producer=producer,
            chance=random.Random(f"{flow.name} {seed}"),
            endings=endings,
        )
        flow.run(stage)
        producer.wait_for_progress()
    cluster.restore()
    cluster.wait_for_consistency()
    acknowledged = producer.acknowledged()
    assert not producer.failed(), f"given up: {producer.failed()[:3]}"
    lost = sorted(acknowledged.keys() - set(consume_all(cluster.tools, topic)))
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged records lost: {lost[:10]}"
    return Result(
        version=cluster.kafka.version,
        flow=flow.name,
        seconds=time.monotonic() - began,
        records=len(acknowledged),
        longest_gap_ms=producer.longest_gap_ms(),
        longest_partition_gap_ms=None
        if flow.keys is None
        else producer.longest_gap_of_a_partition_ms(outside=stage.disturbed),
    )


def run_flows(
    flows: Iterable[Flow],
    version: str,
    *,
    seed: int,
    inter_broker_protocol: str | None = "2.6",
    zookeeper_version: str | None = None,
    endings: int = ENDINGS,
) -> Iterator[Result]:
    """Run flows on one version: on one cluster, replaced by a new one after a failure."""
    remaining = list(flows)
    while remaining:
        with cluster_for_flows(
            version,
            inter_broker_protocol=inter_broker_protocol,
            zookeeper_version=zookeeper_version,
        ) as cluster:
            is_healthy = True
            while remaining and is_healthy:
                result = _attempt(remaining.pop(0), cluster, seed=seed, endings=endings)
                is_healthy = not result.problem
                yield result


def _attempt(flow: Flow, cluster: Cluster, *, seed: int, endings: int) -> Result:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="regent-matrix-") as directory:
        try:
            return run_flow(flow, cluster, seed=seed, directory=Path(directory), endings=endings)
        except Exception:  # noqa: BLE001  # the other flows are tried as well
            return Result(
                version=cluster.kafka.version,
                flow=flow.name,
                seconds=time.monotonic() - began,
                problem=traceback.format_exc(),
            )
