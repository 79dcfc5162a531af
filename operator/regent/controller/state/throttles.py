"""What is throttled of the partitions that move, as ``/regent/throttles`` has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from regent.model.partition import TopicPartition
from regent.zk_data.throttles import BrokerThrottle, PartitionThrottle, TopicThrottle


class Throttles:
    """The throttles of this controller and of its predecessors.

    What brokers need is counted as topics change: each partition that arrives asks for it, and many
    may be throttled.

    Attributes:
        topics: By topic.
        brokers: Rates that are Regent's, by broker.
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicThrottle] = {}
        self.brokers: dict[int, BrokerThrottle] = {}
        self._leaders = _Rates()
        self._followers = _Rates()

    @property
    def count(self) -> int:
        """Topics and brokers with throttles of Regent."""
        return len(self.topics) + len(self.brokers)

    def of(self, tp: TopicPartition) -> PartitionThrottle | None:
        """What throttles the copies of a partition; None: nothing of Regent's."""
        topic = self.topics.get(tp.topic)
        return None if topic is None else topic.partitions.get(tp.partition)

    def rate_of(self, tp: TopicPartition) -> int | None:
        """Bytes a second to which the copies of a partition are throttled; None: not by Regent."""
        throttle = self.of(tp)
        return None if throttle is None else throttle.rate

    def set_topic(self, topic: str, throttle: TopicThrottle | None) -> None:
        """What is throttled of a topic now; None: nothing."""
        before = self.topics.pop(topic, None)
        if before is not None:
            self._count(before, -1)
        if throttle is not None:
            self.topics[topic] = throttle
            self._count(throttle, 1)

    def set_broker(self, broker_id: int, throttle: BrokerThrottle | None) -> None:
        """Which rates of a broker are Regent's now; None: none."""
        if throttle is None:
            self.brokers.pop(broker_id, None)
        else:
            self.brokers[broker_id] = throttle

    def wanted_rates(self) -> Mapping[int, BrokerThrottle]:
        """The rates that brokers need. A broker has one for all that it sends, and one for all that
        it receives: where moves ask for several, the lowest counts."""
        leaders, followers = self._leaders.lowest(), self._followers.lowest()
        return {
            broker_id: BrokerThrottle(leaders.get(broker_id), followers.get(broker_id))
            for broker_id in sorted({**leaders, **followers})
        }

    def _count(self, throttle: TopicThrottle, change: int) -> None:
        for each in throttle.partitions.values():
            self._leaders.count(each.leaders, each.rate, change)
            self._followers.count(each.followers, each.rate, change)


class _Rates:
    """How many partitions ask for which rate, by broker."""

    def __init__(self) -> None:
        self._partitions: dict[int, dict[int, int]] = {}

    def count(self, brokers: Iterable[int], rate: int, change: int) -> None:
        """So many more partitions ask these brokers for a rate."""
        for broker_id in brokers:
            rates = self._partitions.setdefault(broker_id, {})
            rates[rate] = rates.get(rate, 0) + change
            if not rates[rate]:
                del rates[rate]
            if not rates:
                del self._partitions[broker_id]

    def lowest(self) -> dict[int, int]:
        """By broker."""
        return {broker_id: min(rates) for broker_id, rates in self._partitions.items()}
