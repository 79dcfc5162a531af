"""What is wrong with requests for new topics and partitions, in Kafka's order and words.

What needs more than the request and the view is judged by the controller, whose own words are for
those who declare topics; for what both find, Kafka's are used.

Source: ``ZkAdminManager``, ``AdminUtils``, ``AdminZkClient``, ``Topic`` of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from regent.admin.commands import Outcome, Reason, Rejected
from regent.controller.view import ClusterView, TopicView
from regent.endpoint.refusals import ApiError, error_of
from regent.model.topic import (
    MAX_TOPIC_NAME_LENGTH,
    METADATA_TOPIC,
    metric_name,
    topic_name_problem,
)
from regent.model.topic_config import (
    CREATE_TOPIC_POLICY,
    KafkaVersion,
    kafka_words,
)
from regent.protocol.error_codes import (
    INVALID_CONFIG,
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    POLICY_VIOLATION,
    REASSIGNMENT_IN_PROGRESS,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)

UNSET: Final = -1
"""In a request: the brokers' default."""


_NEW_WORDS_SINCE: Final = (3, 3)
"""Version of Kafka that says in other words what is wrong with a name."""

MAX_PARTITIONS_OF_A_REQUEST: Final = 50_000
"""New partitions are placed in one go, in the controller's loop, where brokers wait meanwhile."""


class NewTopic(NamedTuple):
    """What a request says of a topic.

    Attributes:
        assignment: Replicas by partition; empty: Kafka places them.
        config: Values by name; None where the request has null.
    """

    name: str
    partitions: int
    replication_factor: int
    assignment: Mapping[int, tuple[int, ...]]
    config: Mapping[str, str | None]


def creation_policy_problem(view: ClusterView) -> ApiError | None:
    """Why no topic can be created: brokers have a policy, which is a class of Java."""
    for facts in view.broker_facts:
        policy = (facts.settings or {}).get(CREATE_TOPIC_POLICY)
        if policy and facts.broker_id in view.brokers:
            return ApiError(
                POLICY_VIOLATION,
                f"The brokers have the create.topic.policy.class.name {policy}, which the "
                "controller in charge, Regent, cannot run; declare the topic as a KafkaTopic",
            )
    return None


def creation_problem(view: ClusterView, topic: NewTopic) -> ApiError | None:
    """Why a topic cannot be created, as far as the view says; its defaults are filled in.

    Assigned brokers need not be live, as in Kafka."""
    return (
        _prohibition(topic.name)
        or already_existing(view, topic.name)
        or _config_problem(topic)
        or (_placement_problem(view, topic) if not topic.assignment else None)
        or _name_problem(view, topic.name)
        or _assignment_problem(topic.assignment)
    )


