"""The controller: takes events one at a time and hands each to the module that knows it.

No rules live here but one: what becomes of the controller when an event cannot be processed. A
controller whose epoch is gone resigns. One that fails in any other way gives ``/controller`` up and
loads everything anew after a wait, because a context that may be wrong is worse than none;
meanwhile a broker's own controller serves the cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from regent.controller import (
    broker_changes,
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
from regent.controller.config import ControllerConfig
from regent.controller.context import ControllerContext
from regent.controller.effects import (
    ArmTimer,
    CancelTimer,
    CurrentTime,
    PublishView,
    Resigned,
    Respond,
)
from regent.controller.log import ControllerLog
from regent.model.errors import (
    ControllerError,
    ControllerMovedError,
    RegentError,
    SessionExpiredError,
    StaleControllerEpochError,
    UnsupportedClusterError,
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
        refusal: Why it does not want to, though it may; None if there is no reason.
    """

    def __init__(self, config: ControllerConfig, *, log: ControllerLog, chance: Chance) -> None:
        self._config = config
        self._log = log
        self._chance = chance
        self._failures = 0
        self._failed_at_ms = 0
        self._holds_off = False
        self._unreleased: ControllerContext | None = None
        self.active: ActiveController | None = None
        self.controller_id_seen = controller_election.NO_CONTROLLER
        self.is_eligible = False
        self.refusal: str | None = None

    async def process(self, event: e.ControllerEvent) -> None:
        """Process one event to its end, including what becomes of us if that fails.

        Whoever waits for an answer gets one in any case.
        """
        outcomes: tuple[Outcome, ...] | None = None
        try:
            outcomes = await self._dispatch(event)
        except (ControllerMovedError, StaleControllerEpochError) as moved:
            self._log.warning("Controller moved, resigning", reason=str(moved))
            await self._resign()
            await self._retry_later()
        except (SessionExpiredError, ZooKeeperUnavailableError) as lost:
            self._log.warning("ZooKeeper lost, resigning", reason=str(lost))
            await self._resign()
            await self._retry_later()
        except UnsupportedClusterError as unsupported:
            self._log.error("Cluster left alone", reason=str(unsupported))
            self.refusal = str(unsupported)
            await self._fail()
        except Exception as error:  # noqa: BLE001 - whatever it is, the context is in doubt
            self._log.error(
                "Event failed, giving the controller up",
                event=type(event).__name__,
                error=repr(error),
                exception=error,
            )
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
                await self._release()
                await self._controller_changed()
                if self.active is not None:
                    await reconnection.read_everything_anew(self.active)
            case e.Expire():
                await self._resign()
            case _ if self.active is not None:
                return await self._dispatch_active(self.active, event)
        return None

    # Life between elections

    async def _compete(self) -> None:
        """Learn who is the controller, and become it if we may. A wait, if any, is over."""
        self._holds_off = False
        await self._follow_controller()
        await self._elect_if_eligible()

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

    async def _elect_if_eligible(self) -> None:
        if not self.is_eligible or self._holds_off or self.active is not None:
            return
        brokers = await cluster_loading.read_brokers(self._log)
        cluster_loading.refuse_unsupported(brokers.values())
        self.refusal = None
        context = await controller_election.elect(self._config, self._log)
        if context is None:
            await self._retry_later()
            return
        await CancelTimer(_REELECT_TIMER)
        self.active = ActiveController(
            context, config=self._config, log=self._log, chance=self._chance
        )
        self.controller_id_seen = self._config.controller_id
        await failover.on_controller_failover(self.active)

    async def _retry_later(self) -> None:
        """Try again after a wait, even if no watch should tell that there is reason to."""
        if self.is_eligible and not self._holds_off:
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
        still be there, held by nobody: then it is tried again when the connection is back."""
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
            return await self._process_commands(active, event)
        if isinstance(event, e.ChannelFailed):
            raise ControllerError(f"channel to broker {event.broker_id} failed: {event.reason}")
        await _PROCESS[type(event)](active, event)
        return None

    async def _process_commands(
        self, active: ActiveController, event: e.CommandsReceived
    ) -> tuple[Outcome, ...]:
        """Commands touch ZooKeeper only, so a defect in one leaves the context in no doubt: the
        cluster must not lose its controller over a custom resource."""
        try:
            return await topic_commands.process_commands(active, event.commands)
        except RegentError:
            raise
        except Exception as error:  # noqa: BLE001 - answered, and logged with its traceback
            self._log.error("Commands failed", error=repr(error), exception=error)
            return topic_commands.failed(event.commands, error)


_Process = Callable[[ActiveController, Any], Awaitable[None]]

_PROCESS: Final[dict[type[e.ControllerEvent], _Process]] = {
    e.BrokerChange: lambda active, _: broker_changes.process_broker_change(active),
    e.BrokerModifications: lambda active, event: broker_changes.process_broker_modifications(
        active, event.broker_id
    ),
    e.TopicChange: lambda active, _: topic_changes.process_topic_change(active),
    e.PartitionModifications: lambda active, event: topic_changes.process_partition_modifications(
        active, [event.topic]
    ),
    e.TopicDeletion: lambda active, _: topic_changes.process_topic_deletion(active),
    e.StopReplicaResponseReceived: lambda active, event: (
        topic_changes.process_stop_replica_response(active, event.response)
    ),
    e.IsrChangeNotification: lambda active, _: isr_changes.process_isr_change_notification(active),
    e.LogDirEventNotification: lambda active, _: broker_changes.process_log_dir_event_notification(
        active
    ),
    e.LeaderAndIsrResponseReceived: lambda active, event: (
        broker_changes.process_leader_and_isr_response(active, event.response)
    ),
    e.UpdateMetadataResponseReceived: lambda active, event: (
        broker_changes.process_update_metadata_response(active, event.response)
    ),
    e.InterBrokerProtocolChanged: lambda active, event: (
        failover.process_inter_broker_protocol_change(active, event.version)
    ),
    e.BrokerFactsLearned: lambda active, event: topic_configuration.process_broker_facts(
        active, event.broker_epoch, event.facts
    ),
    e.ConfigChange: lambda active, _: config_changes.process_config_change(active),
}
