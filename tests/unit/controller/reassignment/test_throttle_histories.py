"""Whatever happens while partitions move: in the end exactly the throttles of others are left."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from regent.controller.term.watch_check import process_watch_check
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from regent.zk_data.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    THROTTLED_BROKERS,
    THROTTLED_TOPICS,
)
from tests.unit.controller.reassignment.moving import Cluster
from tests.unit.controller.reassignment.test_throttles import BROKERS, config_at
from tests.unit.controller.world import T0, T1

ORIGIN = (1, 2)
LISTS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
RATES = (LEADER_RATE, FOLLOWER_RATE)

Step = Callable[["History"], None]


class History:
    """A cluster in which others throttle, too.

    Attributes:
        entries: What others have put into the lists.
        rates: Rates that others have set, by broker and key.
    """

    def __init__(self) -> None:
        self.cluster = Cluster(ORIGIN, ORIGIN).start()
        self.entries: dict[str, list[str]] = {key: [] for key in LISTS}
        self.rates: dict[tuple[int, str], str] = {}

    def alter(self, partition: int, target: tuple[int, ...], rate: int | None) -> None:
        tp = (T0, T1)[partition]
        self.cluster.alter({tp: target}, throttle=rate)

    def arrive(self, partition: int) -> None:
        tp = (T0, T1)[partition]
        replicas = self.cluster.stored(partition).replicas
        self.cluster.sync(*replicas, tp=tp)

    def add_entry(self, key: str, entry: str) -> None:
        """Of a partition that Regent does not move."""
        path = paths.topic_config("t")
        config = config_at(self.cluster, path)
        present = [each for each in config.get(key, "").split(",") if each]
        if entry not in present:
            self.entries[key].append(entry)
            config[key] = ",".join([*present, entry])
            self.cluster.world.put(path, encode_entity_config(config))

    def set_rate(self, broker_id: int, key: str) -> None:
        path = paths.broker_config(broker_id)
        self.rates[broker_id, key] = "77"
        config = config_at(self.cluster, path) | {key: "77"}
        self.cluster.world.put(path, encode_entity_config(config))

    def verify(self) -> None:
        """``kafka-reassign-partitions --verify`` removes everything, whosever it is."""
        for path in (paths.topic_config("t"), *map(paths.broker_config, BROKERS)):
            config = config_at(self.cluster, path)
            kept = {key: value for key, value in config.items() if key not in (*LISTS, *RATES)}
            self.cluster.world.put(path, encode_entity_config(kept))
        self.entries = {key: [] for key in LISTS}
        self.rates = {}

    def check(self) -> None:
        self.cluster.world.run(process_watch_check(self.cluster.active))

    def fail_over(self) -> None:
        self.cluster.fail_over()

    def end(self) -> None:
        """Everything is cancelled, or has arrived."""
        for partition in (0, 1):
            self.alter(partition, ORIGIN, None)
            self.arrive(partition)


def steps() -> st.SearchStrategy[Step]:
    partitions = st.sampled_from([0, 1])
    targets = st.sampled_from([(2, 3), (3, 4), (1, 5), (2, 1)])
    rates = st.sampled_from([None, 0, 5_000, 9_000])
    return st.one_of(
        st.builds(
            lambda p, target, rate: lambda h: h.alter(p, target, rate), partitions, targets, rates
        ),
        st.builds(lambda p: lambda h: h.arrive(p), partitions),
        st.builds(
            lambda key, entry: lambda h: h.add_entry(key, entry),
            st.sampled_from(LISTS),
            st.sampled_from(["7:1", "8:2"]),
        ),
        st.builds(
            lambda broker_id, key: lambda h: h.set_rate(broker_id, key),
            st.sampled_from(BROKERS),
            st.sampled_from(RATES),
        ),
        st.sampled_from([History.verify, History.check, History.fail_over]),
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(steps(), min_size=1, max_size=12))
def test_exactly_what_others_throttle_is_left(history: list[Step]) -> None:
    subject = History()
    for step in history:
        step(subject)
    subject.end()
    cluster = subject.cluster
    config = config_at(cluster, paths.topic_config("t"))
    assert {key: config[key].split(",") for key in LISTS if key in config} == {
        key: entries for key, entries in subject.entries.items() if entries
    }
    left = {
        (broker_id, key): value
        for broker_id in BROKERS
        for key, value in config_at(cluster, paths.broker_config(broker_id)).items()
    }
    assert left == subject.rates
    zookeeper = cluster.world.zookeeper
    assert not zookeeper.children(THROTTLED_TOPICS)
    assert not zookeeper.children(THROTTLED_BROKERS)
    assert not cluster.active.context.throttles.count
