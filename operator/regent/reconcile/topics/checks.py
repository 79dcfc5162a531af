"""The checks a KafkaTopic has to pass, in chains.

``SPEC_CHECKS`` need the resource alone, ``CLUSTER_CHECKS`` what is known of the brokers, too: a
finding there blocks everything. ``LIMIT_CHECKS`` compare
with the existing topic: they name what cannot be done, the rest is done all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from regent.controller.topic_defaults import topic_defaults
from regent.model.topic import BROKER_CREATED_TOPICS, topic_name_problem
from regent.model.topic_config import (
    MIN_INSYNC_REPLICAS,
    ConfigProblem,
    config_problems,
    impossible_values,
    parse_int,
)
from regent.reconcile.checks import Check, Finding
from regent.reconcile.topics.drift import first_missing_number, moved_partitions
from regent.reconcile.topics.request import TopicRequest
from regent.resources.conditions import ConditionReason, enumerate_some
from regent.resources.kafka_topic import KafkaTopic

_MAX_LISTED: Final = 3
"""Problems of one kind that a message lists before it only counts."""


def topic_name_is_legal(resource: KafkaTopic) -> Finding | None:
    """A metadata.name can be longer than Kafka allows."""
    problem = topic_name_problem(resource.topic_name)
    if problem is None:
        return None
    field = "metadata.name" if resource.spec.topic_name is None else "spec.topicName"
    return Finding(ConditionReason.INVALID_TOPIC_NAME, problem, field)


def replicas_are_declared_once(resource: KafkaTopic) -> Finding | None:
    """The API server's rule again, for resources that are older than the rule."""
    if resource.spec.replicas is None or resource.spec.replica_assignment is None:
        return None
    return Finding(
        ConditionReason.INVALID_REPLICATION_FACTOR,
        "set replicas or replicaAssignment, not both",
        "spec.replicas",
    )


def replica_assignment_is_consistent(resource: KafkaTopic) -> Finding | None:
    """As many entries as partitions, of equal length, without a broker twice in one entry."""
    spec = resource.spec
    assignment = spec.replica_assignment
    if assignment is None:
        return None
    problem = None
    if len(assignment) != spec.partition_count:
        problem = f"it has {len(assignment)} entries for {spec.partition_count} partitions"
    elif len({len(replicas) for replicas in assignment}) > 1:
        problem = "every partition must have the same number of replicas"
    else:
        doubled = [i for i, replicas in enumerate(assignment) if len(set(replicas)) < len(replicas)]
        if doubled:
            problem = f"partition {doubled[0]} lists a broker twice"
    if problem is None:
        return None
    return Finding(ConditionReason.INVALID_REPLICA_ASSIGNMENT, problem, "spec.replicaAssignment")


def config_is_possible(resource: KafkaTopic) -> Finding | None:
    """Every key exists and every value is possible, alone and together, in some version of Kafka.

    It is the newest that decides: older ones know fewer keys and values.
    """
    return _config_finding(impossible_values(resource.spec.desired_config))


def _config_finding(problems: Sequence[ConfigProblem]) -> Finding | None:
    if not problems:
        return None
    text = enumerate_some([problem.message for problem in problems], limit=_MAX_LISTED)
    return Finding(ConditionReason.INVALID_CONFIG, text, f"spec.config[{problems[0].key}]")


def min_insync_replicas_can_be_met(resource: KafkaTopic) -> Finding | None:
    """Kafka accepts it, but no producer with acks=all would ever get an answer."""
    return _min_insync_finding(resource, resource.spec.replication_factor)


def _min_insync_finding(resource: KafkaTopic, factor: int | None) -> Finding | None:
    value = parse_int(resource.spec.desired_config.get(MIN_INSYNC_REPLICAS, ""))
    if value is None or factor is None or value <= factor:
        return None
    return Finding(
        ConditionReason.INVALID_CONFIG,
        f"min.insync.replicas is {value}, but there are only {factor} replicas: every write with "
        f"acks=all would fail; set it to at most {factor}",
        f"spec.config[{MIN_INSYNC_REPLICAS}]",
    )


SPEC_CHECKS: Final[tuple[Check[KafkaTopic], ...]] = (
    topic_name_is_legal,
    replicas_are_declared_once,
    replica_assignment_is_consistent,
    config_is_possible,
    min_insync_replicas_can_be_met,
)
"""What must hold before anything is sent to the controller."""


