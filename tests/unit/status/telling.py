"""What `regent why` says of an in-memory cluster, from the controller to the sentences."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from regent.controller.kafka_controller import KafkaController
from regent.model.errors import UnexpectedZooKeeperError
from regent.model.partition import TopicPartition
from regent.runtime.state_change_report import Reach, state_change_report
from regent.simulation.zookeeper import InMemoryZooKeeper
from regent.status.cluster import read_brokers, read_controller
from regent.status.reader import ClusterReader
from regent.status.topic import Target, read_topic, resolve
from regent.status.why import tell
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from regent.zk_data.operations import DatedZNode, ZNode
from tests.support.present import present
from tests.unit.controller.world import World, two_partitions

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BEGAN_MS, LATER_MS = 1_000_000_000, 1_000_060_123
BEGAN, LATER = "1970-01-12T13:46:40.000Z", "1970-01-12T13:47:40.123Z"
UNCLEAN = "unclean.leader.election.enable"


class Reads:
    """Reads of an in-memory ZooKeeper, of which every node was created and changed long ago.

    Args:
        closed: Nodes that may not be read: a request with one of them is refused.
    """

    def __init__(self, zookeeper: InMemoryZooKeeper, closed: Sequence[str] = ()) -> None:
        self._zookeeper = zookeeper
        self._closed = frozenset(closed)

    async def exists(self, paths: Sequence[str]) -> Sequence[bool]:
        return [self._zookeeper.get(path) is not None for path in paths]

    async def get_data(self, paths: Sequence[str]) -> Sequence[ZNode | None]:
        self._require(paths)
        return [self._zookeeper.get(path) for path in paths]

    async def get_dated(self, paths: Sequence[str]) -> Sequence[DatedZNode | None]:
        nodes = await self.get_data(paths)
        return [None if node is None else DatedZNode(node, 1_000, 2_000) for node in nodes]

    async def get_children(self, paths: Sequence[str]) -> Sequence[Sequence[str] | None]:
        self._require(paths)
        return [self._zookeeper.children(path) for path in paths]

    def _require(self, paths: Sequence[str]) -> None:
        for path in paths:
            if path in self._closed:
                raise UnexpectedZooKeeperError("NOAUTH", path)


def cluster() -> tuple[World, KafkaController]:
    return two_partitions(later_ms=LATER_MS, began_ms=BEGAN_MS)


def configure(world: World, **config: str) -> None:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    world.put(paths.topic_config("t"), encode_entity_config(settings))
    world.notify_config_change("topics/t")


def report_on(
    world: World,
    text: str,
    controller: KafkaController | None = None,
    partition: int | None = None,
    reach: Reach | None = None,
) -> dict[str, Any]:
    """As `regent why --json` prints it; without a controller nobody could be asked."""

    async def read() -> dict[str, Any]:
        reader, problems = ClusterReader(Reads(world.zookeeper), ""), []  # type: ignore[var-annotated]
        brokers = await read_brokers(reader, problems) or []
        target = await resolve(reader, text) if partition is None else Target(text, partition)
        regent: Any = None
        if controller is not None and controller.active is not None:
            found = state_change_report(
                controller.active.context, target.topic, target.partition, reach
            )
            regent = json.loads(json.dumps(found))
        changed = [p["partition"] for p in regent["partitions"] if p["changes"]] if regent else []
        return {
            "controller": await read_controller(reader, brokers, problems),
            "liveBrokers": [broker["id"] for broker in brokers],
            "problems": problems,
            "target": str(target),
            "remark": target.remark,
            "topic": await read_topic(reader, target, changed=changed, problems=problems),
            "regent": regent,
            "regentProblem": None if regent else "no Regent answers at http://regent",
        }

    return asyncio.run(read())


def story(
    world: World, text: str, controller: KafkaController | None = None, partition: int | None = None
) -> list[str]:
    return list(tell(report_on(world, text, controller, partition)))


def active_context(controller: KafkaController) -> Any:
    return present(controller.active).context