def _prohibition(name: str) -> ApiError | None:
    if name != METADATA_TOPIC:
        return None
    return ApiError(INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")


def conflicting_numbers() -> ApiError:
    """A request with numbers and an assignment."""
    return ApiError(
        INVALID_REQUEST,
        "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be "
        "used at the same time.",
    )


def already_existing(view: ClusterView, topic: str) -> ApiError | None:
    """The error for a topic that exists."""
    return already_exists(topic) if topic in view.topics else None


def already_exists(topic: str) -> ApiError:
    return ApiError(TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")


def too_many_partitions(partitions: int) -> ApiError | None:
    """Why a request is refused as a whole."""
    if partitions <= MAX_PARTITIONS_OF_A_REQUEST:
        return None
    return ApiError(
        POLICY_VIOLATION,
        f"Excessively large number of partitions per request: {partitions}; at most "
        f"{MAX_PARTITIONS_OF_A_REQUEST} are placed at a time.",
    )


class Twins:
    """Topics by the name that they have in metrics, found once if they are asked for at all."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._by_metric_name: dict[str, list[str]] | None = None

    def of(self, topic: str) -> list[str]:
        if self._by_metric_name is None:
            self._by_metric_name = {}
            for name in self._view.topics:
                self._by_metric_name.setdefault(metric_name(name), []).append(name)
        return sorted(self._by_metric_name.get(metric_name(topic), ()))


def creation_error(twins: Twins, new: NewTopic, outcome: Outcome) -> ApiError:
    """What the controller says to a new topic."""
    topic = new.name
    if isinstance(outcome, Rejected):
        match outcome.reason:
            case Reason.TOPIC_ALREADY_EXISTS | Reason.TOPIC_MARKED_FOR_DELETION:
                return already_exists(topic)
            case Reason.INVALID_CONFIG:
                config = {key: value for key, value in new.config.items() if value is not None}
                return ApiError(INVALID_CONFIG, kafka_words(config) or outcome.message)
            case Reason.TOPIC_NAME_COLLISION:
                others = ", ".join(twins.of(topic))
                return ApiError(
                    INVALID_TOPIC_EXCEPTION,
                    f"Topic '{topic}' collides with existing topics: {others}",
                )
    return error_of(outcome)


def growth_problem(
    view: ClusterView,
    topic: str,
    total: int,
    assignments: Sequence[tuple[int, ...]] | None,
) -> ApiError | None:
    """Why a topic cannot grow, as far as the view says.

    Args:
        assignments: Replicas of the new partitions, in order; None: Kafka places them.
    """
    known = view.topics.get(topic)
    if known is None:
        return unknown_topic(topic)
    if any(p.is_being_reassigned for p in known.partitions):
        return ApiError(
            REASSIGNMENT_IN_PROGRESS,
            f"A partition reassignment is in progress for the topic '{topic}'.",
        )
    count = len(known.partitions)
    if total < count:
        return ApiError(
            INVALID_PARTITIONS,
            f"Topic currently has {count} partitions, which is higher than the requested {total}.",
        )
    if total == count:
        return ApiError(INVALID_PARTITIONS, f"Topic already has {count} partitions.")
    if assignments is None or not known.partitions:  # of those none can be read
        return None
    return _growth_assignment_problem(view, known, total, assignments)


def unknown_topic(topic: str) -> ApiError:
    return ApiError(UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")


def growth_error(topic: str, outcome: Outcome) -> ApiError:
    """What the controller says to new partitions."""
    if isinstance(outcome, Rejected):
        match outcome.reason:
            case Reason.UNKNOWN_TOPIC:
                return unknown_topic(topic)
            case Reason.TOPIC_MARKED_FOR_DELETION:
                return ApiError(INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
    return error_of(outcome)


def _config_problem(topic: NewTopic) -> ApiError | None:
    unset = [name for name, value in topic.config.items() if value is None]
    if not unset:
        return None
    return ApiError(
        INVALID_REQUEST, f"Null value not supported for topic configs: {','.join(unset)}"
    )


def _placement_problem(view: ClusterView, topic: NewTopic) -> ApiError | None:
    if topic.partitions <= 0:
        return ApiError(INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if topic.replication_factor <= 0:
        return ApiError(INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    brokers = live_brokers(view)
    if topic.replication_factor > len(brokers):
        return ApiError(
            INVALID_REPLICATION_FACTOR,
            f"Replication factor: {topic.replication_factor} larger than available brokers: "
            f"{len(brokers)}.",
        )
    racks = [view.brokers[broker].rack for broker in brokers]
    if any(rack is None for rack in racks) and any(rack is not None for rack in racks):
        return ApiError(
            UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        )
    return None


def live_brokers(view: ClusterView) -> Collection[int]:
    """Brokers that new replicas may go to, in order."""
    return [broker for broker in sorted(view.brokers) if broker not in view.shutting_down]


def _name_problem(view: ClusterView, name: str) -> ApiError | None:
    if topic_name_problem(name) is None:
        return None
    words = _name_words if _newest_version(view) >= _NEW_WORDS_SINCE else _former_name_words
    return ApiError(INVALID_TOPIC_EXCEPTION, words(name))


def _newest_version(view: ClusterView) -> KafkaVersion:
    """The newest version that a live broker runs, as far as is known."""
    versions = [f.versions[-1] for f in view.broker_facts if f.broker_id in view.brokers]
    return max(versions, default=_NEW_WORDS_SINCE)


def _name_words(name: str) -> str:
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > MAX_TOPIC_NAME_LENGTH:
        problem = (
            f"the length of '{name}' is longer than the max allowed length {MAX_TOPIC_NAME_LENGTH}"
        )
    else:
        problem = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'"
        )
    return f"Topic name is invalid: {problem}"


def _former_name_words(name: str) -> str:
    if not name:
        return "Topic name is illegal, it can't be empty"
    if name in (".", ".."):
        return 'Topic name cannot be "." or ".."'
    if len(name) > MAX_TOPIC_NAME_LENGTH:
        return (
            f"Topic name is illegal, it can't be longer than {MAX_TOPIC_NAME_LENGTH} characters, "
            f"topic name: {name}"
        )
    return (
        f'Topic name "{name}" is illegal, it contains a character other than ASCII alphanumerics, '
        "'.', '_' and '-'"
    )


def _assignment_problem(assignment: Mapping[int, tuple[int, ...]]) -> ApiError | None:
    if not assignment:
        return None
    if len({len(replicas) for replicas in assignment.values()}) != 1:
        problem = "All partitions should have the same number of replicas"
    elif any(len(set(replicas)) != len(replicas) for replicas in assignment.values()):
        shown = ", ".join(f"{p} -> {_shown(replicas)}" for p, replicas in assignment.items())
        problem = f"Duplicate replica assignment found: Map({shown})"
    elif sorted(assignment) != list(range(len(assignment))):
        problem = "partitions should be a consecutive 0-based integer sequence"
    else:
        return None
    return ApiError(INVALID_REPLICA_ASSIGNMENT, problem)


def _shown(replicas: Sequence[int]) -> str:
    """As Scala shows them."""
    return f"List({', '.join(map(str, replicas))})"


def _growth_assignment_problem(
    view: ClusterView, topic: TopicView, total: int, assignments: Sequence[tuple[int, ...]]
) -> ApiError | None:
    count = len(topic.partitions)
    live = live_brokers(view)
    unknown = dict.fromkeys(b for replicas in assignments for b in replicas if b not in live)
    factor = len(topic.partitions[0].replicas)
    new = list(enumerate(assignments, count))
    wrong = [(partition, replicas) for partition, replicas in new if len(replicas) != factor]
    if unknown:
        problem = f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}."
    elif len(assignments) != total - count:
        problem = (
            f"Increasing the number of partitions by {total - count} but {len(assignments)} "
            "assignments provided."
        )
    elif any(not replicas for _, replicas in new):
        partition = next(partition for partition, replicas in new if not replicas)
        problem = f"Cannot have replication factor of 0 for partition id {partition}."
    elif any(len(set(replicas)) != len(replicas) for _, replicas in new):
        partition, replicas = next((p, r) for p, r in new if len(set(r)) != len(r))
        problem = (
            "Duplicate brokers not allowed in replica assignment: "
            f"{', '.join(map(str, replicas))} for partition id {partition}."
        )
    elif wrong:
        problem = (
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while "
            f"partitions [{', '.join(str(p) for p, _ in wrong)}] have replication factors "
            f"[{', '.join(str(len(r)) for _, r in wrong)}], respectively."
        )
    else:
        return None
    return ApiError(INVALID_REPLICA_ASSIGNMENT, problem)
