"""BrokerDrains from the resource to the brokers and back: the real controller over a simulated
cluster, whose safety checker follows every step, and an API server in memory."""

from __future__ import annotations

import asyncio
import copy
import operator
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

from regent.admin.commands import Accepted, AlterPartitionReassignments, CordonBrokers, CreateTopic
from regent.kube.kind_wiring import KindSurroundings, serve_broker_drains
from regent.kube.object_cache import ObjectKey
from regent.kube.partition_reassignments import ReassignmentIndex
from regent.kube.served_kind import ServedKind
from regent.model.topic_config import MIN_INSYNC_REPLICAS
from regent.reconcile.reassignments.move_plan import Move, MovePlan
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.waiting import until
from tests.unit.kube.serving_moves import ServedResource

BROKERS = 4
Replicas = Sequence[tuple[int, ...]]


def drain_of(*brokers: int, **spec: Any) -> ServedResource:
    return ServedResource(serve_broker_drains, "BrokerDrain", brokers=list(brokers), **spec)


def create(cluster: SimulatedCluster, name: str, replicas: Replicas) -> None:
    """A topic whose partitions may be moved to wherever the drain chooses."""
    cluster.create_topic(name, replicas, {"min.insync.replicas": "1"})
    for partition, origin in enumerate(replicas):
        for target in product(range(1, BROKERS + 1), repeat=len(origin)):
            if len(set(target)) == len(target):
                cluster.expect_move(name, partition, target)


async def replicas_of(cluster: SimulatedCluster, name: str) -> list[tuple[int, ...]]:
    return await asyncio.to_thread(cluster.replicas, name)


async def wait_for_cordon(controller: LiveController, brokers: tuple[int, ...]) -> None:
    await until(
        lambda: controller.view.cordoned, f"cordon of {brokers}", until=lambda now: now == brokers
    )


async def wait_for_condition(drain: ServedResource, name: str, status: str) -> None:
    async def look() -> str | None:
        conditions = {each["type"]: each["status"] for each in drain.status["conditions"]}
        return conditions.get(name)

    await until(look, f"{name} {status}", until=lambda now: now == status)


async def wait_for_departures(cluster: SimulatedCluster, least: int) -> None:
    """Wait until so many partitions are on broker 1 no more."""

    async def look() -> int:
        return sum(1 not in each for each in await replicas_of(cluster, "orders"))

    await until(look, f"{least} partitions to leave", until=lambda gone: gone >= least)


def moved(controller: LiveController) -> list[tuple[str, int]]:
    return [
        (tp.topic, tp.partition)
        for each in controller.commands
        if isinstance(each, AlterPartitionReassignments)
        for tp in each.targets
    ]


async def test_a_broker_is_emptied_by_events_alone_and_gets_nothing_new() -> None:
    origin = [(1, 2), (2, 1), (1, 3), (3, 2)] * 3
    with SimulatedCluster(brokers=BROKERS) as cluster, LiveController(cluster) as controller:
        create(cluster, "orders", origin)
        drain = drain_of(1, concurrency={"total": 3})
        async with drain.served(controller):
            await drain.wait_for("Drained")
            (outcome,) = await controller.submit([CreateTopic("new", 6, 2)])
            assert isinstance(outcome, Accepted), outcome
        replicas = await replicas_of(cluster, "orders")
        assert all(1 not in each for each in replicas)
        assert replicas[3::4] == origin[3::4]
        assert all(1 not in each for each in await replicas_of(cluster, "new"))
        assert len(moved(controller)) == len(set(moved(controller))) == 9
        assert drain.status["summary"] == "9/9"
        assert drain.status["remaining"] == {"leaders": 0, "replicas": 0}


async def test_what_a_drained_one_says_of_its_brokers_follows_them() -> None:
    with SimulatedCluster(brokers=BROKERS) as cluster, LiveController(cluster) as controller:
        create(cluster, "orders", [(2, 3)])
        drain = drain_of(1)

        async def says_so() -> bool:
            ready = next(c for c in drain.status["conditions"] if c["type"] == "Ready")
            return "[1] are not alive" in ready["message"]

        async with drain.served(controller):
            await drain.wait_for("Drained")
            for change, is_named in ((cluster.crash_broker, True), (cluster.start_broker, False)):
                await asyncio.to_thread(change, 1)
                await until(
                    says_so,
                    f"the status to name broker 1: {is_named}",
                    until=partial(operator.eq, is_named),
                )
            assert drain.status["phase"] == "Drained"


