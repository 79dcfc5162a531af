"""PartitionReassignments from the resource to the brokers and back: the real controller over a
simulated cluster, whose safety checker follows every step, and an API server in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

from regent.admin.commands import AlterPartitionReassignments
from regent.kube.kind_wiring import serve_partition_reassignments
from regent.model.cluster import Broker
from regent.model.partition import TopicPartition
from regent.model.replica_sizes import ReplicaSizes
from regent.zk_data.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.waiting import until
from tests.unit.kube.serving_moves import ServedResource
from tests.unit.reconcile.reassignments.reassigning import AUTOMATIC, assign

Replicas = Sequence[tuple[int, ...]]


def reassignment(**spec: Any) -> ServedResource:
    return ServedResource(
        serve_partition_reassignments,
        "PartitionReassignment",
        **{"approval": AUTOMATIC, **spec},
    )


def sent(controller: LiveController) -> list[AlterPartitionReassignments]:
    return [each for each in controller.commands if isinstance(each, AlterPartitionReassignments)]


def create(cluster: SimulatedCluster, origin: Replicas, target: Replicas) -> None:
    cluster.create_topic("orders", origin)
    for partition, replicas in enumerate(target):
        cluster.expect_move("orders", partition, replicas)
        cluster.expect_move("orders", partition, origin[partition])


async def wait_for_arrivals(cluster: SimulatedCluster, least: int) -> None:
    """Wait until so many partitions are on broker 3 alone."""

    async def look() -> int:
        return await asyncio.to_thread(lambda: cluster.replicas("orders").count((3,)))

    await until(look, f"{least} partitions to arrive", until=lambda arrived: arrived >= least)


async def test_every_partition_arrives_by_events_alone_and_is_asked_for_once() -> None:
    origin, target = [(1, 2)] * 12, [(3, 2)] * 12
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create(cluster, origin, target)
        move = reassignment(assignments=assign(*target), concurrency={"total": 3})
        async with move.served(controller):
            await move.wait_for("Completed")
        assert cluster.replicas("orders") == target
        assert move.status["summary"] == "12/12"
        asked = [tp for command in sent(controller) for tp in command.targets]
        assert sorted(asked) == [("orders", partition) for partition in range(12)]
        assert max(len(command.targets) for command in sent(controller)) <= 3


async def test_however_often_processes_and_terms_end_the_same_plan_goes_on() -> None:
    origin, target = [(1,)] * 20, [(3,)] * 20
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create(cluster, origin, target)
        move = reassignment(assignments=assign(*target), concurrency={"total": 1})
        plans = set()
        for least in range(1, 20, 3):
            async with move.served(controller):
                await wait_for_arrivals(cluster, least)
            plans.add((move.status["plan"]["document"], move.status["startedAt"]))
            await asyncio.to_thread(controller.expire_session)
        async with move.served(controller):
            await move.wait_for("Completed")
        plans.add((move.status["plan"]["document"], move.status["startedAt"]))
        assert cluster.replicas("orders") == target
        assert len(plans) == 1


async def wait_for_rates(cluster: SimulatedCluster, *rates: int | None) -> None:
    """Wait until broker 1 sends, and broker 3 receives, so many bytes a second at most."""

    def look() -> list[str | None]:
        sending, receiving = cluster.broker_config(1), cluster.broker_config(3)
        return [sending.get(LEADER_RATE), receiving.get(FOLLOWER_RATE)]

    await until(
        lambda: asyncio.to_thread(look),
        f"rates {rates}",
        until=lambda now: now == [None if rate is None else str(rate) for rate in rates],
    )


async def test_copies_are_throttled_until_they_have_arrived() -> None:
    origin, target = [(1, 2)] * 4, [(3, 2)] * 4
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create(cluster, origin, target)
        cluster.pause_broker(3)  # nothing is copied there
        move = reassignment(assignments=assign(*target), throttle={"bytesPerSecond": 10_000})
        async with move.served(controller) as serving:
            await wait_for_rates(cluster, 10_000, 10_000)
            assert set(cluster.config("orders")[FOLLOWER_REPLICAS].split(",")) == {
                f"{partition}:3" for partition in range(4)
            }
            serving.change(throttle={"bytesPerSecond": 20_000})
            await wait_for_rates(cluster, 20_000, 20_000)
            serving.change(throttle=None)
            await wait_for_rates(cluster, None, None)
            serving.change(throttle={"bytesPerSecond": 30_000})
            await wait_for_rates(cluster, 30_000, 30_000)
            cluster.resume_broker(3)
            await move.wait_for("Completed")
        assert cluster.replicas("orders") == target
        assert (cluster.config("orders"), cluster.broker_config(3)) == ({}, {})


async def test_throttles_go_although_the_resource_and_the_term_have_ended() -> None:
    origin, target = [(1, 2)] * 4, [(3, 2)] * 4
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create(cluster, origin, target)
        cluster.pause_broker(3)
        move = reassignment(assignments=assign(*target), throttle={"bytesPerSecond": 10_000})
        async with move.served(controller):
            await wait_for_rates(cluster, 10_000, 10_000)
        # From here on nobody serves the resource: it might as well be deleted.
        await asyncio.to_thread(controller.expire_session)
        cluster.resume_broker(3)
        await wait_for_arrivals_at(cluster, target)
        await wait_for_rates(cluster, None, None)
        assert cluster.config("orders") == {}


async def wait_for_arrivals_at(cluster: SimulatedCluster, target: Replicas) -> None:
    await until(
        lambda: asyncio.to_thread(lambda: cluster.replicas("orders")),
        f"replicas {target}",
        until=lambda replicas: replicas == target,
    )


async def test_however_often_processes_end_what_was_moved_is_undone_and_then_deleted() -> None:
    origin, target = [(1, 2)] * 12, [(3, 2)] * 12
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create(cluster, origin, target)
        move = reassignment(assignments=assign(*target), concurrency={"total": 2})
        async with move.served(controller):
            await move.wait_for("Completed")
        async with move.served(controller) as serving:
            serving.change(desiredState="Undone")
            await move.wait_for("Undoing")
        await asyncio.to_thread(controller.expire_session)
        async with move.served(controller) as serving:
            await move.wait_for("Undone")
            assert cluster.replicas("orders") == origin
            assert "document" not in move.status["plan"]
            serving.change(ttlSecondsAfterFinished=0)
            await until(
                lambda: asyncio.to_thread(lambda: move.store.stored is None),
                "the resource to be deleted",
            )
        assert controller.view.topics["orders"].partitions[0].replicas == (1, 2)


class Disks:
    """What the brokers of a simulated cluster say of their disks."""

    def __init__(self, **sizes: int) -> None:
        self.sizes = {int(name.removeprefix("broker_")): size for name, size in sizes.items()}

    async def replica_sizes(
        self, broker: Broker, partitions: Collection[TopicPartition]
    ) -> ReplicaSizes:
        return ReplicaSizes(dict.fromkeys(partitions, self.sizes[broker.broker_id]))


async def test_the_status_follows_what_the_brokers_say_of_the_copies() -> None:
    origin, target = [(1, 2)] * 4, [(3, 2)] * 4
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create(cluster, origin, target)
        cluster.pause_broker(3)  # nothing is copied there
        move = reassignment(assignments=assign(*target))
        disks = Disks(broker_1=1000, broker_2=1000, broker_3=300)
        move.replica_sizes = disks

        def progress() -> dict[str, Any]:
            found: dict[str, Any] = move.status.get("progress", {})
            return found

        async with move.served(controller):
            for size in (300, 600):
                disks.sizes[3] = size
                wanted = 4 * size

                async def is_shown(wanted: int = wanted) -> bool:
                    return progress().get("bytesCopied") == wanted

                await until(is_shown, f"{size} bytes of each to be copied")
            assert progress()["bytesTotal"] == 4000
            assert progress()["bytesPerSecond"] > 0
            # What is in sync has all. It leads then, and may be asked for the total.
            disks.sizes[3] = 1000
            cluster.resume_broker(3)
            await move.wait_for("Completed")
        assert (progress()["bytesCopied"], progress()["bytesTotal"]) == (4000, 4000)
