"""Brokers at their own protocol version, which the tests of a folder share."""

from __future__ import annotations

import contextlib

from tests.support.cluster import Cluster, cluster_of
from tests.support.lasting_threads import lasting_threads

_AT_ONCE = 2
"""Clusters that run at the same time in a process of tests."""


class Clusters:
    """Three brokers of a Kafka version, which create topics by themselves.

    Brokers of a version run until two other versions are needed. Internal topics stay from one
    module of tests to the next; they have two replicas, so that tests can drain a broker. Brokers
    also keep their logs, so each test gives its topics names of its own.
    """

    def __init__(self) -> None:
        self._running: dict[str, tuple[Cluster, contextlib.ExitStack]] = {}

    def healthy(self, version: str) -> Cluster:
        """All brokers run, one of them is the controller, and there are internal topics only."""
        if version in self._running:
            cluster, stack = self._running.pop(version)
            self._running[version] = cluster, stack  # the last is the one that was used last
            cluster.clear()
            return cluster
        while len(self._running) >= _AT_ONCE:
            _, stack = self._running.pop(next(iter(self._running)))
            stack.close()
        return self._start(version)

    def _start(self, version: str) -> Cluster:
        stack = contextlib.ExitStack()
        with lasting_threads():
            cluster = stack.enter_context(
                cluster_of(
                    version,
                    inter_broker_protocol=None,
                    auto_create_topics_enable=True,
                    default_replication_factor=2,
                    num_partitions=6,
                    offsets_topic_replication_factor=2,
                    transaction_state_log_replication_factor=2,
                )
            )
        self._running[version] = cluster, stack
        cluster.wait_for_a_broker_as_controller()
        return cluster

    def close(self) -> None:
        with contextlib.ExitStack() as all_of_them:
            for _, stack in self._running.values():
                all_of_them.push(stack)
            self._running.clear()
