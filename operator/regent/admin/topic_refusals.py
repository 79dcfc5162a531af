"""Answers that several commands on topics have in common."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from regent.admin.commands import Reason, Rejected
from regent.admin.topic_admin import TopicAdmin
from regent.model.errors import UnexpectedZooKeeperError
from regent.model.topic_config import BrokerFacts, ConfigProblem, config_problems
from regent.zk_data.operations import Create, Operation, WriteResult, ZkError
from regent.zk_data.transactions import transaction_limit, transaction_size

_REFUSALS: Final = (ZkError.NO_AUTH, ZkError.QUOTA_EXCEEDED, ZkError.NO_CHILDREN_FOR_EPHEMERALS)


def unknown(topic: str) -> Rejected:
    return Rejected(Reason.UNKNOWN_TOPIC, f"topic {topic!r} does not exist", "topic")


def not_usable(admin: TopicAdmin, topic: str) -> Rejected | None:
    if not admin.cluster.has_topic(topic):
        return unknown(topic)
    if topic in admin.deleting:
        return Rejected(
            Reason.TOPIC_MARKED_FOR_DELETION, f"topic {topic!r} is being deleted", "topic"
        )
    return None


def has_another_id(admin: TopicAdmin, topic: str, expected: uuid.UUID | None) -> Rejected | None:
    """The refusal for a topic that was created again: it is not the one that is meant."""
    actual = admin.cluster.topic_ids.get(topic)
    if None in (expected, actual) or expected == actual:
        return None
    return created_again(topic)


def created_again(topic: str) -> Rejected:
    return Rejected(
        Reason.UNKNOWN_TOPIC,
        f"topic {topic!r} is another one by now: it was deleted and created again; this one is not "
        "changed",
        "topic",
    )


def concurrent_change(topic: str) -> Rejected:
    return Rejected(
        Reason.CONCURRENT_CHANGE,
        f"topic {topic!r} was changed by someone else at the same moment; the command is tried "
        "again",
    )


def not_written(
    topic: str, operations: Sequence[Operation], results: Sequence[WriteResult]
) -> Rejected:
    """Why operations on the nodes of a topic did not succeed, whether or not in one transaction.

    That the parent of a new node is missing is nothing that somebody did to the topic.
    """
    for operation, result in zip(operations, results, strict=True):
        has_no_parent = result is ZkError.NO_NODE and isinstance(operation, Create)
        if isinstance(result, ZkError) and (has_no_parent or result in _REFUSALS):
            return refused_by_zookeeper(UnexpectedZooKeeperError(result.value, operation.path))
    return concurrent_change(topic)


def answer_lost(topic: str) -> Rejected:
    """A transaction whose answer was lost did not take place, as reading the nodes has shown."""
    return Rejected(
        Reason.ZOOKEEPER_UNAVAILABLE,
        f"the connection to ZooKeeper broke while topic {topic!r} was written; the command is "
        "tried again",
    )


def refused_by_zookeeper(error: UnexpectedZooKeeperError) -> Rejected:
    """An answer that concerns the znodes of one command, such as NOAUTH."""
    return Rejected(Reason.ZOOKEEPER_REFUSED, f"{error.with_remedy}. The command is tried again")


def config_refused(
    topic: str, config: Mapping[str, str], brokers: Sequence[BrokerFacts]
) -> Rejected | None:
    """Why ``config`` cannot be written for a new topic."""
    return problem_refused(topic, config_problems(config, brokers))


def problem_refused(topic: str, problems: Sequence[ConfigProblem]) -> Rejected | None:
    """The refusal for the first problem. One that is not certain may go away by itself."""
    for problem in problems:
        return Rejected(
            Reason.INVALID_CONFIG if problem.is_certain else Reason.BROKER_VERSION_UNKNOWN,
            f"topic {topic!r}: {problem.message}",
            f'config["{problem.key}"]',
        )
    return None


def too_large(
    admin: TopicAdmin, topic: str, operations: Sequence[Operation], *, field: str = ""
) -> Rejected | None:
    """Why one transaction cannot hold these operations: a server would end the session over it."""
    size, limit = transaction_size(operations), transaction_limit(admin.jute_max_buffer)
    if size <= limit:
        return None
    return Rejected(
        Reason.TOO_LARGE,
        f"topic {topic!r} takes {size:,} bytes to be written and ZooKeeper accepts {limit:,} at a "
        f"time (its jute.maxbuffer is {admin.jute_max_buffer:,}); declare less of it: "
        "fewer or shorter config values, fewer partitions",
        field,
    )
