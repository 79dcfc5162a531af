"""Throttles are set before partitions move, and removed whatever happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from regent.admin.commands import Accepted, AlterTopicConfig, PartitionResult, Reason, Rejected
from regent.controller.reassignment.reassignments import abandon
from regent.controller.term.watch_check import process_watch_check
from regent.controller.topics.topic_commands import process_commands
from regent.model.errors import ZooKeeperUnavailableError
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.config import decode_config_change, decode_entity_config, encode_entity_config
from regent.zk_data.operations import SetData
from regent.zk_data.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    THROTTLED_BROKERS,
    THROTTLED_TOPICS,
    throttled_topic,
)
from tests.unit.controller.driving import once, raising
from tests.unit.controller.processes import denying
from tests.unit.controller.reassignment.moving import Cluster
from tests.unit.controller.world import T0, T1

RATE = 10_000_000
BROKERS = (1, 2, 3, 4, 5)


def config_at(cluster: Cluster, path: str) -> dict[str, str]:
    node = cluster.world.zookeeper.get(path)
    return {} if node is None else decode_entity_config(path, node.data)


def lists(cluster: Cluster) -> tuple[str | None, str | None]:
    """Throttled replicas of the topic, where they lead and where they follow."""
    config = config_at(cluster, paths.topic_config("t"))
    return config.get(LEADER_REPLICAS), config.get(FOLLOWER_REPLICAS)


def rates(cluster: Cluster) -> dict[int, tuple[str | None, str | None]]:
    """Rates of brokers that have any, for what they send and for what they receive."""
    configs = {b: config_at(cluster, paths.broker_config(b)) for b in BROKERS}
    found = {b: (c.get(LEADER_RATE), c.get(FOLLOWER_RATE)) for b, c in configs.items()}
    return {b: each for b, each in found.items() if each != (None, None)}


def notified(cluster: Cluster) -> set[str]:
    """Entities whose changes were announced to the brokers."""
    zookeeper = cluster.world.zookeeper
    nodes = map(paths.config_change, zookeeper.children(paths.CONFIG_CHANGES))
    found = set()
    for path in nodes:
        node = zookeeper.get(path)
        assert node is not None
        found.add(decode_config_change(path, node.data).entity_path)
    return found


def assert_nothing_is_left(cluster: Cluster) -> None:
    assert lists(cluster) == (None, None)
    assert rates(cluster) == {}
    zookeeper = cluster.world.zookeeper
    assert not zookeeper.children(THROTTLED_TOPICS)
    assert not zookeeper.children(THROTTLED_BROKERS)


def set_topic_config(cluster: Cluster, **config: str) -> None:
    cluster.world.put(
        paths.topic_config("t"),
        encode_entity_config({key.replace("_", "."): value for key, value in config.items()}),
    )


def set_broker_config(cluster: Cluster, broker_id: int | None, config: Mapping[str, str]) -> None:
    cluster.world.put(paths.broker_config(broker_id), encode_entity_config(config))


def test_copies_are_throttled_before_they_begin_and_not_when_they_have_arrived() -> None:
    cluster = Cluster((1, 2), (1, 2)).start()
    throttled_at_first: list[tuple[str | None, str | None]] = []

    def moves(effect: zk_effects.Effect[object]) -> None:
        if isinstance(effect, zk_effects.Write) and any(
            isinstance(op, SetData) and op.path == paths.topic("t") for op in effect.operations
        ):
            throttled_at_first.append(lists(cluster))

    cluster.world.driver.before = moves
    assert cluster.alter({T0: (2, 3)}, throttle=RATE) == {T0: PartitionResult()}
    assert throttled_at_first == [("0:2,0:1", "0:3")]
    assert rates(cluster) == {
        1: (str(RATE), None),
        2: (str(RATE), None),
        3: (None, str(RATE)),
    }
    assert notified(cluster) == {"topics/t", "brokers/1", "brokers/2", "brokers/3"}
    cluster.sync(1, 2, 3)
    assert cluster.stored().replicas == (2, 3)
    assert_nothing_is_left(cluster)


@pytest.mark.parametrize("rate", [5, 3 * RATE])
def test_a_partition_on_its_way_gets_another_rate(rate: int) -> None:
    cluster = Cluster((1, 2)).start()
    cluster.alter({T0: (2, 3)}, throttle=RATE)
    epoch = cluster.leadership()[2]
    assert cluster.alter({T0: (2, 3)}, throttle=rate) == {T0: PartitionResult()}
    assert rates(cluster)[3] == (None, str(rate))
    assert cluster.leadership()[2] == epoch
    assert cluster.alter({T0: (2, 3)}, throttle=0) == {T0: PartitionResult()}
    assert_nothing_is_left(cluster)
    assert cluster.stored().is_being_reassigned


def test_a_deletion_of_the_topic_leaves_no_throttle() -> None:
    cluster = Cluster((1, 2)).start()
    cluster.alter({T0: (2, 3)}, throttle=RATE)
    cluster.world.run(abandon(cluster.active, ["t"]))
    assert_nothing_is_left(cluster)


@pytest.mark.parametrize(
    "change", [{"set": {FOLLOWER_REPLICAS: ""}}, {"remove": [LEADER_REPLICAS]}]
)
def test_lists_of_throttled_replicas_are_not_altered_while_a_move_is_throttled(
    change: Mapping[str, Any],
) -> None:
    """The command was planned before the move began."""
    cluster = Cluster((1, 2)).start()
    set_topic_config(cluster, follower_replication_throttled_replicas="1:9")
    command = AlterTopicConfig("t", **change)
    cluster.alter({T0: (2, 3)}, throttle=RATE)
    (refused,) = cluster.world.run(process_commands(cluster.active, [command]))
    assert isinstance(refused, Rejected)
    assert refused.reason is Reason.REASSIGNMENT_IN_PROGRESS
    assert lists(cluster) == ("0:2,0:1", "1:9,0:3")
    cluster.sync(1, 2, 3)
    assert lists(cluster) == (None, "1:9")
    assert cluster.world.run(process_commands(cluster.active, [command])) == (Accepted(),)


def test_a_rate_for_all_brokers_is_not_exceeded() -> None:
    """One of a broker takes its place, and holds for all that others throttle there."""
    cluster = Cluster((1, 2)).start()
    set_broker_config(cluster, None, {FOLLOWER_RATE: "77", LEADER_RATE: "20000000"})
    cluster.alter({T0: (2, 3)}, throttle=RATE)
    assert rates(cluster) == {
        1: (str(RATE), None),
        2: (str(RATE), None),
        3: (None, "77"),
    }
    set_broker_config(cluster, None, {LEADER_RATE: "99"})
    cluster.world.run(process_watch_check(cluster.active))
    assert rates(cluster) == {1: ("99", None), 2: ("99", None), 3: (None, str(RATE))}
    set_broker_config(cluster, None, {})
    cluster.sync(1, 2, 3)
    assert_nothing_is_left(cluster)


@pytest.mark.parametrize("content", [b"{", b'{"version":1,"config":{"%s":"much"}}'])
def test_a_rate_for_all_brokers_that_cannot_be_read_does_not_count(content: bytes) -> None:
    """Brokers cannot read it either."""
    cluster = Cluster((1, 2)).start()
    cluster.world.put(paths.broker_config(), content.replace(b"%s", FOLLOWER_RATE.encode()))
    assert cluster.alter({T0: (2, 3)}, throttle=RATE) == {T0: PartitionResult()}
    assert rates(cluster)[3] == (None, str(RATE))


def test_a_look_at_what_is_throttled_writes_nothing_where_nothing_has_changed() -> None:
    cluster = Cluster((1, 2)).start()
    cluster.alter({T0: (2, 3)}, throttle=RATE)
    cluster.forget()
    cluster.world.driver.views.clear()
    cluster.world.run(process_watch_check(cluster.active))
    assert not [e for e in cluster.world.driver.performed if isinstance(e, zk_effects.Multi)]
    assert frozenset({"t"}) not in cluster.world.driver.views


class TestInterruptions:
    @pytest.mark.parametrize("skip", range(12))
    @pytest.mark.parametrize("is_lost", [False, True], ids=["not written", "answer lost"])
    def test_wherever_it_stops_no_throttle_stays(self, skip: int, is_lost: bool) -> None:
        cluster = Cluster((1, 2)).start()
        stop = raising(ZooKeeperUnavailableError("a test"))
        hook = once(zk_effects.Multi, stop, skip=skip)
        if is_lost:
            cluster.world.driver.after = hook
        else:
            cluster.world.driver.before = hook
        try:
            cluster.alter({T0: (2, 3)}, throttle=RATE)
            cluster.sync(1, 2, 3)
        except ZooKeeperUnavailableError:
            cluster.world.driver.before = cluster.world.driver.after = lambda _: None
            cluster.fail_over()
        if cluster.stored().is_being_reassigned:
            cluster.sync(1, 2, 3)
        assert_nothing_is_left(cluster)

    def test_a_topic_that_was_created_again_keeps_the_throttles_it_got_from_others(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.alter({T0: (2, 3)}, throttle=RATE)
        cluster.world.delete(paths.topic("t"))
        cluster.world.create_topic("t", {0: (1, 2)})
        set_topic_config(cluster, follower_replication_throttled_replicas="0:3")
        cluster.fail_over()
        assert lists(cluster) == (None, "0:3")
        assert rates(cluster) == {}
        assert not cluster.world.exists(throttled_topic("t"))


class TestWhatCannotBeWritten:
    def test_a_partition_that_cannot_be_throttled_does_not_move(self) -> None:
        cluster = Cluster((1, 2), (1, 2)).start()
        cluster.world.put(paths.broker_config(3), b"{")
        results = cluster.alter({T0: (2, 3), T1: (2, 4)}, throttle=RATE)
        assert "/config/brokers/3" in results[T0].message
        assert results[T1] == PartitionResult()
        assert not cluster.stored(0).is_being_reassigned
        assert cluster.stored(1).is_being_reassigned
        assert lists(cluster) == ("1:2,1:1", "1:4")

    def test_a_move_that_gets_no_other_target_keeps_its_throttle(self) -> None:
        """It goes on to its former target, at its former rate."""
        cluster = Cluster((1, 2)).start()
        cluster.alter({T0: (2, 3)}, throttle=RATE)
        before = lists(cluster), rates(cluster)
        cluster.world.put(paths.broker_config(4), b"{")
        results = cluster.alter({T0: (2, 4)}, throttle=2 * RATE)
        assert "/config/brokers/4" in results[T0].message
        set_broker_config(cluster, 4, {})
        assert cluster.stored().target_replicas == (2, 3)
        assert (lists(cluster), rates(cluster)) == before
        cluster.sync(1, 2, 3)
        assert cluster.stored().replicas == (2, 3)

    def test_a_removal_that_failed_is_tried_again(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.alter({T0: (2, 3)}, throttle=RATE)
        good = cluster.world.node(paths.broker_config(3))
        cluster.world.put(paths.broker_config(3), b"{")
        cluster.sync(1, 2, 3)
        assert cluster.world.log.errors("Throttles of brokers not changed")
        cluster.world.put(paths.broker_config(3), good.data)
        cluster.world.run(process_watch_check(cluster.active))
        assert_nothing_is_left(cluster)

    def test_a_removal_that_zookeeper_refuses_is_tried_again(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.alter({T0: (2, 3)}, throttle=RATE)
        cluster.world.driver.before = denying(throttled_topic("t"), zk_effects.Multi)
        cluster.sync(1, 2, 3)
        assert cluster.stored().replicas == (2, 3)
        cluster.fail_over()
        assert cluster.world.log.errors("Throttles of topics not changed")
        cluster.world.driver.before = lambda _: None
        cluster.world.run(process_watch_check(cluster.active))
        assert_nothing_is_left(cluster)

    def test_a_note_that_does_not_decode_is_left_alone_and_logged(self) -> None:
        cluster = Cluster((1, 2))
        cluster.world.put(throttled_topic("t"), b"{")
        cluster.start()
        assert cluster.world.log.errors("Malformed note")
        assert cluster.world.exists(throttled_topic("t"))

    def test_a_move_that_was_not_throttled_is_not_for_a_target_that_it_does_not_get(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.alter({T0: (2, 3)}, throttle=None)
        good = cluster.world.node(paths.topic("t"))
        cluster.world.put(paths.topic("t"), b"{")
        assert cluster.alter({T0: (2, 4)}, throttle=RATE)[T0].error_code
        cluster.world.put(paths.topic("t"), good.data)
        assert cluster.stored().target_replicas == (2, 3)
        assert_nothing_is_left(cluster)


def test_what_others_throttle_stays() -> None:
    cluster = Cluster((1, 2)).start()
    set_topic_config(cluster, retention_ms="7", follower_replication_throttled_replicas="0:3,1:9")
    set_broker_config(cluster, 3, {FOLLOWER_RATE: "77", "log.cleaner.threads": "2"})
    set_broker_config(cluster, 1, {"log.cleaner.threads": "2"})
    cluster.alter({T0: (2, 3)}, throttle=RATE)
    assert lists(cluster) == ("0:2,0:1", "0:3,1:9")
    assert rates(cluster)[3] == (None, "77")
    cluster.sync(1, 2, 3)
    assert config_at(cluster, paths.topic_config("t")) == {
        "retention.ms": "7",
        FOLLOWER_REPLICAS: "0:3,1:9",
    }
    assert config_at(cluster, paths.broker_config(1)) == {"log.cleaner.threads": "2"}
    assert config_at(cluster, paths.broker_config(3)) == {
        FOLLOWER_RATE: "77",
        "log.cleaner.threads": "2",
    }
    assert not cluster.world.exists(throttled_topic("t"))
