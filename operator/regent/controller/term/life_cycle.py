"""The life of a controller: learn who is it, become it, give it up, and try again.

What makes it end against its will is said in :mod:`regent.controller.term.failure_policy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from regent.admin.topic_admin import Chance
from regent.controller import events as e
from regent.controller.active_controller import ActiveController
from regent.controller.brokers import own_registration
from regent.controller.config import ControllerConfig, MissingCluster
from regent.controller.effects import (
    ArmTimer,
    CancelTimer,
    Contend,
    CurrentTime,
    OwnSession,
    PublishView,
    QueueUpAgain,
    Resigned,
)
from regent.controller.state.context import ControllerContext
from regent.controller.state.former_partitions import FormerPartitions
from regent.controller.state.given_producer_ids import GivenProducerIds
from regent.controller.state.term import Term
from regent.controller.state.vanished_partitions import VanishedPartitions
from regent.controller.term import (
    cluster_identity,
    cluster_loading,
    controller_election,
    deposed_controllers,
    failover,
    reconnection,
)
from regent.controller.term.epoch_floor import EpochFloor
from regent.controller.term.suspicion_limit import SuspicionLimit
from regent.controller.term.take_over import Predecessors, find_predecessors
from regent.controller.term.unusable_settings import refuse_id_of_a_broker
from regent.model.active_regent import ActiveRegent
from regent.model.cluster import Broker
from regent.model.errors import (
    OutdatedEpochError,
    SessionExpiredError,
    ZooKeeperError,
    ZooKeeperUnavailableError,
)
from regent.model.log import StructuredLog
from regent.zk_data.replicas import presence_name

_REELECT_TIMER: Final = "reelect"
_FORGIVE_AFTER_MS: Final = 600_000
"""Failures further apart than this count as the first of their kind."""


class _Held(NamedTuple):
    """``/controller`` as a term that has ended held it. Nothing else of a term is kept: it is
    large."""

    term: Term
    not_restarted: tuple[int, ...]


class LifeCycle:
    """From one election to the next, over all terms of this process.

    Attributes:
        active: Present while this process is the controller.
        controller_id_seen: Id in ``/controller`` when it was last read; negative if there is none.
        regent_seen: The other Regent that held it then; None: somebody else did, or nobody.
        is_eligible: Whether this process may become the controller.
        cluster_id: Id of the Kafka cluster, once it was found.
    """

    def __init__(self, config: ControllerConfig, *, log: StructuredLog, chance: Chance) -> None:
        self._config = config
        self._log = log
        self._chance = chance
        self._known_brokers: Mapping[int, Broker] = {}
        self._failures = 0
        self._failed_at_ms = 0
        self._holds_off = False
        self._left: _Held | None = None
        self._unreleased: _Held | None = None
        self._is_registered = False
        self._contends = False
        self._has_unusable_setting = False
        self._epochs = EpochFloor()
        self._former_partitions = FormerPartitions()
        self._vanished_partitions = VanishedPartitions()
        self._given_producer_ids = GivenProducerIds()
        self._suspicions = SuspicionLimit(
            config.suspicion_backoff_ms, config.suspicion_backoff_max_ms
        )
        self.active: ActiveController | None = None
        self.controller_id_seen = controller_election.NO_CONTROLLER
        self.regent_seen: ActiveRegent | None = None
        self.is_eligible = False
        self._refusal: str | None = None
        self._failure: str | None = None
        self.cluster_id: str | None = None

    @property
    def refusal(self) -> str | None:
        """Why it does not want to be the controller, or fails to, though it may; None if there is
        no reason."""
        return self._refusal or self._failure

    def note_success(self) -> None:
        """An event was processed: what failed before is over, unless the wait after it is not."""
        if not self._holds_off:
            self._failure = None

    def check_epoch(self) -> None:
        """Look whether our epoch has turned out to be too low.

        Raises:
            OutdatedEpochError: Another term, with a higher one, is needed.
        """
        if self.active is None:
            return
        epoch, highest = self.active.context.term.epoch, self.active.context.highest_epoch
        if self._epochs.exceeds(highest, of_term=epoch):
            self._epochs.note(highest)
            raise OutdatedEpochError(
                f"states of partitions have controller epoch {highest}, ours is {epoch}"
            )

    async def note_refused_epoch(self) -> None:
        """Brokers obey a controller with a higher epoch."""
        if self.active is not None:
            self._epochs.note_refusal(self.active.context.term.epoch, await CurrentTime())

    async def begin_session(self) -> None:
        """A new ZooKeeper session: whatever we owned and watched belonged to another one."""
        await self.resign()
        self._left = self._unreleased = None
        self._is_registered = False
        await self.compete()

    async def become_eligible(self) -> None:
        """Among the replicas of Regent this one was elected."""
        self.is_eligible = True
        if self._has_unusable_setting:
            # Alone, for now: another replica is asked for again and again.
            await ArmTimer(_REELECT_TIMER, self._config.election_backoff_max_ms, e.Reelect())
        await self._elect_if_eligible()

    async def become_ineligible(self) -> None:
        """Another replica was elected, or this one stops: hand the cluster back."""
        self.is_eligible = False
        await self.give_up()

    async def compete(self) -> None:
        """Learn who is the controller, and become it if we may. A wait, if any, is over."""
        self._holds_off = False
        await self._follow_controller()
        if not self._contends:
            # Not before a cluster was found: the replicas' election leaves znodes, too.
            await self.check_cluster()
            await Contend()
            self._contends = True
            self._refusal = None
        await self._elect_if_eligible()
        if self.active is None:
            await self._release()
            await self._withdraw()
        if self._has_unusable_setting and self.is_eligible:
            await QueueUpAgain()
        if self._refusal is not None and not (self.is_eligible or self._has_unusable_setting):
            # It has left its place to others, so no election shows that the reason is gone.
            await self._check_fitness()
            await controller_election.check_holder(self._config)
            self._refusal = None

    async def check_cluster(self) -> None:
        """Learn the id of the Kafka cluster, and leave a watch on it.

        Raises:
            MissingClusterError: There is no cluster, and none is to be created.
            ClusterChangedError: It is not the cluster of before.
        """
        found = await cluster_identity.find_cluster(self._log)
        may_create = self._config.missing_cluster is MissingCluster.CREATE
        cluster_identity.refuse_other_cluster(self.cluster_id, found, may_create=may_create)
        self.cluster_id = found.cluster_id
        if self.active is not None and self.active.context.cluster.cluster_id != self.cluster_id:
            self.active.context.cluster.cluster_id = self.cluster_id
            await PublishView(frozenset())

    async def wait_for_cluster(self, reason: str) -> None:
        """Check periodically: a missing chroot cannot be watched."""
        if self._refusal != reason:
            self._log.warning("No Kafka cluster found, waiting for one", reason=reason)
        self._refusal = reason
        await self.give_up()
        await ArmTimer(_REELECT_TIMER, self._config.election_backoff_ms, e.Reelect())

    async def stand_back(self, reason: str) -> None:
        """Another Regent leads: the watch on ``/controller`` reports its end."""
        if self._refusal != reason:
            self._log.error("Cluster left to the controller that it has", reason=reason)
        self._refusal = reason
        await self.retry_later()

    async def _follow_controller(self) -> bool:
        """Learn the holder of ``/controller``. Returns whether this process is the holder.

        The id alone proves nothing: another process may have the same id.
        """
        holder = await controller_election.watch_controller(self._log)
        has_own_id = holder.controller_id == self._config.controller_id
        is_own = has_own_id and holder.session_id == await OwnSession()
        self.controller_id_seen = holder.controller_id
        self.regent_seen = None if is_own else holder.regent
        if not is_own:
            self._left = None
        await PublishView(frozenset())
        return is_own

    async def controller_changed(self) -> None:
        """``/controller`` was created, changed or deleted."""
        is_own = await self._follow_controller()
        if self.active is not None:
            if is_own:
                return
            self._log.warning("Controller moved, resigning", to=self.controller_id_seen)
            await self.yield_to_successor()
        if self.controller_id_seen == controller_election.NO_CONTROLLER:
            await self._elect_if_eligible()
        else:
            await self.retry_later()

    async def reconnected(self) -> None:
        """The session survived a disconnection; its watches did not."""
        await self._release()
        if self.active is None:
            await self._withdraw()
        await self.controller_changed()
        if self.active is not None:
            await self.check_cluster()
            await reconnection.read_everything_anew(self.active)

    async def _elect_if_eligible(self) -> None:
        if not self.is_eligible or self._holds_off or self.active is not None:
            return
        if self._has_unusable_setting:
            return
        context = await self._elect()
        if context is None:
            await self.retry_later()
            return
        await self._begin_term(context)

    async def take_over(self, event: e.ReplicasAbsent) -> None:
        """Depose a replica that is suspected, or leaves, if this one is next. One that is elected
        among the replicas needs no suspicion: it deposes in any case."""
        may = self._contends and not self._holds_off and not self._has_unusable_setting
        if not may or self.is_eligible or self.active is not None:
            return
        predecessors = await find_predecessors(event, self._config.election_path)
        if predecessors is None:
            return
        now_ms, dead = await CurrentTime(), predecessors.dead
        if not event.is_named and not self._suspicions.allows(
            now_ms, registered=predecessors.registered, dead=dead
        ):
            return
        context = await self._elect(predecessors)
        if context is None:
            return
        if not event.is_named:
            suspects = (presence_name(replica.session_id) for replica in predecessors.absent)
            self._suspicions.note_take_over(now_ms, suspects, dead=dead)
        passed = {"passed": "; ".join(predecessors.passed)} if predecessors.passed else {}
        self._log.warning(
            "Taken over from another replica",
            epoch=context.term.epoch,
            reason="; ".join(replica.reason for replica in predecessors.absent),
            **passed,
        )
        await self._begin_term(context)

    async def _elect(self, predecessors: Predecessors | None = None) -> ControllerContext | None:
        await self._check_fitness()
        context = await controller_election.elect(
            self._config, self._log, predecessors, above=self._epochs.value
        )
        self._refusal = None
        return context

    async def _check_fitness(self) -> None:
        """Look whether this process could lead this cluster, whoever leads it now.

        Raises:
            ControllerError: It could not; says why.
        """
        await self.check_cluster()
        brokers = await cluster_loading.read_brokers(self._log, known=self._known_brokers)
        self._known_brokers = brokers
        cluster_loading.refuse_unsupported(brokers.values(), self._config)
        await refuse_id_of_a_broker(self._config.controller_id, brokers)

    async def _begin_term(self, context: ControllerContext) -> None:
        self._left = self._unreleased = None
        self._epochs.note(context.term.epoch)
        context.cluster.cluster_id = self.cluster_id
        context.cluster.former_partitions = self._former_partitions
        context.cluster.vanished_partitions = self._vanished_partitions
        context.cluster.given_producer_ids = self._given_producer_ids
        context.is_registered = self._is_registered
        await CancelTimer(_REELECT_TIMER)
        self.active = ActiveController(
            context, config=self._config, log=self._log, chance=self._chance
        )
        self.controller_id_seen, self.regent_seen = self._config.controller_id, None
        await failover.on_controller_failover(self.active, known=self._known_brokers)

    async def retry_later(self) -> None:
        """Try again after a wait, even if no watch reports a reason."""
        may_end = self._refusal is not None and not self._has_unusable_setting
        if (self.is_eligible or not self._contends or may_end) and not self._holds_off:
            await ArmTimer(_REELECT_TIMER, self._config.election_backoff_ms, e.Reelect())

    async def resign(self) -> None:
        """Stop being the controller. ``/controller`` is left as it is."""
        if self.active is None:
            return
        context = self.active.context
        self._log.info("Controller resigned", epoch=context.term.epoch)
        self._is_registered |= context.is_registered
        self._known_brokers = context.cluster.brokers or self._known_brokers
        self._left = _Held(context.term, deposed_controllers.not_restarted(context))
        self.active = None
        await Resigned()

    async def yield_to_successor(self) -> None:
        """Resign, and leave nothing behind that a broker's controller would take for a broker."""
        if self.active is not None:
            self._suspicions.note_deposed(await CurrentTime())
        await self.resign()
        self._left = None
        await self._withdraw()

    async def give_up(self) -> None:
        """Resign and delete ``/controller``: some broker takes over within one watch round trip.

        The node may be left of a term that ended without that, to begin the next one. If that is
        not to be, nobody else leads as long as our session lives.
        """
        await self.resign()
        self._unreleased, self._left = self._left or self._unreleased, None
        await self._release()
        await self._withdraw()

    async def _withdraw(self) -> None:
        """Delete our registration if it has not gone with ``/controller``; it is ephemeral."""
        if not self._is_registered or self._unreleased is not None:
            return
        try:
            await own_registration.withdraw(self._config.controller_id, self._log)
        except ZooKeeperError as error:
            self._log.warning("Own registration not deleted", reason=str(error))
            if isinstance(error, ZooKeeperUnavailableError):
                return
        self._is_registered = False

    async def _release(self) -> None:
        """Delete ``/controller`` if we have given it up. If the connection is lost over that it may
        still be there, without a session: then it is tried again when the connection is back. If
        ZooKeeper refuses it, nobody else leads: it is tried again each time we try to lead."""
        if self._unreleased is None:
            return
        try:
            if await controller_election.release(
                self._unreleased.term, self._log, is_registered=self._is_registered
            ):
                self._is_registered = False
                deposed_controllers.name_at_hand_back(self._unreleased.not_restarted, self._log)
            else:
                self._suspicions.note_deposed(await CurrentTime())
        except ZooKeeperError as error:
            self._log.warning("Controller node not deleted", reason=str(error))
            if isinstance(error, ZooKeeperUnavailableError):
                return
            if not isinstance(error, SessionExpiredError):
                # It is ephemeral, but our session goes on. A wait that is set later replaces this.
                await ArmTimer(_REELECT_TIMER, self._config.election_backoff_max_ms, e.Reelect())
                return
        self._unreleased = None

    async def fail(self) -> None:
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
        await self.give_up()
        self._holds_off = True
        await ArmTimer(_REELECT_TIMER, wait_ms, e.Reelect())

    async def fail_because(self, reason: str, *, is_defect: bool = False) -> None:
        """An event could not be processed: :meth:`fail`, and show why until an attempt succeeds.

        Args:
            is_defect: Whether it may be for this very process. Then another replica is next, if it
                is not the first failure: it may have what this one lacks, such as memory, or be of
                another release. What ZooKeeper refuses it refuses to all of them.
        """
        self._failure = f"it failed to become or to remain the controller: {reason}; it tries again"
        await self.fail()
        if is_defect and self._failures > 1:
            await QueueUpAgain()

    async def leave_alone(self, reason: str) -> None:
        """This cluster is not to be led, until it changes. Another replica may see that otherwise:
        one that was started for this cluster, or has other settings."""
        self._refusal = reason
        await self.fail()
        await QueueUpAgain()

    async def leave_alone_for_good(self, reason: str) -> None:
        """A setting makes us unfit, and settings do not change in a running process. Those of
        another replica may be others."""
        self._refusal = reason
        self._has_unusable_setting = True
        await self.give_up()
        await QueueUpAgain()
