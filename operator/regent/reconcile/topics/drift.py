"""How a topic differs from its resource, and the commands that make the difference go away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from regent.admin.commands import (
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    ReassignTopic,
    TopicCommand,
)
from regent.controller.topic_defaults import TopicDefaults, topic_defaults
from regent.controller.view import PartitionView, TopicView
from regent.model.topic_config import is_same_value
from regent.reconcile.topics.request import TopicRequest
from regent.resources.conditions import enumerate_some, shorten
from regent.resources.kafka_topic import KafkaTopicSpec
from regent.resources.kafka_topic_status import DriftEntry
from regent.zk_data.throttles import THROTTLED_REPLICAS

REPLICAS_FIELD: Final = "replicas"
"""The field of an entry of status.drift about the number of replicas."""

_MAX_VALUE_LENGTH: Final = 256
"""Characters of a value shown in status.drift: lists of throttled replicas can be very long."""


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """Keys to be set and keys to be reset to the cluster's default, both sorted.

    Attributes:
        left_to_moves: Keys to be set or reset once the throttled moves of the topic have ended.
    """

    to_set: dict[str, str]
    to_reset: tuple[str, ...]
    left_to_moves: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.to_set or self.to_reset)


def config_difference(request: TopicRequest) -> ConfigDifference:
    """What has to change in the topic's configuration. Nothing as long as it was not read.

    A key is reset only if this resource has set it: it was in spec once (status.managedConfig) and
    is not any more. All other keys belong to somebody else.

    The lists of throttled replicas belong to the controller while the controller throttles a move
    of the topic. A declared value would end the throttle. The controller keeps the entries of
    others, and removes its own when the move ends.
    """
    if request.config is None:
        return ConfigDifference({}, ())
    actual, spec = request.config, request.resource.spec
    desired = spec.desired_config
    managed = request.record.managed_config if request.owns_topic else ()
    to_set = {k: v for k, v in desired.items() if not is_same_value(k, v, actual.get(k))}
    to_reset = tuple(
        key
        for key in sorted(managed)
        if key in actual and key not in desired and key not in spec.hands_off
    )
    left = tuple(key for key in THROTTLED_REPLICAS if key in to_set or key in to_reset)
    if not left or request.topic is None or not request.topic.is_throttled:
        return ConfigDifference(to_set, to_reset)
    return ConfigDifference(
        {key: value for key, value in to_set.items() if key not in left},
        tuple(key for key in to_reset if key not in left),
        left,
    )


def managed_keys(request: TopicRequest) -> tuple[str, ...]:
    """Configuration keys that the resource answers for: those declared and those still to reset."""
    difference = config_difference(request)
    desired = request.resource.spec.desired_config
    return tuple(sorted({*desired, *difference.to_reset, *difference.left_to_moves}))


def described_keys_of_moves(request: TopicRequest) -> str | None:
    """A sentence about declared keys that moves own at present, None without such a key."""
    keys = config_difference(request).left_to_moves
    if not keys:
        return None
    shown = " and ".join(f"config[{key}]" for key in keys)
    return (
        f"a throttled move of the topic owns {shown}; the declaration counts again when the move "
        "has ended"
    )


def drift(request: TopicRequest) -> tuple[DriftEntry, ...]:
    """How the topic differs from the resource; empty without a topic.

    One that is being deleted loses its replicas one by one: that is the deletion.
    """
    topic, spec = request.topic, request.resource.spec
    if topic is None or topic.is_being_deleted:
        return ()
    return (*_shape_drift(topic, spec), *_config_drift(request))


def _shape_drift(topic: TopicView, spec: KafkaTopicSpec) -> tuple[DriftEntry, ...]:
    entries: list[DriftEntry] = []
    actual = len(topic.partitions)
    declared = spec.partition_count
    if declared is not None and actual != declared:
        entries.append(_entry("partitions", declared, actual))
    elif declared is not None and first_missing_number(topic) is not None:
        last = topic.partitions[-1].partition
        entries.append(_entry("partitions", declared, f"{actual} up to number {last}"))
    factors = [] if spec.replicas is None else _other_factors(topic, spec.replicas)
    if factors:
        entries.append(_entry(REPLICAS_FIELD, spec.replicas, ", ".join(map(str, factors))))
    for partition, replicas in moved_partitions(topic, spec):
        field = f"replicaAssignment[{partition.partition}]"
        entries.append(_entry(field, list(replicas), list(partition.target_replicas)))
    return tuple(entries)


def _other_factors(topic: TopicView, declared: int) -> list[int]:
    """How many replicas partitions have, sorted; empty if all have as many as declared and will.

    Those on their way count once they have arrived. Where all have as many as declared and some get
    or lose replicas, it is how many they will have.
    """
    for factors in (
        {len(p.replicas) - len(p.adding_replicas) for p in topic.partitions},
        {len(p.target_replicas) for p in topic.partitions},
    ):
        if factors - {declared}:
            return sorted(factors)
    return []


def first_missing_number(topic: TopicView) -> int | None:
    """The first number below that of the last partition which no partition has, None without one:
    only a node that somebody has edited lacks any."""
    numbers = (partition.partition for partition in topic.partitions)
    return next((i for i, number in enumerate(numbers) if number != i), None)


def moved_partitions(
    topic: TopicView, spec: KafkaTopicSpec
) -> list[tuple[PartitionView, tuple[int, ...]]]:
    """Partitions with replicas on other brokers than declared, each with the declared replicas.

    The order does not count: see :func:`described_order`.
    """
    return [
        (partition, declared)
        for partition, declared in _with_declared_replicas(topic, spec)
        if sorted(partition.target_replicas) != sorted(declared)
    ]


def described_order(topic: TopicView, spec: KafkaTopicSpec) -> str | None:
    """A sentence about partitions with the declared replicas in another order, None without one.

    The order is no drift. It decides about the preferred leader and takes no data, and the
    resources that move leaders decide about it: BrokerDrains of the mode Leadership, for instance,
    and what takes them back.
    """
    reordered = [
        (partition, declared)
        for partition, declared in _with_declared_replicas(topic, spec)
        if partition.target_replicas != declared
        and sorted(partition.target_replicas) == sorted(declared)
    ]
    if not reordered:
        return None
    first, declared = reordered[0]
    return (
        f"{len(reordered)} of {len(topic.partitions)} partitions have another order of replicas "
        f"than declared, the first is partition {first.partition} with "
        f"{list(first.target_replicas)} instead of {list(declared)}; a KafkaTopic leaves the order "
        "to BrokerDrains and PartitionReassignments"
    )


def _with_declared_replicas(
    topic: TopicView, spec: KafkaTopicSpec
) -> Iterator[tuple[PartitionView, tuple[int, ...]]]:
    """Partitions whose replicas are declared. The number of a partition counts, not its place in
    the list: a node that somebody has edited need not have all numbers."""
    declared = spec.replica_assignment or ()
    for partition in topic.partitions:
        if partition.partition < len(declared):
            yield partition, declared[partition.partition]


def _config_drift(request: TopicRequest) -> tuple[DriftEntry, ...]:
    difference, actual = config_difference(request), request.config or {}
    return (
        *(
            _entry(f"config[{key}]", _shown(value), _shown(actual.get(key)))
            for key, value in difference.to_set.items()
        ),
        *(_entry(f"config[{key}]", "", _shown(actual[key])) for key in difference.to_reset),
    )


def _shown(value: str | None) -> str:
    """A configuration value for an entry, in which an empty text says that the key is unset."""
    return "" if value is None else value or "''"


def _entry(field: str, desired: object, actual: object) -> DriftEntry:
    return DriftEntry(
        field=field,
        desired=shorten(str(desired), limit=_MAX_VALUE_LENGTH),
        actual=shorten(str(actual), limit=_MAX_VALUE_LENGTH),
    )


def describe_drift(entries: tuple[DriftEntry, ...]) -> str:
    """One line for people: the first three differences and how many more there are."""
    shown = [
        f"{e.field} is {e.actual or 'unset'} instead of {e.desired or 'unset'}" for e in entries
    ]
    text = enumerate_some(shown, limit=3)
    return text if len(shown) <= 3 else f"{text} (see status.drift)"


def creation_command(request: TopicRequest) -> CreateTopic:
    """The command that creates the topic: as declared, else with the brokers' defaults."""
    spec = request.resource.spec
    partitions, factor = _size_of_new_topic(request)
    assignment = spec.replica_assignment
    return CreateTopic(
        topic=request.topic_name,
        partitions=partitions,
        replication_factor=factor if assignment is None else None,
        assignment=None if assignment is None else dict(enumerate(assignment)),
        config=spec.desired_config,
        topic_id=request.new_topic_id,
    )