async def test_however_often_processes_and_terms_end_the_same_drain_goes_on() -> None:
    with SimulatedCluster(brokers=BROKERS) as cluster, LiveController(cluster) as controller:
        create(cluster, "orders", [(1,)] * 12)
        drain = drain_of(1, concurrency={"total": 1})
        plans = set()
        for least in range(1, 12, 4):
            async with drain.served(controller):
                await wait_for_departures(cluster, least)
            plans.add((drain.status["plan"]["hash"], drain.status["startedAt"]))
            await asyncio.to_thread(controller.expire_session)
        async with drain.served(controller):
            await drain.wait_for("Drained")
            await wait_for_cordon(controller, (1,))
        plans.add((drain.status["plan"]["hash"], drain.status["startedAt"]))
        assert len(plans) == 1
        # The view shows a completed move before ZooKeeper has it, and a term can end in between.
        await wait_for_departures(cluster, 12)


async def test_a_status_of_a_newer_regent_is_kept_and_says_that_nothing_is_known() -> None:
    """As after a rollback: what cannot be judged must not go on being true."""
    with SimulatedCluster(brokers=BROKERS) as cluster, LiveController(cluster) as controller:
        create(cluster, "orders", [(1, 2), (2, 1)])
        drain = drain_of(1)
        async with drain.served(controller):
            await drain.wait_for("Drained")
        started = drain.status["startedAt"]
        drain.status["startedAt"] = "0000-01-01T00:00:00Z"
        drain.status["plan"]["checksum"] = "of a newer Regent"
        drain.store.change()
        stored = copy.deepcopy(drain.status)
        async with drain.served(controller) as serving:
            await wait_for_condition(drain, "Drained", "Unknown")
            await wait_for_condition(drain, "Stalled", "True")
            changed = {name for name, value in drain.status.items() if stored[name] != value}
            assert changed == {"conditions"}
            drain.status["startedAt"] = started
            drain.store.change()
            serving.take()
            await wait_for_condition(drain, "Drained", "True")


async def test_a_drain_that_is_deleted_leaves_no_cordon_behind() -> None:
    with SimulatedCluster(brokers=BROKERS) as cluster, LiveController(cluster) as controller:
        create(cluster, "orders", [(1,)])
        drain = drain_of(1)
        async with drain.served(controller) as serving:
            await drain.wait_for("Drained")
            assert controller.view.cordoned == (1,)
            serving.delete()
            await wait_for_cordon(controller, ())
        cordons = [c for c in controller.commands if isinstance(c, CordonBrokers)]
        assert cordons == [CordonBrokers((1,)), CordonBrokers(())]


async def test_brokers_that_need_more_replicas_in_sync_are_not_drained_any_more() -> None:
    """Their ``min.insync.replicas`` may be changed while they run."""
    with SimulatedCluster(brokers=BROKERS) as cluster, LiveController(cluster) as controller:
        cluster.create_topic("orders", [(2, 1)])
        drain = drain_of(1, mode="Leadership")
        async with drain.served(controller):
            for needed, phase in (("1", "Drained"), ("2", "Refused"), ("1", "Drained")):
                broker = controller.view.brokers[2]
                controller.connections.report_settings(broker, {MIN_INSYNC_REPLICAS: needed})
                await drain.wait_for(phase)


async def test_what_a_reassignment_moves_leaves_by_the_event_that_that_is_over() -> None:
    indexes: list[ReassignmentIndex] = []

    def serve(around: KindSurroundings) -> ServedKind:
        indexes.append(around.reassignments)
        return serve_broker_drains(around)

    with SimulatedCluster(brokers=BROKERS) as cluster, LiveController(cluster) as controller:
        create(cluster, "orders", [(1, 2), (1, 3)])
        drain = ServedResource(serve, "BrokerDrain", brokers=[1])
        plan = MovePlan.of(controller.view.cluster_id, [Move("orders", 0, 0, (1, 2), (2, 1))])
        key = ObjectKey("PartitionReassignment", "shop", "reorder")
        body = {
            "metadata": {"namespace": "shop", "name": "reorder", "uid": "r"},
            "spec": {"assignments": [{"topic": "orders", "partition": 0, "replicas": [2, 1]}]},
            "status": {
                "clusterId": plan.cluster_id,
                "startedAt": "2026-01-01T00:00:00Z",
                "plan": {"hash": plan.hash, "document": plan.document},
            },
        }
        async with drain.served(controller):
            (index,) = indexes
            index.put(key, body)
            await wait_for_departures(cluster, 1)
            assert (await replicas_of(cluster, "orders"))[0] == (1, 2)
            index.remove(key)
            await drain.wait_for("Drained")
        assert len(moved(controller)) == 2