def namespace_may_declare(request: TopicRequest) -> Finding | None:
    """The rules of this Regent, by which teams keep off each other's topics."""
    if request.may_declare:
        return None
    namespace = request.resource.metadata.namespace
    rules = request.name_rules.of(namespace)
    if rules:
        shown = enumerate_some([str(rule) for rule in rules], limit=_MAX_LISTED)
        why = f"its rules (topic_name_rules) are {shown}"
    else:
        why = "no rule (topic_name_rules) is about this namespace"
    return Finding(
        ConditionReason.TOPIC_NAME_NOT_ALLOWED,
        f"namespace {namespace} may not declare topic {request.topic_name}: {why}; declare a topic "
        "that a rule allows, or have the rules changed",
        "metadata.name" if request.resource.spec.topic_name is None else "spec.topicName",
    )


NAME_CHECKS: Final[tuple[Check[TopicRequest], ...]] = (namespace_may_declare,)
"""What the namespace must be allowed, whatever state the cluster is in."""


def brokers_can_load_config(request: TopicRequest) -> Finding | None:
    """Every known broker can load the configuration, as far as that is certain.

    What is not is decided when something is to be written: a broker that starts says within moments
    which version it runs, and what is there already need not be doubted meanwhile.
    """
    problems = config_problems(request.resource.spec.desired_config, request.view.broker_facts)
    return _config_finding([problem for problem in problems if problem.is_certain])


def undeclared_replicas_are_enough(request: TopicRequest) -> Finding | None:
    """As :func:`min_insync_replicas_can_be_met`, for the replicas that the topic has, or that a new
    one would get."""
    resource, topic = request.resource, request.topic
    if resource.spec.replication_factor is not None:
        return None
    if topic is not None:
        return _min_insync_finding(resource, topic.replication_factor)
    if request.topic_name in BROKER_CREATED_TOPICS:
        return None
    defaults = topic_defaults(request.view)
    return _min_insync_finding(resource, None if defaults is None else defaults.replication_factor)


CLUSTER_CHECKS: Final[tuple[Check[TopicRequest], ...]] = (
    brokers_can_load_config,
    undeclared_replicas_are_enough,
)
"""What must hold in this cluster before anything is sent to the controller."""


def foreign_config_problem(request: TopicRequest) -> str | None:
    """Say why brokers could not load the configuration that other tools have set on the topic,
    alone or beside the declared one. The declared one alone has passed ``CLUSTER_CHECKS``.

    Brokers ignore keys that they do not know: other distributions of Kafka have more keys.
    """
    whole = {**(request.config or {}), **request.resource.spec.desired_config}
    problems = config_problems(whole, request.view.broker_facts)
    for problem in problems:
        if problem.is_certain and not problem.is_unknown_key:
            return problem.message
    return None


def topic_is_not_left_to_brokers(request: TopicRequest) -> Finding | None:
    """Leave a topic to the brokers that create it by settings of their own. Heals when they do.

    In a topic with another number of partitions, brokers would not find groups or transactions.
    """
    name = request.topic_name
    settings = BROKER_CREATED_TOPICS.get(name)
    if settings is None:
        return None
    return Finding(
        ConditionReason.LEFT_TO_BROKERS,
        f"topic {name} does not exist yet; brokers create the topic by their settings {settings} "
        "when they first need it, and Regent applies this resource then",
        is_transient=True,
    )


def defaults_are_known(request: TopicRequest) -> Finding | None:
    """For creating a topic that does not say all. A broker that is reached says them at once."""
    spec = request.resource.spec
    if None not in (spec.partition_count, spec.replication_factor):
        return None
    if topic_defaults(request.view) is not None:
        return None
    return Finding(
        ConditionReason.BROKER_DEFAULTS_UNKNOWN,
        "no broker has said yet what num.partitions and default.replication.factor are; waiting "
        "for one; to go on without, set partitions and replicas",
        "spec.partitions" if spec.partition_count is None else "spec.replicas",
        is_transient=True,
    )


def enough_brokers_are_alive(request: TopicRequest) -> Finding | None:
    """For creating the topic. Heals when a broker comes (back)."""
    spec = request.resource.spec
    factor = spec.replicas
    if spec.replication_factor is None:
        defaults = topic_defaults(request.view)
        factor = None if defaults is None else defaults.replication_factor
    alive = len(request.view.brokers)
    if factor is None or factor <= alive:
        return None
    return Finding(
        ConditionReason.NOT_ENOUGH_BROKERS,
        f"{factor} replicas need {factor} live brokers, there are {alive}; waiting for more",
        "spec.replicas",
        is_transient=True,
    )