def _size_of_new_topic(request: TopicRequest) -> tuple[int, int]:
    """Partitions and replicas. Where they are not declared, the brokers' defaults are known: the
    creation waits for them (``CREATION_CHECKS``)."""
    spec = request.resource.spec
    partitions, factor = spec.partition_count, spec.replication_factor
    if partitions is None or factor is None:
        defaults = topic_defaults(request.view) or TopicDefaults()
        partitions = partitions or defaults.partitions
        factor = factor or defaults.replication_factor
    return partitions, factor


def change_commands(
    request: TopicRequest, *, may_grow: bool, reassignment: ReassignTopic | None
) -> tuple[TopicCommand, ...]:
    """The commands that make an existing topic as declared, as far as that is possible.

    Args:
        may_grow: Whether nothing speaks against more partitions.
        reassignment: What changes the number of replicas. It waits for the new partitions, which
            get as many replicas as the others have.
    """
    commands: list[TopicCommand] = []
    growth = _growth(request) if may_grow else None
    if growth is not None:
        commands.append(growth)
    elif reassignment is not None:
        commands.append(reassignment)
    difference = config_difference(request)
    if difference:
        commands.append(
            AlterTopicConfig(
                topic=request.topic_name, set=difference.to_set, remove=difference.to_reset
            )
        )
    return tuple(commands)


def _growth(request: TopicRequest) -> CreatePartitions | None:
    topic, spec = request.topic, request.resource.spec
    total = spec.partition_count
    if topic is None or total is None or not 0 < len(topic.partitions) < total:
        return None
    assignment = spec.replica_assignment
    added = range(len(topic.partitions), total)
    return CreatePartitions(
        topic=request.topic_name,
        total=total,
        assignment=None if assignment is None else {i: assignment[i] for i in added},
    )
