"""What is throttled of the partitions that move, as ``/regent/throttles`` has it."""

from __future__ import annotations

from collections.abc import Mapping

from regent.model.partition import TopicPartition
from regent.zk_data.throttles import BrokerThrottle, TopicThrottle


class Throttles:
    """The throttles of this controller and of its predecessors.

    Attributes:
        topics: By topic.
        brokers: Rates that are Regent's, by broker.
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicThrottle] = {}
        self.brokers: dict[int, BrokerThrottle] = {}

    @property
    def count(self) -> int:
        """Topics and brokers with throttles of Regent."""
        return len(self.topics) + len(self.brokers)

    def rate_of(self, tp: TopicPartition) -> int | None:
        """Bytes a second to which the copies of a partition are throttled; None: not by Regent."""
        topic = self.topics.get(tp.topic)
        throttle = None if topic is None else topic.partitions.get(tp.partition)
        return None if throttle is None else throttle.rate

    def set_topic(self, topic: str, throttle: TopicThrottle | None) -> None:
        """What is throttled of a topic now; None: nothing."""
        if throttle is None:
            self.topics.pop(topic, None)
        else:
            self.topics[topic] = throttle

    def set_broker(self, broker_id: int, throttle: BrokerThrottle | None) -> None:
        """Which rates of a broker are Regent's now; None: none."""
        if throttle is None:
            self.brokers.pop(broker_id, None)
        else:
            self.brokers[broker_id] = throttle

    def wanted_rates(self) -> Mapping[int, BrokerThrottle]:
        """The rates that brokers need. A broker has one for all that it sends, and one for all that
        it receives: where moves ask for several, the lowest counts."""
        leaders: dict[int, int] = {}
        followers: dict[int, int] = {}
        for topic in self.topics.values():
            for throttle in topic.partitions.values():
                for rates, brokers in (
                    (leaders, throttle.leaders),
                    (followers, throttle.followers),
                ):
                    for broker_id in brokers:
                        rates[broker_id] = min(rates.get(broker_id, throttle.rate), throttle.rate)
        return {
            broker_id: BrokerThrottle(leaders.get(broker_id), followers.get(broker_id))
            for broker_id in sorted({**leaders, **followers})
        }