def assigned_brokers_are_alive(request: TopicRequest) -> Finding | None:
    """For partitions to be created where the resource says. Heals when the brokers come (back)."""
    assignment = request.resource.spec.replica_assignment or ()
    existing = 0 if request.topic is None else len(request.topic.partitions)
    named = {broker for replicas in assignment[existing:] for broker in replicas}
    missing = sorted(named - request.view.brokers.keys())
    if not missing:
        return None
    return Finding(
        ConditionReason.BROKERS_UNAVAILABLE,
        f"brokers {missing} are not alive, live are {sorted(request.view.brokers)}; waiting for "
        "them; if there are no such brokers, name others",
        "spec.replicaAssignment",
        is_transient=True,
    )


CREATION_CHECKS: Final[tuple[Check[TopicRequest], ...]] = (
    topic_is_not_left_to_brokers,
    defaults_are_known,
    enough_brokers_are_alive,
    assigned_brokers_are_alive,
)
"""What must hold before the topic is created."""


def size_may_change(request: TopicRequest) -> Finding | None:
    """Brokers find groups and transactions by the number of partitions of an internal topic."""
    topic, declared = request.topic, request.resource.spec.partition_count
    if topic is None or declared is None or request.topic_name not in BROKER_CREATED_TOPICS:
        return None
    actual = len(topic.partitions)
    if declared <= actual:
        return None
    return Finding(
        ConditionReason.INVALID_PARTITIONS,
        f"topic {request.topic_name} has {actual} partitions, {declared} are declared; brokers "
        f"would no longer find what they keep in it: set partitions to {actual}",
        "spec.partitions",
    )


def partitions_are_numbered_through(request: TopicRequest) -> Finding | None:
    """Kafka's clients count partitions, and wait for the leader of a number that is missing."""
    topic = request.topic
    if topic is None:
        return None
    missing = first_missing_number(topic)
    if missing is None:
        return None
    last = topic.partitions[-1].partition
    return Finding(
        ConditionReason.INVALID_PARTITIONS,
        f"the topic has {len(topic.partitions)} partitions up to number {last} in ZooKeeper, but "
        f"no partition {missing}: clients that send to it wait in vain; it does not grow like "
        f"this. Put partition {missing} into /brokers/topics/{request.topic_name}, or delete and "
        "recreate the topic",
        "spec.partitions",
    )


GROWTH_CHECKS: Final[tuple[Check[TopicRequest], ...]] = (
    partitions_are_numbered_through,
    size_may_change,
    assigned_brokers_are_alive,
)
"""What must hold before partitions are added."""


def partitions_do_not_shrink(request: TopicRequest) -> Finding | None:
    """Partitions that somebody else added cannot be taken away again."""
    topic, declared = request.topic, request.resource.spec.partition_count
    if topic is None or declared is None or declared >= len(topic.partitions):
        return None
    actual = len(topic.partitions)
    return Finding(
        ConditionReason.PARTITIONS_DECREASE,
        f"the topic has {actual} partitions, {declared} are declared; Kafka cannot remove "
        f"partitions: set partitions to {actual}, or create another topic",
        "spec.partitions",
    )


def replica_assignment_matches(request: TopicRequest) -> Finding | None:
    """Another place for replicas takes moving data, which a KafkaTopic does not do."""
    topic = request.topic
    if topic is None:
        return None
    different = moved_partitions(topic, request.resource.spec)
    if not different:
        return None
    first, declared = different[0]
    return Finding(
        ConditionReason.REPLICA_ASSIGNMENT_MISMATCH,
        f"{len(different)} partitions have other replicas than declared, the first is partition "
        f"{first.partition} on {list(first.replicas)} instead of "
        f"{list(declared)}, and a KafkaTopic does not move them: declare the "
        "replicas they have, or have a PartitionReassignment move them",
        f"spec.replicaAssignment[{first.partition}]",
    )


LIMIT_CHECKS: Final[tuple[Check[TopicRequest], ...]] = (
    partitions_do_not_shrink,
    replica_assignment_matches,
)
"""What a KafkaTopic cannot change about an existing topic."""
