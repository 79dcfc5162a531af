"""What can happen to the controller: one frozen value per kind of event.

Events are processed one at a time, in order; which waiting ones become one is said in
:mod:`event_merging`. Each names the :class:`ControllerState` that the controller is in meanwhile.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import msgspec

from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    Asked,
)
from regent.controller.commands import Command, ControlledShutdown, not_controller
from regent.controller.controller_state import ControllerState
from regent.model.partition import TopicPartition
from regent.model.topic_config import BrokerFacts
from regent.protocol.control_requests import (
    DescribeLogDirsResponse,
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from regent.protocol.error_codes import NOT_CONTROLLER


class ControllerEvent(msgspec.Struct, frozen=True):
    """Base of all events."""

    state: ClassVar[ControllerState] = ControllerState.IDLE


class Answer(NamedTuple):
    """What is owed to somebody who waits.

    Attributes:
        reply_to: The token by which the driver finds who waits.
        answer: What to send.
    """

    reply_to: Any
    answer: Any


class AnsweredEvent(ControllerEvent, frozen=True):
    """Base of the events that somebody waits for.

    Each of its callers is answered exactly once: by the outcome of processing it, or by its refusal
    if that fails or this process is not the controller. Such events are never dropped.
    """

    def refusals(self) -> tuple[Answer, ...]:
        """For each caller the answer of a process that is not, or no longer, the controller."""
        raise NotImplementedError


class Startup(ControllerEvent, frozen=True):
    """The process has a ZooKeeper session: learn who is the controller."""

    state = ControllerState.CONTROLLER_CHANGE


class Eligible(ControllerEvent, frozen=True):
    """Among the replicas of Regent this one was elected: it may take ``/controller``."""

    state = ControllerState.CONTROLLER_CHANGE


class NotEligible(ControllerEvent, frozen=True):
    """This replica of Regent is no longer the elected one."""

    state = ControllerState.CONTROLLER_CHANGE


class AbsentReplica(NamedTuple):
    """A replica of Regent that is held to be dead or frozen, that leaves, or that does not answer.

    Attributes:
        session_id: Its ZooKeeper session, which owns whatever it has in ZooKeeper.
        reason: Why, for people.
        is_dead: Whether its process has certainly ended.
    """

    session_id: int
    reason: str
    is_dead: bool = False


class ReplicasAbsent(ControllerEvent, frozen=True):
    """Other replicas are suspected, or the one that leads leaves and has named this one.

    Attributes:
        session_id: The session of this process when that was found.
        absent: Whom it may take over from.
        is_named: Whether it is to take over, without being suspicious.
        unheard: Who is registered and does not answer, and was never heard. Their places may go;
            they are not deposed.
    """

    state = ControllerState.CONTROLLER_CHANGE
    session_id: int
    absent: tuple[AbsentReplica, ...]
    is_named: bool = False
    unheard: tuple[AbsentReplica, ...] = ()


class ControllerChange(ControllerEvent, frozen=True):
    """``/controller`` was created, changed or deleted."""

    state = ControllerState.CONTROLLER_CHANGE


class Reelect(ControllerEvent, frozen=True):
    """The wait before another attempt at ``/controller`` is over."""

    state = ControllerState.CONTROLLER_CHANGE


class ClusterIdChange(ControllerEvent, frozen=True):
    """``/cluster/id`` was created, changed or deleted."""

    state = ControllerState.CONTROLLER_CHANGE


class Expire(ControllerEvent, frozen=True):
    """The ZooKeeper session is gone, or no server answered for as long as a session lives."""

    state = ControllerState.CONTROLLER_CHANGE


class SessionEstablished(ControllerEvent, frozen=True):
    """A new ZooKeeper session replaces an expired one."""

    state = ControllerState.CONTROLLER_CHANGE


class SessionReconnected(ControllerEvent, frozen=True):
    """The session survived a disconnection, its watches did not: look at everything again."""

    state = ControllerState.CONTROLLER_CHANGE


class Shutdown(AnsweredEvent, frozen=True):
    """Hand the cluster back to the brokers' own controllers and do not come back.

    Attributes:
        reply_to: Answered with True once ``/controller`` is given up.
    """

    state = ControllerState.CONTROLLER_SHUTDOWN
    reply_to: Any

    def refusals(self) -> tuple[Answer, ...]:
        return (Answer(self.reply_to, True),)


class BrokerChange(ControllerEvent, frozen=True):
    """Children of ``/brokers/ids`` changed."""

    state = ControllerState.BROKER_CHANGE


class BrokerModifications(ControllerEvent, frozen=True):
    """The registrations of brokers changed."""

    state = ControllerState.BROKER_CHANGE
    broker_ids: tuple[int, ...]


class ChannelEvent(ControllerEvent, frozen=True):
    """Base of what the channels report of themselves.

    It may have waited in the event queue while this process lost and won ``/controller`` again.

    Attributes:
        controller_epoch: The term whose channels report; in another term it means nothing.
    """

    state = ControllerState.BROKER_CHANGE
    controller_epoch: int


class InterBrokerProtocolChanged(ChannelEvent, frozen=True):
    """The channels have learned another lowest inter.broker.protocol.version."""

    version: tuple[int, int]


class BrokerFactsLearned(ControllerEvent, frozen=True):
    """A broker has said what it runs and how it is set up.

    Attributes:
        broker_epoch: Which life of the broker has said so.
    """

    state = ControllerState.BROKER_CHANGE
    broker_epoch: int
    facts: BrokerFacts


class ChannelFailed(ChannelEvent, frozen=True):
    """A defect ended a broker's channel: the broker would get no request any more.

    Attributes:
        broker_epoch: The life of the broker that the channel led to. Another has another channel.
    """

    broker_id: int
    broker_epoch: int
    reason: str


class TopicChange(ControllerEvent, frozen=True):
    """Children of ``/brokers/topics`` changed."""

    state = ControllerState.TOPIC_CHANGE


class PartitionModifications(ControllerEvent, frozen=True):
    """The nodes of topics changed."""

    state = ControllerState.TOPIC_CHANGE
    topics: tuple[str, ...]


class TopicsUnwatched(ControllerEvent, frozen=True):
    """The next topics that were not read from ZooKeeper are to be watched."""

    state = ControllerState.TOPIC_CHANGE


class TopicNodesDeleted(ControllerEvent, frozen=True):
    """The nodes of topics were deleted; there may be others of the same name by now."""

    state = ControllerState.TOPIC_CHANGE
    topics: tuple[str, ...]


class TopicDeletion(ControllerEvent, frozen=True):
    """Children of ``/admin/delete_topics`` changed."""

    state = ControllerState.TOPIC_DELETION


class StopReplicaResponseReceived(ControllerEvent, frozen=True):
    """Brokers answered a StopReplica."""

    state = ControllerState.TOPIC_DELETION
    responses: tuple[StopReplicaResponse, ...]


class ZkPartitionReassignment(ControllerEvent, frozen=True):
    """``/admin/reassign_partitions`` was created, changed or deleted."""

    state = ControllerState.ALTER_PARTITION_REASSIGNMENT


class PartitionReassignmentIsrChange(ControllerEvent, frozen=True):
    """The state znodes of partitions that are being reassigned changed."""

    state = ControllerState.ALTER_PARTITION_REASSIGNMENT
    partitions: tuple[TopicPartition, ...]


class IsrChangeNotification(ControllerEvent, frozen=True):
    """Leaders below inter.broker.protocol.version 2.7 have changed ISRs in ZooKeeper."""

    state = ControllerState.ISR_CHANGE


class UnreportedStates(ControllerEvent, frozen=True):
    """States of partitions were found to be others than a take-over had them."""

    state = ControllerState.ISR_CHANGE
    partitions: tuple[TopicPartition, ...]


class LeaderAndIsrResponseReceived(ControllerEvent, frozen=True):
    """Brokers answered a LeaderAndIsr."""

    state = ControllerState.LEADER_AND_ISR_RESPONSE
    responses: tuple[LeaderAndIsrResponse, ...]


class RefusalRepairDue(ControllerEvent, frozen=True):
    """It is time to send again what brokers have refused."""

    state = ControllerState.LEADER_AND_ISR_RESPONSE


class UpdateMetadataResponseReceived(ControllerEvent, frozen=True):
    """Brokers answered an UpdateMetadata."""

    state = ControllerState.UPDATE_METADATA_RESPONSE
    responses: tuple[UpdateMetadataResponse, ...]


class LogDirEventNotification(ControllerEvent, frozen=True):
    """Brokers report failed log directories."""

    state = ControllerState.LOG_DIR_CHANGE


class DescribeLogDirsResponseReceived(ControllerEvent, frozen=True):
    """Brokers answered a DescribeLogDirs."""

    state = ControllerState.LOG_DIR_CHANGE
    responses: tuple[DescribeLogDirsResponse, ...]


class ReplicaLeaderElection(ControllerEvent, frozen=True):
    """``/admin/preferred_replica_election`` was created, changed or deleted."""

    state = ControllerState.MANUAL_LEADER_BALANCE


class AutoPreferredReplicaLeaderElection(ControllerEvent, frozen=True):
    """It is time to check whether leaders are balanced."""

    state = ControllerState.AUTO_LEADER_BALANCE


class LeaderBalanceUncounted(ControllerEvent, frozen=True):
    """The next partitions are to be judged: whether their preferred replica leads them."""

    state = ControllerState.CONTROLLER_CHANGE


class WatchCheck(ControllerEvent, frozen=True):
    """It is time to look for what a watch should have reported."""

    state = ControllerState.CONTROLLER_CHANGE


class UnassignedReplicaCheck(ControllerEvent, frozen=True):
    """It is time to ask brokers which replicas they have."""

    state = ControllerState.LOG_DIR_CHANGE


class DelegationTokenExpiry(ControllerEvent, frozen=True):
    """It is time to look for delegation tokens that have expired.

    The controller is idle meanwhile as far as metrics say: upstream does this in another thread.
    """


class ConfigChange(ControllerEvent, frozen=True):
    """Children of ``/config/changes`` changed."""

    state = ControllerState.UNCLEAN_LEADER_ELECTION


class AlterPartitionReceived(AnsweredEvent, frozen=True):
    """Leaders ask for changes of ISRs."""

    state = ControllerState.ISR_CHANGE
    asked: tuple[Asked[AlterPartitionRequest], ...]

    def refusals(self) -> tuple[Answer, ...]:
        refusal = AlterPartitionResponse(NOT_CONTROLLER)
        return tuple(Answer(each.reply_to, refusal) for each in self.asked)


class IsrChangesMade(ControllerEvent, frozen=True):
    """ISRs have been changed as their leaders had asked; the leaders have their answers."""

    state = ControllerState.ISR_CHANGE
    partitions: tuple[TopicPartition, ...]


class IsrAnnouncementDue(ControllerEvent, frozen=True):
    """It is time to announce ISR changes that leaders have asked for."""

    state = ControllerState.ISR_CHANGE


class AnswersOvertaken(ControllerEvent, frozen=True):
    """It is time to look after leaders that were answered after their leader epoch had risen."""

    state = ControllerState.ISR_CHANGE


class AllocateProducerIdsReceived(AnsweredEvent, frozen=True):
    """Brokers need producer ids."""

    asked: tuple[Asked[AllocateProducerIdsRequest], ...]

    def refusals(self) -> tuple[Answer, ...]:
        refusal = AllocateProducerIdsResponse(NOT_CONTROLLER)
        return tuple(Answer(each.reply_to, refusal) for each in self.asked)


class CommandsReceived(AnsweredEvent, frozen=True):
    """Custom resources ask for something.

    Attributes:
        reply_to: Answered with a tuple of outcomes in the order of ``commands``.
    """

    state = ControllerState.COMMAND
    commands: tuple[Command, ...]
    reply_to: Any

    def refusals(self) -> tuple[Answer, ...]:
        return (Answer(self.reply_to, not_controller(self.commands)),)


class ControlledShutdownReceived(AnsweredEvent, frozen=True):
    """Brokers ask to be shut down, each in a request of its own. They are one set.

    Attributes:
        requests: Each has commands :class:`~regent.controller.commands.ControlledShutdown` only,
            and is answered by itself.
    """

    state = ControllerState.CONTROLLED_SHUTDOWN
    requests: tuple[CommandsReceived, ...]

    def refusals(self) -> tuple[Answer, ...]:
        return tuple(answer for request in self.requests for answer in request.refusals())


class ControlledShutdownOverdue(ControllerEvent, frozen=True):
    """A broker has asked to be shut down, and should have stopped by now.

    Attributes:
        controller_epoch: The term in which it asked; in another it has time again.
        broker_epoch: The life of the broker that asked.
    """

    state = ControllerState.CONTROLLED_SHUTDOWN
    controller_epoch: int
    broker_id: int
    broker_epoch: int


class PartitionsReleased(ControllerEvent, frozen=True):
    """A broker that shuts down has left its partitions, and has been answered.

    Attributes:
        controller_epoch: The term in which that was.
    """

    state = ControllerState.CONTROLLED_SHUTDOWN
    controller_epoch: int
    broker_id: int


def commands_received(
    commands: tuple[Command, ...], *, reply_to: Any
) -> CommandsReceived | ControlledShutdownReceived:
    """The event of a request with commands: requests of brokers that shut down can be merged."""
    received = CommandsReceived(commands, reply_to)
    if commands and all(isinstance(command, ControlledShutdown) for command in commands):
        return ControlledShutdownReceived((received,))
    return received


def requests_of(event: ControllerEvent) -> tuple[CommandsReceived, ...]:
    """The requests that an event answers."""
    if isinstance(event, ControlledShutdownReceived):
        return event.requests
    return (event,) if isinstance(event, CommandsReceived) else ()
