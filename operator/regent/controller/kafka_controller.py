"""The controller: takes events one at a time and hands each to the module that knows it.

No rules live here. What becomes of the controller when an event cannot be processed is said in
:mod:`regent.controller.term.failure_policy`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final

from regent.admin.commands import Outcome
from regent.admin.topic_admin import Chance
from regent.controller import events as e
from regent.controller.active_controller import ActiveController
from regent.controller.brokers import (
    abandoned_shutdowns,
    answers,
    broker_changes,
    log_dir_events,
    own_registration,
    refusal_repair,
    released_partitions,
    reported_facts,
    unassigned_replicas,
)
from regent.controller.config import ControllerConfig
from regent.controller.configs import config_changes
from regent.controller.effects import CurrentTime, Respond
from regent.controller.elections import (
    auto_leader_balance,
    leader_balance_count,
    preferred_replica_election,
)
from regent.controller.partitions import (
    alter_partition,
    isr_announcements,
    isr_changes,
    overtaken_answers,
    unreported_states,
)
from regent.controller.producer_ids import allocate_producer_ids
from regent.controller.reassignment import reassignment_changes
from regent.controller.term import failover, failure_policy, watch_check
from regent.controller.term.life_cycle import LifeCycle
from regent.controller.tokens import delegation_token_expiry
from regent.controller.topics import (
    topic_changes,
    topic_commands,
    unwatched_topics,
)
from regent.model.active_regent import ActiveRegent
from regent.model.errors import ControllerError
from regent.model.log import StructuredLog


class KafkaController:
    """Dispatch of events: those of the controller's own life, and those of an active controller."""

    def __init__(self, config: ControllerConfig, *, log: StructuredLog, chance: Chance) -> None:
        self._log = log
        self._life = LifeCycle(config, log=log, chance=chance)

    @property
    def life(self) -> LifeCycle:
        """Whether this process is the controller, and why not."""
        return self._life

    @property
    def active(self) -> ActiveController | None:
        """Present while this process is the controller."""
        return self._life.active

    @property
    def controller_id_seen(self) -> int:
        """Id of the active controller as far as known, -1 if there is none."""
        return self._life.controller_id_seen

    @property
    def regent_seen(self) -> ActiveRegent | None:
        """Another Regent that is the active controller, as far as known."""
        return self._life.regent_seen

    async def process(self, event: e.ControllerEvent) -> None:
        """Process one event to its end, including what becomes of us if that fails.

        Every caller that waits gets an answer in any case.
        """
        answers: Sequence[Any] | None = None
        try:
            answers = await self._dispatch(event)
            self._life.note_success()
            self._life.check_epoch()
        except Exception as error:  # noqa: BLE001 - whatever it is, the context is in doubt
            await failure_policy.settle(
                self._life, error, event=type(event).__name__, log=self._log
            )
        if isinstance(event, e.AnsweredEvent):
            for position, refusal in enumerate(event.refusals()):
                answer = refusal.answer if answers is None else answers[position]
                await Respond(refusal.reply_to, answer)

    async def _dispatch(self, event: e.ControllerEvent) -> Sequence[Any] | None:
        """Returns the answers for the event's callers, None for their refusals."""
        of_life = _OF_LIFE.get(type(event))
        if of_life is not None:
            await of_life(self._life, event)
        elif self._life.active is not None:
            return await _dispatch_active(self._life.active, event)
        return None


_OF_LIFE: Final[dict[type[e.ControllerEvent], Callable[[LifeCycle, Any], Awaitable[None]]]] = {
    e.SessionEstablished: lambda life, _: life.begin_session(),
    e.Startup: lambda life, _: life.compete(),
    e.Reelect: lambda life, _: life.compete(),
    e.Eligible: lambda life, _: life.become_eligible(),
    e.NotEligible: lambda life, _: life.become_ineligible(),
    e.Shutdown: lambda life, _: life.become_ineligible(),
    e.ReplicasAbsent: lambda life, event: life.take_over(event),
    e.ControllerChange: lambda life, _: life.controller_changed(),
    e.SessionReconnected: lambda life, _: life.reconnected(),
    e.Expire: lambda life, _: life.resign(),
    e.ClusterIdChange: lambda life, _: life.check_cluster(),
}


async def _dispatch_active(
    active: ActiveController, event: e.ControllerEvent
) -> Sequence[Any] | None:
    if isinstance(event, e.ChannelEvent) and event.controller_epoch != active.context.term.epoch:
        return None
    active.context.trail.begin_event(type(event).__name__, await CurrentTime())
    requests = e.requests_of(event)
    if requests:
        return await _process_commands(active, requests)
    if isinstance(event, e.AlterPartitionReceived):
        return await alter_partition.process_alter_partition(active, event.asked)
    if isinstance(event, e.AllocateProducerIdsReceived):
        return await allocate_producer_ids.process_allocate_producer_ids(active, event.asked)
    await _PROCESS[type(event)](active, event)
    return None


