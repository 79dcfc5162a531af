"""Answers that several commands on topics have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from regent.controller.commands import Reason, Rejected
from regent.model.errors import ControllerMovedError, UnexpectedZooKeeperError
from regent.model.topic_config import config_conflicts, config_problem
from regent.zk_data.operations import WriteResult, Written, ZkError

if TYPE_CHECKING:
    from regent.controller.active_controller import ActiveController


def unknown(topic: str) -> Rejected:
    return Rejected(Reason.UNKNOWN_TOPIC, f"topic {topic!r} does not exist", "topic")


def not_usable(active: ActiveController, topic: str) -> Rejected | None:
    if not active.context.has_topic(topic):
        return unknown(topic)
    if active.context.is_topic_queued_for_deletion(topic):
        return Rejected(
            Reason.TOPIC_MARKED_FOR_DELETION, f"topic {topic!r} is being deleted", "topic"
        )
    return None


def concurrent_change(topic: str) -> Rejected:
    return Rejected(
        Reason.CONCURRENT_CHANGE,
        f"topic {topic!r} was changed by someone else at the same moment; the command is tried "
        "again",
    )


def answer_lost(topic: str) -> Rejected:
    """A transaction whose answer was lost did not take place, as a look at the nodes has shown."""
    return Rejected(
        Reason.ZOOKEEPER_UNAVAILABLE,
        f"the connection to ZooKeeper broke while topic {topic!r} was written; the command is "
        "tried again",
    )


def refused_by_zookeeper(error: UnexpectedZooKeeperError) -> Rejected:
    """An answer that concerns the znodes of one command, such as NOAUTH."""
    return Rejected(
        Reason.ZOOKEEPER_REFUSED,
        f"{error}; give Regent's ZooKeeper user the rights of the brokers on this znode. The "
        "command is tried again",
    )


def config_refused(topic: str, config: Mapping[str, str]) -> Rejected | None:
    for key, value in config.items():
        problem = config_problem(key, value)
        if problem is not None:
            return Rejected(
                Reason.INVALID_CONFIG, f"topic {topic!r}: {problem}", f'config["{key}"]'
            )
    for key, problem in config_conflicts(config):
        return Rejected(Reason.INVALID_CONFIG, f"topic {topic!r}: {problem}", f'config["{key}"]')
    return None


def all_written(results: Sequence[WriteResult]) -> bool:
    return all(isinstance(result, Written) for result in results)


def raise_if_moved(results: Sequence[WriteResult]) -> None:
    """The first operation of every transaction here is the fence."""
    if results[0] in (ZkError.BAD_VERSION, ZkError.NO_NODE):
        raise ControllerMovedError("the epoch check of a transaction failed")
