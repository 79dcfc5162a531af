"""The rates that brokers need: the lowest that moves ask for, without a look at all of them."""

from __future__ import annotations

import random

from regent.controller.state.throttles import Throttles
from regent.zk_data.throttles import BrokerThrottle, PartitionThrottle, TopicThrottle


def recounted(throttles: Throttles) -> dict[int, BrokerThrottle]:
    """The rates by their definition."""
    each = [p for topic in throttles.topics.values() for p in topic.partitions.values()]
    brokers = sorted({b for p in each for b in (*p.leaders, *p.followers)})
    return {
        b: BrokerThrottle(
            min((p.rate for p in each if b in p.leaders), default=None),
            min((p.rate for p in each if b in p.followers), default=None),
        )
        for b in brokers
    }


def test_the_lowest_rate_counts_whatever_comes_and_goes() -> None:
    chance, throttles = random.Random(1), Throttles()
    for _ in range(500):
        topic = f"t{chance.randrange(8)}"
        partitions = {
            partition: PartitionThrottle(
                chance.choice([100, 200, 300]),
                leaders=tuple(chance.sample(range(6), 2)),
                followers=tuple(chance.sample(range(6), 1)),
            )
            for partition in range(chance.randrange(4))
        }
        is_gone = not partitions or chance.random() < 0.3
        throttles.set_topic(topic, None if is_gone else TopicThrottle(1, partitions))
        assert throttles.wanted_rates() == recounted(throttles)
    for topic in list(throttles.topics):
        throttles.set_topic(topic, None)
    assert throttles.wanted_rates() == {}
