"""Facts that brokers report about themselves: their version, the limits of their settings."""

from __future__ import annotations

from collections.abc import Callable

from regent.cluster.facts import ClusterFacts
from regent.model.cluster import Broker
from regent.model.topic_config import BrokerFacts


class KnownBrokerFacts:
    """Facts by broker, each with the life of the broker that it was learned of.

    Attributes:
        deletions_wait: Topics are marked, and no broker has said yet whether they may be deleted.
    """

    def __init__(self, cluster: ClusterFacts, *, has_replicas: Callable[[int], bool]) -> None:
        self._cluster = cluster
        self._has_replicas = has_replicas
        self._facts: dict[int, tuple[int, BrokerFacts]] = {}
        self._live: tuple[BrokerFacts, ...] | None = None
        self.deletions_wait = False

    def learn(self, broker_epoch: int, facts: BrokerFacts) -> None:
        """Remember what one life of a broker has said about itself."""
        self._facts[facts.broker_id] = (broker_epoch, facts)
        self._live = None

    def brokers_changed(self) -> None:
        """Others are live than before."""
        self._live = None

    def all(self) -> tuple[BrokerFacts, ...]:
        """Return the known facts of each live broker, in order of ids. Some have no facts yet.

        Behind them those that are down and have reported before: they load the configurations of
        all topics when they start, and one that they cannot load would keep them from it. Brokers
        without replicas are left out: they are probably gone forever.
        """
        if self._live is None:
            self._live = tuple(map(self.of, self._cluster.brokers.values()))
        down = [
            facts
            for broker_id, (_, facts) in self._facts.items()
            if broker_id not in self._cluster.brokers and self._has_replicas(broker_id)
        ]
        return (*self._live, *down) if down else self._live

    def of(self, broker: Broker) -> BrokerFacts:
        """Return the facts that this life of a broker has reported, possibly none."""
        epoch, known = self._facts.get(broker.broker_id, (None, None))
        if known is None or epoch != broker.epoch:
            return BrokerFacts(broker_id=broker.broker_id)
        return known