async def _process_commands(
    active: ActiveController, requests: Sequence[e.CommandsReceived]
) -> list[tuple[Outcome, ...]]:
    """Carry out the commands of requests together. Returns the outcomes for each request."""
    commands = [command for request in requests for command in request.commands]
    outcomes = iter(await topic_commands.process_commands(active, commands))
    return [tuple(islice(outcomes, len(request.commands))) for request in requests]


async def _channel_failed(active: ActiveController, event: e.ChannelFailed) -> None:
    """Give up, unless the broker has bounced meanwhile and got another channel."""
    broker = active.context.cluster.brokers.get(event.broker_id)
    if broker is not None and broker.epoch == event.broker_epoch:
        raise ControllerError(f"channel to broker {event.broker_id} failed: {event.reason}")


async def _broker_facts_learned(active: ActiveController, event: e.BrokerFactsLearned) -> None:
    await reported_facts.process_broker_facts(active, event.broker_epoch, event.facts)
    await own_registration.settle(active)
    if active.context.broker_facts.deletions_wait:
        await topic_changes.process_topic_deletion(active)


async def _each(
    process: Callable[[ActiveController, Any], Awaitable[None]],
    active: ActiveController,
    members: Iterable[Any],
) -> None:
    """Process the members of a set event one after the other."""
    for member in members:
        await process(active, member)


_Process = Callable[[ActiveController, Any], Awaitable[None]]

_PROCESS: Final[dict[type[e.ControllerEvent], _Process]] = {
    e.BrokerChange: lambda active, _: broker_changes.process_broker_change(active),
    e.BrokerModifications: lambda active, event: _each(
        broker_changes.process_broker_modifications, active, event.broker_ids
    ),
    e.TopicChange: lambda active, _: topic_changes.process_topic_change(active),
    e.PartitionModifications: lambda active, event: topic_changes.process_partition_modifications(
        active, event.topics
    ),
    e.TopicsUnwatched: lambda active, _: unwatched_topics.process_topics_unwatched(active),
    e.TopicNodesDeleted: lambda active, event: topic_changes.process_topic_nodes_deleted(
        active, event.topics
    ),
    e.TopicDeletion: lambda active, _: topic_changes.process_topic_deletion(active),
    e.StopReplicaResponseReceived: lambda active, event: answers.process_stop_replica_responses(
        active, event.responses
    ),
    e.ZkPartitionReassignment: lambda active, _: (
        reassignment_changes.process_zk_partition_reassignment(active)
    ),
    e.PartitionReassignmentIsrChange: lambda active, event: (
        reassignment_changes.process_partition_reassignment_isr_change(active, event.partitions)
    ),
    e.IsrChangeNotification: lambda active, _: isr_changes.process_isr_change_notification(active),
    e.UnreportedStates: lambda active, event: unreported_states.process_unreported_states(
        active, event.partitions
    ),
    e.IsrChangesMade: lambda active, event: alter_partition.process_isr_changes_made(
        active, event.partitions
    ),
    e.LogDirEventNotification: lambda active, _: log_dir_events.process_log_dir_event_notification(
        active
    ),
    e.LeaderAndIsrResponseReceived: lambda active, event: _each(
        answers.process_leader_and_isr_response, active, event.responses
    ),
    e.UpdateMetadataResponseReceived: lambda active, event: _each(
        answers.process_update_metadata_response, active, event.responses
    ),
    e.DescribeLogDirsResponseReceived: lambda active, event: _each(
        answers.process_describe_log_dirs_response, active, event.responses
    ),
    e.RefusalRepairDue: lambda active, _: refusal_repair.process_refusal_repair_due(active),
    e.InterBrokerProtocolChanged: lambda active, event: (
        failover.process_inter_broker_protocol_change(active, event.version)
    ),
    e.ChannelFailed: _channel_failed,
    e.BrokerFactsLearned: _broker_facts_learned,
    e.ReplicaLeaderElection: lambda active, _: (
        preferred_replica_election.process_replica_leader_election(active)
    ),
    e.LeaderBalanceUncounted: lambda active, _: (
        leader_balance_count.process_leader_balance_uncounted(active)
    ),
    e.AutoPreferredReplicaLeaderElection: lambda active, _: (
        auto_leader_balance.process_auto_preferred_replica_leader_election(active)
    ),
    e.DelegationTokenExpiry: lambda active, _: (
        delegation_token_expiry.process_delegation_token_expiry(active)
    ),
    e.UnassignedReplicaCheck: lambda active, _: (
        unassigned_replicas.process_unassigned_replica_check(active)
    ),
    e.WatchCheck: lambda active, _: watch_check.process_watch_check(active),
    e.IsrAnnouncementDue: lambda active, _: isr_announcements.process_isr_announcement_due(active),
    e.AnswersOvertaken: lambda active, _: overtaken_answers.process_answers_overtaken(active),
    e.ControlledShutdownOverdue: abandoned_shutdowns.process_controlled_shutdown_overdue,
    e.PartitionsReleased: released_partitions.process_partitions_released,
    e.ConfigChange: lambda active, _: config_changes.process_config_change(active),
}
