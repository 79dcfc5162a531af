"""Brokers are upgraded one by one from 2.4.1 to 3.9.1, and Regent leads from beginning to end."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from sandbox import KafkaBroker
from sandbox.kafka_jars import version_tuple
from sandbox.regent_process import RegentProcess
from tests.integration.endpoint.leader_watch import watched_leaders
from tests.integration.endpoint.stopping import (
    assert_stopped_cleanly_at_the_first_attempt,
    led_by,
    spread_topic,
)
from tests.support.cluster import Cluster, cluster_of, controller_id_of, regent
from tests.support.figures import Figure
from tests.support.soak import soak
from tests.support.workload import Workload, lossless_workload

pytestmark = [pytest.mark.integration, pytest.mark.slow, soak("upgrade")]

TOPIC = "led-everywhere"
PARTITIONS = 12
PROTOCOL = "inter.broker.protocol.version"
SESSION_TIMEOUT_MS = 18_000
"""Kafka's default. Every broker closes its session when it stops: none has to expire."""

LOOKS_IN_ZOOKEEPER_UP_TO = (2, 8, 2)
"""Brokers up to this version find the controller's address in ``/brokers/ids``."""

STORES_IDS_AT_ONCE_SINCE = (3, 0)
"""A broker 2.8.2 stores the id of a new replica with the next LeaderAndIsr, whoever sends it."""


class Step(NamedTuple):
    """What every broker runs when a step is over.

    Attributes:
        version: Of the binaries.
        protocol: inter.broker.protocol.version.
        feature: Version and status of ``/feature``: status 1 from protocol 2.7 on, another layout
            from 3.3 on.
    """

    version: str
    protocol: str
    feature: tuple[int, int]

    @property
    def has_topic_ids(self) -> bool:
        return self.protocol != "2.4"

    def __str__(self) -> str:
        return f"{self.version} at {self.protocol}"


START = Step("2.4.1", "2.4", (1, 0))
STEPS = (
    Step("2.8.2", "2.4", (1, 0)),
    Step("2.8.2", "2.8", (1, 1)),
    Step("3.9.1", "2.8", (1, 1)),
    Step("3.9.1", "3.9", (2, 1)),
)
"""Binaries first, then the protocol, as Kafka's notes on upgrades ask for it."""


