"""The controller: takes events one at a time and hands each to the module that knows it.

No rules live here but one: what becomes of the controller when an event cannot be processed. A
controller whose epoch is gone resigns. One that fails in any other way gives ``/controller`` up and
loads everything again after a wait, because a context that may be wrong is worse than none;
meanwhile a broker's own controller serves the cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from regent.controller import (
    broker_changes,
    cluster_identity,
    cluster_loading,
    config_changes,
    controller_election,
    failover,
    isr_changes,
    reconnection,
    topic_changes,
    topic_commands,
    topic_configuration,
)
from regent.controller import events as e
from regent.controller.active_controller import ActiveController, Chance
from regent.controller.commands import Outcome
from regent.controller.config import ControllerConfig, MissingCluster
from regent.controller.context import ControllerContext
from regent.controller.effects import (
    ArmTimer,
    CancelTimer,
    Contend,
    CurrentTime,
    PublishView,
    Resigned,
    Respond,
)
from regent.controller.log import ControllerLog
from regent.controller.unusable_settings import refuse_id_of_a_broker
from regent.model.errors import (
    ClusterChangedError,
    ControllerError,
    ControllerMovedError,
    MissingClusterError,
    RegentError,
    SessionExpiredError,
    StaleControllerEpochError,
    UnsupportedClusterError,
    UnusableSettingError,
    ZooKeeperError,
    ZooKeeperUnavailableError,
)

_REELECT_TIMER = "reelect"
_FORGIVE_AFTER_MS = 600_000
"""Failures further apart than this count as the first of their kind."""


class KafkaController:
    """Dispatch of events, and the controller's life between elections.

    Attributes:
        active: Present while this process is the controller.
        controller_id_seen: Id in ``/controller`` when it was last read; negative if there is none.
        is_eligible: Whether this process may become the controller.
        cluster_id: Id of the Kafka cluster, once it was found.
    """

    def __init__(self, config: ControllerConfig, *, log: ControllerLog, chance: Chance) -> None:
        self._config = config
        self._log = log
        self._chance = chance
        self._failures = 0
        self._failed_at_ms = 0
        self._holds_off = False
        self._unreleased: ControllerContext | None = None
        self._contends = False
        self._has_unusable_setting = False
        self.active: ActiveController | None = None
        self.controller_id_seen = controller_election.NO_CONTROLLER
        self.is_eligible = False
        self._refusal: str | None = None
        self._failure: str | None = None
        self.cluster_id: str | None = None

    @property
    def refusal(self) -> str | None:
        """Why it does not want to be the controller, or fails to, though it may; None if there is
        no reason."""
        return self._refusal or self._failure

    async def process(self, event: e.ControllerEvent) -> None:
        """Process one event to its end, including what becomes of us if that fails.

        Every caller that waits gets an answer in any case.
        """
        outcomes: tuple[Outcome, ...] | None = None
        try:
            outcomes = await self._dispatch(event)
            if not self._holds_off:
                self._failure = None
        except (ControllerMovedError, StaleControllerEpochError) as moved:
            self._log.warning("Controller moved, resigning", reason=str(moved))
            await self._resign()
            await self._retry_later()
        except (SessionExpiredError, ZooKeeperUnavailableError) as lost:
            self._log.warning("ZooKeeper lost, resigning", reason=str(lost))
            await self._resign()
            await self._retry_later()
        except MissingClusterError as missing:
            await self._wait_for_cluster(str(missing))
        except (UnsupportedClusterError, ClusterChangedError) as unsupported:
            self._log.error("Cluster left alone", reason=str(unsupported))
            self._refusal = str(unsupported)
            await self._fail()
        except UnusableSettingError as unusable:
            self._log.error("Cluster left alone until a restart", reason=str(unusable))
            self._refusal = str(unusable)
            self._has_unusable_setting = True
            await self._give_up()
        except Exception as error:  # noqa: BLE001 - whatever it is, the context is in doubt
            self._event_failed(event, error)
            await self._fail()
        if isinstance(event, e.CommandsReceived):
            await Respond(event.reply_to, outcomes or topic_commands.not_controller(event.commands))
        elif isinstance(event, e.Shutdown):
            await Respond(event.reply_to, True)

    async def _dispatch(self, event: e.ControllerEvent) -> tuple[Outcome, ...] | None:
        match event:
            case e.SessionEstablished():
                # Whatever we owned and watched, if anything is left, belonged to another session.
                await self._resign()
                await self._compete()
            case e.Startup() | e.Reelect():
                await self._compete()
            case e.Eligible():
                self.is_eligible = True
                await self._elect_if_eligible()
            case e.NotEligible() | e.Shutdown():
                self.is_eligible = False
                await self._give_up()
            case e.ControllerChange():
                await self._controller_changed()
            case e.SessionReconnected():
                await self._reconnected()
            case e.Expire():
                await self._resign()
            case e.ClusterIdChange():
                await self._check_cluster()
            case _ if self.active is not None:
                return await self._dispatch_active(self.active, event)
        return None

    # Life between elections

    async def _compete(self) -> None:
        """Learn who is the controller, and become it if we may. A wait, if any, is over."""
        self._holds_off = False
        await self._follow_controller()
        if not self._contends:
            # Not before a cluster was found: the replicas' election leaves znodes, too.
            await self._check_cluster()
            await Contend()
            self._contends = True
            self._refusal = None
        await self._elect_if_eligible()

    async def _check_cluster(self) -> None:
        """Learn the id of the Kafka cluster, and leave a watch on it.

        Raises:
            MissingClusterError: There is no cluster, and none is to be created.
            ClusterChangedError: It is not the cluster of before.
        """
        found = await cluster_identity.find_cluster(self._log)
        may_create = self._config.missing_cluster is MissingCluster.CREATE
        cluster_identity.refuse_other_cluster(self.cluster_id, found, may_create=may_create)
        self.cluster_id = found.cluster_id
        if self.active is not None and self.active.context.cluster_id != self.cluster_id:
            self.active.context.cluster_id = self.cluster_id
            await PublishView(frozenset())

    async def _wait_for_cluster(self, reason: str) -> None:
        """Check periodically: a missing chroot cannot be watched."""
        if self._refusal != reason:
            self._log.warning("No Kafka cluster found, waiting for one", reason=reason)
        self._refusal = reason
        await self._give_up()
        await ArmTimer(_REELECT_TIMER, self._config.election_backoff_ms, e.Reelect())

    async def _follow_controller(self) -> None:
        self.controller_id_seen = await controller_election.watch_controller(self._log)
        await PublishView(frozenset())

    async def _controller_changed(self) -> None:
        await self._follow_controller()
        if self.active is not None:
            if self.controller_id_seen == self._config.controller_id:
                return
            self._log.warning("Controller moved, resigning", to=self.controller_id_seen)
            await self._resign()
        if self.controller_id_seen == controller_election.NO_CONTROLLER:
            await self._elect_if_eligible()
        else:
            await self._retry_later()

    async def _reconnected(self) -> None:
        await self._release()
        await self._controller_changed()
        if self.active is not None:
            await self._check_cluster()
            await reconnection.read_everything_anew(self.active)

    async def _elect_if_eligible(self) -> None:
        if not self.is_eligible or self._holds_off or self.active is not None:
            return
        if self._has_unusable_setting:
            return
        await self._check_cluster()
        brokers = await cluster_loading.read_brokers(self._log)
        cluster_loading.refuse_unsupported(brokers.values())
        await refuse_id_of_a_broker(self._config.controller_id, brokers)
        self._refusal = None
        context = await controller_election.elect(self._config, self._log)
        if context is None:
            await self._retry_later()
            return
        context.cluster_id = self.cluster_id
        await CancelTimer(_REELECT_TIMER)
        self.active = ActiveController(
            context, config=self._config, log=self._log, chance=self._chance
        )
        self.controller_id_seen = self._config.controller_id
        await failover.on_controller_failover(self.active)

    async def _retry_later(self) -> None:
        """Try again after a wait, even if no watch reports a reason."""
        if (self.is_eligible or not self._contends) and not self._holds_off:
            await ArmTimer(_REELECT_TIMER, self._config.election_backoff_ms, e.Reelect())

    async def _resign(self) -> None:
        if self.active is None:
            return
        self._log.info("Controller resigned", epoch=self.active.context.epoch)
        self.active = None
        await Resigned()
        await PublishView(None)

    async def _give_up(self) -> None:
        """Resign and delete ``/controller``: some broker takes over within one watch round trip."""
        if self.active is not None:
            self._unreleased = self.active.context
        await self._resign()
        await self._release()

    async def _release(self) -> None:
        """Delete ``/controller`` if we have given it up. If the connection is lost over that it may
        still be there, without a session: then it is tried again when the connection is back."""
        if self._unreleased is None:
            return
        try:
            await controller_election.release(self._unreleased, self._log)
        except ZooKeeperError as error:
            # The node is ephemeral: at the latest it goes with our session.
            self._log.warning("Controller node not deleted", reason=str(error))
            if isinstance(error, ZooKeeperUnavailableError):
                return
        self._unreleased = None

    def _event_failed(self, event: e.ControllerEvent, error: Exception) -> None:
        """Log the failure, and keep it until an attempt succeeds. Only a defect has a traceback."""
        is_defect = not isinstance(error, RegentError)
        self._log.error(
            "Event failed, giving the controller up",
            event=type(event).__name__,
            error=repr(error),
            **({"exception": error} if is_defect else {}),
        )
        why = repr(error) if is_defect else str(error)
        self._failure = f"it failed to become or to remain the controller: {why}; it tries again"

    async def _fail(self) -> None:
        """Something is wrong with us or with what we read: let a broker lead for a while."""
        now_ms = await CurrentTime()
        if now_ms - self._failed_at_ms > _FORGIVE_AFTER_MS:
            self._failures = 0
        self._failed_at_ms = now_ms
        wait_ms = min(
            self._config.election_backoff_ms << min(self._failures, 16),
            self._config.election_backoff_max_ms,
        )
        self._failures += 1
        await self._give_up()
        self._holds_off = True
        await ArmTimer(_REELECT_TIMER, wait_ms, e.Reelect())

    # While active

    async def _dispatch_active(
        self, active: ActiveController, event: e.ControllerEvent
    ) -> tuple[Outcome, ...] | None:
        if isinstance(event, e.CommandsReceived):
            return await topic_commands.process_commands(active, event.commands)
        if isinstance(event, e.ChannelEvent) and event.controller_epoch != active.context.epoch:
            return None
        await _PROCESS[type(event)](active, event)
        return None


async def _channel_failed(active: ActiveController, event: e.ChannelFailed) -> None:
    """Give up, unless the broker has bounced meanwhile and got another channel."""
    broker = active.context.live_or_shutting_down_brokers.get(event.broker_id)
    if broker is not None and broker.epoch == event.broker_epoch:
        raise ControllerError(f"channel to broker {event.broker_id} failed: {event.reason}")


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
    e.TopicDeletion: lambda active, _: topic_changes.process_topic_deletion(active),
    e.StopReplicaResponseReceived: lambda active, event: (
        topic_changes.process_stop_replica_responses(active, event.responses)
    ),
    e.IsrChangeNotification: lambda active, _: isr_changes.process_isr_change_notification(active),
    e.LogDirEventNotification: lambda active, _: broker_changes.process_log_dir_event_notification(
        active
    ),
    e.LeaderAndIsrResponseReceived: lambda active, event: _each(
        broker_changes.process_leader_and_isr_response, active, event.responses
    ),
    e.UpdateMetadataResponseReceived: lambda active, event: _each(
        broker_changes.process_update_metadata_response, active, event.responses
    ),
    e.InterBrokerProtocolChanged: lambda active, event: (
        failover.process_inter_broker_protocol_change(active, event.version)
    ),
    e.ChannelFailed: _channel_failed,
    e.BrokerFactsLearned: lambda active, event: topic_configuration.process_broker_facts(
        active, event.broker_epoch, event.facts
    ),
    e.ConfigChange: lambda active, _: config_changes.process_config_change(active),
}
