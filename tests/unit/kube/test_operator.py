"""All parts of the Kubernetes side, wired, against an API server of which one object is left."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from regent.admin.commands import Accepted, AlterTopicConfig, DescribeTopicConfigs, Outcome
from regent.controller.commands import Command
from regent.controller.view import ClusterView, PartitionHealth, PartitionView, TopicView
from regent.kube.errors import (
    KubeApiError,
    KubeError,
    KubeRightLostError,
    KubeSchemaError,
    KubeTooLargeError,
    KubeUnavailableError,
)
from regent.kube.health import KubeHealth
from regent.kube.operator import KubeOperator
from regent.kube.settings import KubeSettings
from regent.model.cluster import Broker
from regent.model.topic_config import BrokerFacts
from tests.support.viewed_port import ViewedPort
from tests.unit.kube.jumping_clock import elapse, jumping, run
from tests.unit.kube.stored_objects import Store, body, key

SETTINGS = KubeSettings()


class OneObject(Store):
    """An API server that serves nothing but a KafkaTopic and Events."""

    async def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        if "/kafkatopics/orders" not in path and method != "POST":
            raise KubeUnavailableError("no answer")
        return await super().request(method, path, **options)


class Port(ViewedPort):
    """A controller of a cluster with one topic.

    Attributes:
        config: The configuration of the topic as ZooKeeper has it.
    """

    def __init__(self) -> None:
        self.config: dict[str, str] = {}
        self.changes: list[AlterTopicConfig] = []
        partition = PartitionView(0, PartitionHealth.ONLINE, (1,), 1, 0, (1,))
        self.view = ClusterView(
            is_active=True,
            is_complete=True,
            controller_epoch=5,
            brokers={1: Broker(1, 1, ())},
            topics={"orders": TopicView("orders", None, (partition,), czxid=7)},
            cluster_id="c",
        )

    async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        return [self._carry_out(command) for command in commands]

    def _carry_out(self, command: Command) -> Outcome:
        if isinstance(command, DescribeTopicConfigs):
            return Accepted({"orders": dict(self.config)})
        if isinstance(command, AlterTopicConfig):
            self.changes.append(command)
            self.config |= command.set
        return Accepted()


def started(port: Port, client: OneObject) -> tuple[KubeOperator, list[asyncio.Task[None]]]:
    """An operator that has listed the object, and begins to reconcile it."""
    operator = KubeOperator(
        port,
        SETTINGS,
        client=client,
        metrics=None,
        health=KubeHealth(),
        why_inactive=lambda: None,
    )
    topics = operator.kafka_topics
    topics.cache.put(copy.deepcopy(client.stored or {}))
    operator.queue.add(key())
    tasks = operator.start()
    topics.resync.loaded.set()
    return operator, tasks


async def stop(operator: KubeOperator, tasks: Sequence[asyncio.Task[None]]) -> None:
    operator.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@jumping
async def test_a_configuration_that_changed_unnoticed_is_read_with_the_next_resync() -> None:
    """As when a broker dies between the two writes, or a notification cannot be read."""
    stored = body(version="5", config={"retention.ms": "1000"})
    port, client = Port(), OneObject(stored)
    operator, tasks = started(port, client)
    await elapse(60)
    assert len(port.changes) == 1

    port.config["retention.ms"] = "5"
    operator.queue.add(key())
    await elapse(60)
    assert len(port.changes) == 1, "nobody has said so"

    await elapse(1.1 * SETTINGS.resync_interval_s + SETTINGS.resync_spread_s)
    assert len(port.changes) == 2
    await stop(operator, tasks)
    assert port.config == {"retention.ms": "1000"}


@jumping
async def test_what_is_ready_is_judged_again_when_a_broker_is_set_up_otherwise() -> None:
    def facts(broker_id: int, lag_ms: str) -> BrokerFacts:
        settings = {"log.cleaner.min.compaction.lag.ms": lag_ms}
        return BrokerFacts(
            broker_id=broker_id, versions=((3, 9),), settings=settings, has_answered=True
        )

    client = OneObject(body(version="5", config={"max.compaction.lag.ms": "1000"}))
    port, reasons, looks = Port(), list[str](), list[int]()
    operator, tasks = started(port, client)
    for shown in (
        (),
        (facts(1, "0"),),
        (facts(1, "0"), facts(2, "0")),
        (facts(1, "0"), facts(2, "5000")),
        (facts(1, "0"), facts(2, "0")),
    ):
        port.view = msgspec.structs.replace(port.view, broker_facts=shown)
        operator.on_view_changed(frozenset())
        await elapse(60)
        assert client.stored is not None
        conditions = {each["type"]: each for each in client.stored["status"]["conditions"]}
        reasons.append(conditions["Ready"]["reason"])
        looks.append(operator.kafka_topics.reconciler.reconciliations)
    await stop(operator, tasks)
    assert reasons == ["AsDeclared"] * 3 + ["InvalidConfig", "AsDeclared"]
    assert looks[0] == looks[1] == looks[2], "brokers of a known kind are no news"


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (KubeApiError("denied by a policy", status=403), 1),
        (KubeApiError("denied by a policy", status=422), 1),
        (KubeSchemaError("a webhook changes it"), 1),
        (KubeTooLargeError("request is too large", status=500), 1),
        (KubeRightLostError("no right", status=403), 1),
        (KubeApiError("overloaded", status=429), 0),
        (KubeApiError("internal error", status=500), 0),
        (KubeUnavailableError("no answer"), 0),
    ],
)
def test_resources_to_which_the_api_server_refuses_writes_are_counted_until_it_takes_them(
    error: KubeError, counted: int
) -> None:
    """Their statuses cannot say that they are out of date."""
    client, refuses, counts = OneObject(body(version="5")), [True], list[int]()

    def refuse() -> None:
        if refuses:
            client.before_write.append(refuse)
            raise error

    async def serve() -> None:
        operator, tasks = started(Port(), client)
        await elapse(60)
        counts.append(len(operator.refused))
        refuses.clear()
        await elapse(300)
        counts.append(len(operator.refused))
        await stop(operator, tasks)

    client.before_write = [refuse]
    run(serve())
    assert counts == [counted, 0]


class AnotherTime(OneObject):
    """Its clock is not that of this machine."""

    def server_time(self) -> datetime:
        return datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@jumping
async def test_times_in_statuses_are_those_of_the_api_server() -> None:
    """Replicas on machines whose clocks differ count from them, as from the end of a move."""
    client = AnotherTime(body(version="5"))
    operator, tasks = started(Port(), client)
    await elapse(60)
    await stop(operator, tasks)
    assert client.stored is not None
    conditions = client.stored["status"]["conditions"]
    assert {each["lastTransitionTime"] for each in conditions} == {"2030-01-02T03:04:05Z"}
