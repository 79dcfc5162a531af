"""Throttles of the partitions that move (KIP-73), set before they move and removed when they are
there.

``kafka-reassign-partitions`` sets throttles and leaves them until somebody runs it again with
``--verify``, which removes everybody's. Here each topic and each broker has a note in ZooKeeper
that says what is Regent's. The note and the configuration are written in one transaction, so there
is no throttle without a note, wherever a controller stops. Who follows reads the notes and removes
what belongs to partitions that do not move any more; so no resource, and no memory, has to survive.

What could not be written (a right is missing, a configuration that others change all the time) is
tried again with each look at the watches, as is what somebody has removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeVar

from regent.admin.commands import UNTHROTTLED
from regent.controller.active_controller import ActiveController
from regent.controller.effects import PublishView
from regent.controller.reassignment import throttle_znodes
from regent.controller.reassignment.throttle_znodes import ConfiguredNodes
from regent.controller.reassignment.throttled_replicas import (
    entries_of,
    lower_rates,
    merge_list,
    merge_rate,
    rate_in,
)
from regent.model.errors import MalformedZNodeError
from regent.model.log import examples
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.zk_data import paths
from regent.zk_data.config import ConfigEntity, decode_entity_config
from regent.zk_data.operations import ZNode
from regent.zk_data.permitted_reads import list_permitted, read_permitted
from regent.zk_data.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    THROTTLED_BROKERS,
    THROTTLED_TOPICS,
    BrokerThrottle,
    PartitionThrottle,
    TopicThrottle,
    decode_broker_throttle,
    decode_topic_throttle,
    encode_broker_throttle,
    encode_topic_throttle,
    throttled_broker,
    throttled_topic,
)

T = TypeVar("T")

ATTEMPTS: Final = 5
"""At a configuration that somebody else changes at the same time."""

Changes = Mapping[int, PartitionThrottle | None]
"""By partition what throttles it from now on; None: nothing."""


async def load(active: ActiveController) -> None:
    """Read the notes of our predecessors. One that does not decode is logged and left alone."""
    throttles = active.context.throttles
    topics, brokers = await list_permitted([THROTTLED_TOPICS, THROTTLED_BROKERS], active.log)
    broker_ids = [b for child in brokers or () if (b := paths.broker_id_of(child)) is not None]
    note_paths = [*map(throttled_topic, topics or ()), *map(throttled_broker, broker_ids)]
    notes = await read_permitted(note_paths)
    count = len(topics or ())
    for topic, note in zip(topics or (), notes[:count], strict=True):
        throttles.set_topic(
            topic, _note(active, decode_topic_throttle, throttled_topic(topic), note)
        )
    for broker_id, note in zip(broker_ids, notes[count:], strict=True):
        throttles.set_broker(
            broker_id, _note(active, decode_broker_throttle, throttled_broker(broker_id), note)
        )


async def throttle(
    active: ActiveController, moves: Mapping[TopicPartition, ReplicaAssignment], rate: int
) -> dict[TopicPartition, str]:
    """Throttle the copies that assignments lead to.

    Args:
        moves: The assignments, before the partitions are on their way or while they are.
        rate: Bytes a second, or :data:`~regent.admin.commands.UNTHROTTLED`.

    Returns:
        Partitions that are not throttled as they should be, with reasons.
    """
    changes: dict[str, dict[int, PartitionThrottle | None]] = {}
    known = active.context.throttles
    for tp, assignment in moves.items():
        wanted = _throttle_of(assignment, rate)
        if wanted is not None or known.rate_of(tp) is not None:
            changes.setdefault(tp.topic, {})[tp.partition] = wanted
    if not changes:
        return {}
    topics = await _write_topics(active, changes)
    brokers = await _write_brokers(active, _brokers_to_change(active))
    foreign = [broker_id for broker_id in _brokers_to_change(active) if broker_id not in brokers]
    if foreign:
        active.log.info("Rates of throttles that others have set are kept", brokers=foreign)
    await PublishView(frozenset(changes))
    return {
        TopicPartition(topic, partition): reason
        for topic, partitions in changes.items()
        for partition, wanted in partitions.items()
        if (reason := topics.get(topic) or _failure_at(brokers, wanted))
    }


def throttles_of(
    active: ActiveController, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, PartitionThrottle | None]:
    """What throttles partitions now, for :func:`put_back`."""
    return {tp: active.context.throttles.of(tp) for tp in partitions}


async def put_back(
    active: ActiveController, before: Mapping[TopicPartition, PartitionThrottle | None]
) -> None:
    """Throttle partitions as before: they do not get the target that they were throttled for, and
    may be on their way to another one."""
    changes: dict[str, dict[int, PartitionThrottle | None]] = {}
    for tp, throttled in before.items():
        if active.context.throttles.of(tp) != throttled:
            changes.setdefault(tp.topic, {})[tp.partition] = throttled
    await _settle_topics(active, changes)


async def release(active: ActiveController, topics: Iterable[str]) -> None:
    """Remove what throttles partitions of topics that do not move any more."""
    await _settle_topics(active, _over(active, dict.fromkeys(topics)))


async def settle(active: ActiveController) -> None:
    """Bring everything to what it should be: what has ended is removed, what somebody has removed
    is set again."""
    throttles = active.context.throttles
    if not throttles.count:
        return
    over = _over(active, throttles.topics)
    await _settle_topics(active, {topic: over.get(topic, {}) for topic in throttles.topics})
    wanted = throttles.wanted_rates()
    await _write_brokers(active, dict.fromkeys([*throttles.brokers, *wanted]))


def _over(
    active: ActiveController, topics: Collection[str]
) -> dict[str, dict[int, PartitionThrottle | None]]:
    """Throttled partitions of topics that do not move, by topic."""
    throttles, moving = active.context.throttles, active.context.cluster.partitions_being_reassigned
    over: dict[str, dict[int, PartitionThrottle | None]] = {}
    for topic in topics:
        known = throttles.topics.get(topic)
        if known is None:
            continue
        still = _is_same_topic(active, topic, known)
        ended = [p for p in known.partitions if not still or TopicPartition(topic, p) not in moving]
        if ended:
            over[topic] = dict.fromkeys(ended)
    return over


def _is_same_topic(active: ActiveController, topic: str, known: TopicThrottle) -> bool:
    """Whether a note is about the topic that has the name now."""
    czxid = active.context.cluster.topic_czxids.get(topic, 0)
    return not known.czxid or not czxid or known.czxid == czxid


async def _settle_topics(active: ActiveController, changes: Mapping[str, Changes]) -> None:
    if not changes:
        return
    before = {topic: active.context.throttles.topics.get(topic) for topic in changes}
    await _write_topics(active, changes)
    await _write_brokers(active, _brokers_to_change(active))
    now = active.context.throttles.topics
    changed = frozenset(topic for topic in changes if now.get(topic) != before[topic])
    if changed:
        await PublishView(changed)


def _throttle_of(assignment: ReplicaAssignment, rate: int) -> PartitionThrottle | None:
    """What throttles the copies of a partition; None: there are none, or they are not throttled."""
    adding = assignment.adding_replicas
    if rate == UNTHROTTLED or not adding:
        return None
    sending = tuple(broker for broker in assignment.replicas if broker not in adding)
    return PartitionThrottle(rate, leaders=sending, followers=adding)


def _failure_at(brokers: Mapping[int, str], wanted: PartitionThrottle | None) -> str | None:
    if wanted is None:
        return None
    return next((brokers[b] for b in (*wanted.leaders, *wanted.followers) if b in brokers), None)


# Topics


async def _write_topics(active: ActiveController, changes: Mapping[str, Changes]) -> dict[str, str]:
    """Change what is throttled of topics. Returns those that could not be written, with reasons."""
    remaining, failures = list(changes), dict[str, str]()
    for _ in range(ATTEMPTS):
        failures = {}
        nodes = await throttle_znodes.read(
            [(paths.topic_config(topic), throttled_topic(topic)) for topic in remaining]
        )
        for topic, each in zip(remaining, nodes, strict=True):
            try:
                failure = await _write_topic(active, topic, each, changes[topic])
            except MalformedZNodeError as error:
                failure = f"{error.path} cannot be read: {error.reason}"
            if failure is not None:
                failures[topic] = failure
        remaining = list(failures)
        if not remaining:
            return {}
    active.log.error(
        "Throttles of topics not changed",
        topics=len(failures),
        examples=examples(f"{topic}: {why}" for topic, why in failures.items()),
    )
    return failures


async def _write_topic(
    active: ActiveController, topic: str, nodes: ConfiguredNodes, changes: Changes
) -> str | None:
    """Write the list of a topic with its note. Returns why that was not possible.

    Raises:
        MalformedZNodeError: The configuration cannot be read.
    """
    context = active.context
    before = _note(active, decode_topic_throttle, nodes.note_path, nodes.note) or TopicThrottle()
    if not _is_same_topic(active, topic, before):
        before = TopicThrottle()
    partitions = {
        partition: wanted
        for partition, wanted in {**before.partitions, **changes}.items()
        if wanted is not None
    }
    config = throttle_znodes.config_of(nodes)
    leaders = merge_list(
        config.get(LEADER_REPLICAS),
        ours=before.leader_replicas,
        wanted=[e for p, each in partitions.items() for e in entries_of(p, each.leaders)],
    )
    followers = merge_list(
        config.get(FOLLOWER_REPLICAS),
        ours=before.follower_replicas,
        wanted=[e for p, each in partitions.items() for e in entries_of(p, each.followers)],
    )
    after = None
    if partitions:
        czxid = context.cluster.topic_czxids.get(topic, 0)
        after = TopicThrottle(czxid, partitions, leaders.ours, followers.ours)
    operations = throttle_znodes.changes_of(
        ConfigEntity("topics", topic),
        nodes,
        note=None if after is None else encode_topic_throttle(after),
        config=config,
        values={LEADER_REPLICAS: leaders.value, FOLLOWER_REPLICAS: followers.value},
    )
    failure = await throttle_znodes.write(active, operations)
    if failure is None and after != context.throttles.topics.get(topic):
        context.throttles.set_topic(topic, after)
        context.cluster.note_change(topic)
    return failure


# Brokers


def _brokers_to_change(active: ActiveController) -> list[int]:
    """Brokers with other rates than they need, as far as the notes say."""
    throttles = active.context.throttles
    wanted = throttles.wanted_rates()
    return [
        broker_id
        for broker_id in dict.fromkeys([*wanted, *throttles.brokers])
        if wanted.get(broker_id) != throttles.brokers.get(broker_id)
    ]


async def _write_brokers(active: ActiveController, broker_ids: Collection[int]) -> dict[int, str]:
    """Give brokers the rates that they need. Returns those that could not be written."""
    remaining, failures = list(broker_ids), dict[int, str]()
    limits = await _rates_for_all(active) if remaining else BrokerThrottle()
    for _ in range(ATTEMPTS):
        if not remaining:
            return {}
        failures = {}
        nodes = await throttle_znodes.read(
            [(paths.broker_config(b), throttled_broker(b)) for b in remaining]
        )
        wanted = active.context.throttles.wanted_rates()
        for broker_id, each in zip(remaining, nodes, strict=True):
            try:
                rates = lower_rates(wanted.get(broker_id, BrokerThrottle()), limits)
                failure = await _write_broker(active, broker_id, each, rates)
            except MalformedZNodeError as error:
                failure = f"{error.path} cannot be read: {error.reason}"
            if failure is not None:
                failures[broker_id] = failure
        remaining = list(failures)
    if failures:
        active.log.error(
            "Throttles of brokers not changed",
            brokers=list(failures),
            examples=examples(failures.values()),
        )
    return failures


async def _rates_for_all(active: ActiveController) -> BrokerThrottle:
    """Rates that somebody has set for all brokers that have none of their own."""
    path = paths.broker_config()
    (node,) = await read_permitted([path])
    try:
        config = {} if node is None else decode_entity_config(path, node.data)
    except MalformedZNodeError as error:
        active.log.error("Rates for all brokers not read", path=path, reason=error.reason)
        return BrokerThrottle()
    return BrokerThrottle(rate_in(config.get(LEADER_RATE)), rate_in(config.get(FOLLOWER_RATE)))


async def _write_broker(
    active: ActiveController, broker_id: int, nodes: ConfiguredNodes, wanted: BrokerThrottle
) -> str | None:
    """Write the rates of a broker with its note. Returns why that was not possible.

    Raises:
        MalformedZNodeError: The configuration cannot be read.
    """
    before = _note(active, decode_broker_throttle, nodes.note_path, nodes.note) or BrokerThrottle()
    config = throttle_znodes.config_of(nodes)
    leader = merge_rate(config.get(LEADER_RATE), ours=before.leader_rate, wanted=wanted.leader_rate)
    follower = merge_rate(
        config.get(FOLLOWER_RATE), ours=before.follower_rate, wanted=wanted.follower_rate
    )
    after = None
    if leader.ours is not None or follower.ours is not None:
        after = BrokerThrottle(leader.ours, follower.ours)
    operations = throttle_znodes.changes_of(
        ConfigEntity("brokers", str(broker_id)),
        nodes,
        note=None if after is None else encode_broker_throttle(after),
        config=config,
        values={LEADER_RATE: leader.value, FOLLOWER_RATE: follower.value},
    )
    failure = await throttle_znodes.write(active, operations)
    if failure is None:
        active.context.throttles.set_broker(broker_id, after)
    return failure


# Notes


def _note(
    active: ActiveController, decode: Callable[[str, bytes], T], path: str, note: ZNode | None
) -> T | None:
    """What a note says; None if there is none, or it does not decode, which is logged."""
    if note is None:
        return None
    try:
        return decode(path, note.data)
    except MalformedZNodeError as error:
        active.log.error("Malformed note", path=error.path, reason=error.reason)
        return None
