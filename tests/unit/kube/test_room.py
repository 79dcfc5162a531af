"""Moves that were refused leave room, which no change of the cluster says."""

from __future__ import annotations

from typing import Any

import pytest

from regent.kube.kind_wiring import (
    serve_broker_drains,
    serve_partition_reassignments,
)
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.request import SentMove
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.unit.kube.serving_moves import Serve, ServedResource, Serving
from tests.unit.reconcile.reassignments.reassigning import AUTOMATIC, assign

OTHER = TopicPartition("payments", 0)


@pytest.mark.parametrize(
    ("serve", "name", "spec"),
    [
        (
            serve_partition_reassignments,
            "PartitionReassignment",
            {"approval": AUTOMATIC, "assignments": assign((3, 2))},
        ),
        (serve_broker_drains, "BrokerDrain", {"brokers": [1]}),
    ],
)
async def test_what_waits_is_looked_at_when_moves_of_others_are_refused(
    serve: Serve, name: str, spec: dict[str, Any]
) -> None:
    waiting = ServedResource(serve, name, **spec)
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        serving = Serving(waiting, controller)
        serving.take()
        serving.queue.done(await serving.queue.get())
        moving = serving.around.moving
        moving.send({OTHER: SentMove((3,), (3,), 1, until=10.0)})
        assert serving.queue.is_idle
        moving.take_back([OTHER])
        assert await serving.queue.get() == waiting.key
