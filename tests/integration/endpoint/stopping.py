"""Brokers that stop: what they say of it, and what they have led."""

from __future__ import annotations

import itertools
import re

from sandbox import KafkaBroker
from tests.support.cluster import Cluster
from tests.support.metadata import Partition
from tests.support.reassigning import create_topic

_ORDERS = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
_SUCCEEDED = "Controlled shutdown (?:succeeded|request returned success)"
_GIVEN_UP = "Proceeding to do an unclean shutdown"
_RETRIED = "Retrying controlled shutdown"


def spread_topic(cluster: Cluster, topic: str, partitions: int) -> None:
    """A topic that all three brokers host, and each leads a third of."""
    orders = itertools.cycle(_ORDERS)
    create_topic(cluster, topic, {partition: next(orders) for partition in range(partitions)})


def led_by(cluster: Cluster, broker_id: int) -> list[Partition]:
    """The partitions that a broker leads, by ZooKeeper."""
    states = cluster.znodes.states()
    return [tp for tp, state in states.items() if state and state["leader"] == broker_id]


def assert_stopped_cleanly(broker: KafkaBroker) -> None:
    """The broker's own log says so, at whatever attempt."""
    log = broker.process.log_of_this_run()
    assert re.search(_SUCCEEDED, log), f"{broker.name} was not told that it leads nothing any more"
    assert _GIVEN_UP not in log, broker.name
    assert broker.process.exit_code in (0, 143), broker.name  # 143: Java's own for SIGTERM


def assert_stopped_cleanly_at_the_first_attempt(broker: KafkaBroker) -> None:
    """The same without another attempt."""
    assert_stopped_cleanly(broker)
    assert _RETRIED not in broker.process.log_of_this_run(), broker.name
