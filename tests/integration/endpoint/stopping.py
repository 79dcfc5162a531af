"""Brokers that stop: what they say of it, and what they have led."""

from __future__ import annotations

import datetime
import itertools
import re

from sandbox import KafkaBroker
from tests.support.cluster import Cluster
from tests.support.metadata import Partition
from tests.support.reassigning import create_topic

_ORDERS = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
_BEGUN = "Starting controlled shutdown"
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


def has_begun_to_stop(broker: KafkaBroker) -> bool:
    """Whether it asks, or is about to ask, for its leaders to be moved."""
    return _BEGUN in broker.process.log_of_this_run()


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


def shutdown_request_ms(broker: KafkaBroker) -> int:
    """Time from the beginning of the controlled shutdown to its success, as the broker logged it.

    It includes finding the controller and connecting to it.
    """
    log = broker.process.log_of_this_run()
    begun, succeeded = (_logged_at(log, words) for words in (_BEGUN, _SUCCEEDED))
    return round((succeeded - begun).total_seconds() * 1000)


def _logged_at(log: str, words: str) -> datetime.datetime:
    found = re.search(rf"^\[([^\]]+)\] .*{words}", log, re.MULTILINE)
    assert found is not None, words
    return datetime.datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f")  # noqa: DTZ007  # compared only