class Upgrade:
    """A cluster that is being upgraded while records are written to it."""

    def __init__(self, cluster: Cluster, process: RegentProcess, producer: Workload) -> None:
        self.stops_ms: list[int] = []
        self._cluster = cluster
        self._process = process
        self._producer = producer
        self._controller_epoch = cluster.znodes.controller_epoch()
        self._topic_ids: dict[str, str] = {}

    def roll(self, step: Step) -> None:
        """Broker by broker; the next one when all replicas are in sync again."""
        for broker in self._cluster.kafka.brokers:
            self._stop(broker)
            broker.change_version(step.version)
            broker.config[PROTOCOL] = step.protocol
            broker.start()
            assert f"Kafka version: {step.version}" in broker.process.log_of_this_run()
            self._cluster.wait_in_sync()
            self._producer.wait_for_progress()

    def _stop(self, broker: KafkaBroker) -> None:
        assert led_by(self._cluster, broker.broker_id), "nothing is to be moved"
        began = time.monotonic()
        broker.stop()
        self.stops_ms.append(round((time.monotonic() - began) * 1000))
        assert_stopped_cleanly_at_the_first_attempt(broker)
        assert not led_by(self._cluster, broker.broker_id)
        self._producer.wait_for_progress()

    def check(self, step: Step) -> None:
        """What the step has to have changed, and what must never change."""
        cluster, znodes = self._cluster, self._cluster.znodes
        topic = f"created-at-{step.version}-{step.protocol}"
        cluster.tools.produce(topic, ["a record"])
        cluster.wait_in_sync()
        cluster.wait_for_consistency()
        assert znodes.controller() == controller_id_of(self._process)
        assert znodes.controller_epoch() == self._controller_epoch
        self._check_placement(topic)
        self._check_registration(step)
        self._check_topic_ids(step)
        cluster.wait(
            lambda: znodes.json("/feature"),
            f"/feature as of {step}",
            until=lambda node: (node["version"], node["status"]) == step.feature,
        )

    def _check_placement(self, created: str) -> None:
        znodes = self._cluster.znodes
        assert created in znodes.topics()
        for topic in znodes.topics():
            for replicas in (znodes.assignment(topic) or {}).values():
                assert set(replicas) <= set(self._cluster.broker_ids), topic
                assert len(replicas) == 3, topic

    def _check_registration(self, step: Step) -> None:
        own = f"/brokers/ids/{controller_id_of(self._process)}"
        wanted = version_tuple(step.version) <= LOOKS_IN_ZOOKEEPER_UP_TO
        self._cluster.wait(
            lambda: self._cluster.znodes.get(own) is not None,
            f"Regent to be registered as brokers of {step} need it",
            until=lambda is_registered: is_registered is wanted,
        )

    def _check_topic_ids(self, step: Step) -> None:
        """They appear with the protocol, never change, and brokers have stored them."""
        znodes = self._cluster.znodes

        def ids() -> dict[str, str | None]:
            return {t: znodes.json(f"/brokers/topics/{t}").get("topic_id") for t in znodes.topics()}

        if not step.has_topic_ids:
            assert set(ids().values()) == {None}
            return
        found = self._cluster.wait(
            ids, "all topics to have ids", until=lambda found: None not in found.values()
        )
        assert len(set(found.values())) == len(found)
        assert self._topic_ids.items() <= found.items()
        self._topic_ids = found
        allowed = (None,) if version_tuple(step.version) < STORES_IDS_AT_ONCE_SINCE else ()
        self._cluster.wait(
            lambda: self._not_stored(found, allowed=allowed),
            "the brokers to have stored the ids",
            until=lambda different: not different,
        )

    def _not_stored(
        self, ids: Mapping[str, str], *, allowed: tuple[None, ...]
    ) -> dict[str, str | None]:
        """What brokers have stored beside replicas that is not the topic's id."""
        return {
            f"{topic}-{partition} on {broker_id}": stored
            for topic, topic_id in ids.items()
            for partition, replicas in (self._cluster.znodes.assignment(topic) or {}).items()
            for broker_id in replicas
            if (stored := stored_id(self._cluster.broker(broker_id), topic, partition))
            not in (topic_id, *allowed)
        }


def stored_id(broker: KafkaBroker, topic: str, partition: int) -> str | None:
    """The id that a broker has stored beside a replica."""
    file = broker.state_path / "data-1" / f"{topic}-{partition}" / "partition.metadata"
    if not file.exists():
        return None
    found = re.search(r"^topic_id: (\S+)$", file.read_text(), re.MULTILINE)
    return None if found is None else found[1]


def test_regent_leads_through_a_rolling_upgrade_and_nothing_is_lost(
    tmp_path: Path, figure: Figure
) -> None:
    with cluster_of(
        START.version,
        inter_broker_protocol=None,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        auto_create_topics_enable=True,
        default_replication_factor=3,
        num_partitions=3,
    ) as cluster:
        cluster.wait_for_a_broker_as_controller()
        with regent(cluster) as process:
            process.wait_until_active()
            spread_topic(cluster, TOPIC, PARTITIONS)
            with (
                lossless_workload(cluster.tools, TOPIC, tmp_path) as producer,
                watched_leaders(cluster.kafka.zookeeper) as watch,
            ):
                upgrade = Upgrade(cluster, process, producer)
                upgrade.check(START)
                for step in STEPS:
                    upgrade.roll(step)
                    upgrade.check(step)
        figure("acknowledged records, all read back", len(producer.acknowledged()))
        figure("clean stops at the first attempt", len(upgrade.stops_ms))
        figure("stops took", f"{min(upgrade.stops_ms)} to {max(upgrade.stops_ms)} ms")
        figure(
            "longest time of a partition without a registered leader",
            f"{watch.longest_ms} ms, {watch.looks} looks",
        )
        figure("longest time without an acknowledgement", f"{producer.longest_gap_ms()} ms")
        assert watch.looks
        assert watch.offline == set()
