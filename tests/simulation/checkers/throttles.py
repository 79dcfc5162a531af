"""No throttle outlives the move that it was set for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regent.controller.state.context import ControllerContext
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.config import decode_entity_config
from regent.zk_data.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    THROTTLED_BROKERS,
    THROTTLED_TOPICS,
    decode_topic_throttle,
    throttled_broker,
    throttled_topic,
)
from tests.simulation.trace import require

if TYPE_CHECKING:
    from tests.simulation.world import World

_LISTS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
_RATES = (LEADER_RATE, FOLLOWER_RATE)


def check_throttles(world: World, loaded: ControllerContext) -> None:
    """Raise if a partition, or a broker, is throttled for nothing. Nobody but Regent throttles."""
    notes = world.zookeeper.children(THROTTLED_TOPICS)
    present = [topic for topic in notes if _is_about(world, topic)]
    moving = loaded.cluster.partitions_being_reassigned
    for topic in present:
        node = world.zookeeper.get(throttled_topic(topic))
        assert node is not None
        noted = decode_topic_throttle(throttled_topic(topic), node.data)
        for partition in noted.partitions:
            tp = TopicPartition(topic, partition)
            require(tp in moving, f"{tp} is throttled and does not move")
    for topic in loaded.cluster.topics:
        if topic in world.safety.seen.removed_by_hand:
            continue  # with its configuration or without
        config = _config(world, paths.topic_config(topic))
        lists = {key: config[key] for key in _LISTS if key in config}
        require(not lists or topic in present, f"{topic} has throttles without a note: {lists}")
    for broker_id in world.brokers:
        config = _config(world, paths.broker_config(broker_id))
        rates = {key: config[key] for key in _RATES if key in config}
        is_noted = world.zookeeper.get(throttled_broker(broker_id)) is not None
        require(not rates or is_noted, f"broker {broker_id} has rates without a note: {rates}")
    # What is noted of a topic that somebody has removed by hand goes with the next look at it.
    left = world.zookeeper.children(THROTTLED_BROKERS)
    require(not left or notes, f"brokers {left} are throttled, and nothing moves")


def _is_about(world: World, topic: str) -> bool:
    """Whether a note is about the topic that has the name now."""
    node = world.zookeeper.get(paths.topic(topic))
    note = world.zookeeper.get(throttled_topic(topic))
    if node is None or note is None:
        return False
    return decode_topic_throttle(throttled_topic(topic), note.data).czxid == node.czxid


def _config(world: World, path: str) -> dict[str, str]:
    node = world.zookeeper.get(path)
    return {} if node is None else decode_entity_config(path, node.data)
