"""Commands: create, grow, configure and delete topics; elect leaders; shut brokers down; more.

A command is checked first and refused with a reason, then written as Kafka's ``AdminZkClient``
writes: the same znodes in the same order. What follows (partition states, requests to brokers)
follows from the watches on those nodes, as it does for Kafka's own tools. Commands of one kind that
arrive together are read and written together.

Commands on topics touch ZooKeeper only, so one that fails leaves the context in no doubt: whatever
fails but the controller's own standing is the answer to that one command, and the others are
carried out. An election or a reassignment changes the context: what is wrong with a partition is
the answer for it, and an unexpected error ends the term, as it does in an event. So does the
shutdown of a broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from regent.admin.commands import (
    AlterPartitionReassignments,
    AlterTopicConfig,
    CordonBrokers,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    ElectLeaders,
    Outcome,
    Reason,
    ReassignTopic,
    Rejected,
)
from regent.admin.topic_configuration import alter_topic_config, describe_topic_configs
from regent.admin.topic_creation import create_topics
from regent.admin.topic_deletion import delete_topics
from regent.admin.topic_growth import create_partitions
from regent.admin.topic_refusals import refused_by_zookeeper
from regent.controller.active_controller import ActiveController, topic_admin
from regent.controller.brokers.controlled_shutdown import shut_down_brokers
from regent.controller.brokers.cordon import cordon_brokers
from regent.controller.commands import (
    AlterUserScramCredentials,
    Command,
    ControlledShutdown,
    ListPartitionReassignments,
    UpdateFeatures,
)
from regent.controller.configs.finalized_features import update_features
from regent.controller.configs.scram_credentials import alter_user_scram_credentials
from regent.controller.elections.leader_election import process_elect_leaders
from regent.controller.reassignment.reassignment_commands import (
    alter_partition_reassignments,
    list_partition_reassignments,
    reassign_topic,
)
from regent.controller.topics.deletion_markers import deletion_forbidden_now
from regent.model.errors import (
    ControllerMovedError,
    SessionExpiredError,
    UnexpectedZooKeeperError,
    ZooKeeperUnavailableError,
)

_BULK = (CreateTopic, CreatePartitions, DeleteTopic, ControlledShutdown)
"""Kinds of commands that are read and written together."""

_CHANGE_CONTEXT = (AlterPartitionReassignments, ControlledShutdown, ElectLeaders, ReassignTopic)
"""Kinds of commands that touch more than ZooKeeper: one that fails leaves the context in doubt."""


async def process_commands(
    active: ActiveController, commands: Sequence[Command]
) -> tuple[Outcome, ...]:
    """Carry commands out in order; neighbours of the same kind go together.

    Raises:
        ControllerMovedError: Another controller was elected.
        SessionExpiredError: The session is gone.
        ZooKeeperUnavailableError: No ZooKeeper server answered in time.
    """
    outcomes: list[Outcome] = []
    position = 0
    while position < len(commands):
        end = _end_of_run(commands, position)
        outcomes += await _process_run(active, commands[position:end])
        position = end
    return tuple(outcomes)


def _end_of_run(commands: Sequence[Command], start: int) -> int:
    """Where the commands end that are carried out together with the one at ``start``.

    The same topic grows only once in a run: what is written second depends on the first.
    """
    kind, growing = type(commands[start]), set[str]()
    end = start
    while end < len(commands) and type(commands[end]) is kind:
        command = commands[end]
        if isinstance(command, CreatePartitions):
            if command.topic in growing:
                break
            growing.add(command.topic)
        end += 1
        if kind not in _BULK:
            break
    return end


async def _process_run(active: ActiveController, commands: Sequence[Command]) -> list[Outcome]:
    """Commands of one kind, together; where that fails, each alone.

    Repeating is safe: what a bulk write of topics refuses it answers itself, and marking a marked
    topic again is fine.
    """
    try:
        return await _carry_out(active, commands)
    except (ControllerMovedError, SessionExpiredError, ZooKeeperUnavailableError):
        raise
    except Exception as error:
        if isinstance(commands[0], _CHANGE_CONTEXT):
            raise
        if len(commands) > 1:
            return [(await _process_run(active, [command]))[0] for command in commands]
        if isinstance(error, UnexpectedZooKeeperError):
            active.log.error("Command refused by ZooKeeper", path=error.path, code=error.code)
            return [refused_by_zookeeper(error)]
        active.log.error("Command failed", error=repr(error), exception=error)
        message = f"the controller failed at this command, its log says where: {error!r}"
        return [Rejected(Reason.INTERNAL_ERROR, message)]


async def _carry_out(active: ActiveController, commands: Sequence[Command]) -> list[Outcome]:
    match commands[0]:
        case CreateTopic():
            return await create_topics(
                topic_admin(active), [c for c in commands if isinstance(c, CreateTopic)]
            )
        case CreatePartitions():
            return await create_partitions(
                topic_admin(active), [c for c in commands if isinstance(c, CreatePartitions)]
            )
        case DeleteTopic():
            forbidden = await deletion_forbidden_now(active)
            return await delete_topics(
                topic_admin(active),
                [c for c in commands if isinstance(c, DeleteTopic)],
                forbidden,
            )
        case ControlledShutdown():
            return [
                *await shut_down_brokers(
                    active, [c for c in commands if isinstance(c, ControlledShutdown)]
                )
            ]
        case AlterTopicConfig() as command:
            return [await alter_topic_config(topic_admin(active), command)]
        case DescribeTopicConfigs() as command:
            return [await describe_topic_configs(topic_admin(active), command)]
        case command:
            return [await _SINGLE[type(command)](active, command)]


async def _list_partition_reassignments(
    active: ActiveController, command: ListPartitionReassignments
) -> Outcome:
    return list_partition_reassignments(active, command)


_SINGLE: Final[Mapping[type[Command], Callable[[ActiveController, Any], Awaitable[Outcome]]]] = {
    CordonBrokers: cordon_brokers,
    ElectLeaders: process_elect_leaders,
    AlterPartitionReassignments: alter_partition_reassignments,
    ListPartitionReassignments: _list_partition_reassignments,
    ReassignTopic: reassign_topic,
    AlterUserScramCredentials: alter_user_scram_credentials,
    UpdateFeatures: update_features,
}
"""Kinds of commands that are carried out one by one."""
