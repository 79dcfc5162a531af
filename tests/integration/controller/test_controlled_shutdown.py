"""Brokers that stop in order: before they do, others lead what they led, and nobody waits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from regent.admin.commands import Accepted
from regent.controller.commands import ControlledShutdown, ControlledShutdownResult
from regent.protocol.error_codes import NONE, STALE_BROKER_EPOCH
from regent.services.controller_service import ControllerService
from regent.zk_data.broker_notes import SHUTTING_DOWN
from tests.support.cluster import Cluster, cluster_of
from tests.support.commands import controller_in_this_process
from tests.support.figures import Figure
from tests.support.soak import soak
from tests.support.workload import consume_all, workload

pytestmark = [pytest.mark.integration, pytest.mark.slow, soak("controller")]

TOPIC = "led-everywhere"
PARTITIONS = 6


def epoch_of(cluster: Cluster, broker_id: int) -> int:
    epoch: int = cluster.znodes.client.get(f"/brokers/ids/{broker_id}")[1].czxid
    return epoch


def shut_down(
    service: ControllerService, broker_id: int, broker_epoch: int
) -> ControlledShutdownResult:
    (outcome,) = asyncio.run(service.submit([ControlledShutdown(broker_id, broker_epoch)]))
    assert isinstance(outcome, Accepted), outcome
    assert isinstance(outcome.result, ControlledShutdownResult)
    return outcome.result


def states(cluster: Cluster) -> list[dict[str, Any]]:
    return [cluster.znodes.state(TOPIC, p) for p in range(PARTITIONS)]


def leaders(cluster: Cluster) -> list[int]:
    return [state["leader"] for state in states(cluster)]


@pytest.mark.parametrize("version", ["1.1.1", "3.3.2", "3.9.1"])
def test_a_broker_that_is_relieved_first_can_be_stopped_under_load(
    version: str, tmp_path: Path, figure: Figure
) -> None:
    """The brokers do not ask by themselves here; what they would ask is asked for them."""
    with cluster_of(version, controlled_shutdown_enable=False) as cluster:
        relieve_and_stop(cluster, tmp_path, figure)


def relieve_and_stop(cluster: Cluster, tmp_path: Path, figure: Figure) -> None:
    assignment = ",".join(["1:2:3", "2:3:1", "3:1:2"] * (PARTITIONS // 3))
    cluster.tools.topics("--create", f"--topic={TOPIC}", f"--replica-assignment={assignment}")
    cluster.wait_in_sync(TOPIC)
    with controller_in_this_process(cluster, 1_000_000_888) as service:
        with workload(cluster.tools, TOPIC, tmp_path) as producer:
            producer.wait_for_progress()
            for broker_id in (1, 2):
                epoch = epoch_of(cluster, broker_id)
                assert shut_down(service, broker_id, epoch - 1).error_code == STALE_BROKER_EPOCH
                result = shut_down(service, broker_id, epoch)
                assert result == ControlledShutdownResult(NONE)
                before = leaders(cluster)
                assert broker_id not in before
                assert cluster.znodes.get(SHUTTING_DOWN.path(broker_id)) is not None
                cluster.wait(
                    lambda: service.view.shutting_down,
                    "the view, which follows the answer",
                    until=(broker_id,).__eq__,
                )
                cluster.broker(broker_id).stop()
                cluster.wait(
                    lambda: cluster.znodes.client.get_children(SHUTTING_DOWN.parent) == [],
                    f"the end of broker {broker_id} to be observed",
                )
                # It led nothing. It may have fetched before its replicas were stopped, and have
                # been in an ISR once more.
                assert leaders(cluster) == before
                assert all(broker_id not in state["isr"] for state in states(cluster))
                producer.wait_for_progress()
                cluster.broker(broker_id).start()
                cluster.wait_in_sync(TOPIC)
        figure("acknowledged under load", len(producer.acknowledged()))
        figure("longest time without an acknowledgement", f"{producer.longest_gap_ms()} ms")
        assert producer.failed() == []
        assert set(producer.acknowledged()) <= set(consume_all(cluster.tools, TOPIC))
