"""What brokers have said about themselves: their version, their settings' limits."""

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
        """What is known of each live broker, in order of their ids; of some only that they live.

        Behind them those that are down and have reported before: they load the configurations of
        all topics when they start, and one that they cannot load would keep them from it. Brokers
        without replicas are left out: those are most likely gone for good.
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
        """What this life of a broker has said, which may be nothing."""
        epoch, known = self._facts.get(broker.broker_id, (None, None))
        if known is None or epoch != broker.epoch:
            return BrokerFacts(broker_id=broker.broker_id)
        return known
